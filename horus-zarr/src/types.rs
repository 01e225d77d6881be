//! Zarr's names of sample types.

use horus_core::dtype::DType;

/// The name of a type in version 3 of Zarr.
pub(crate) fn name_of(dtype: DType) -> String {
    let ours = dtype.name();
    if dtype == DType::Bool {
        return ours.into();
    }
    let (kind, bits) = ours.split_at(1);
    let kind = match kind {
        "u" => "uint",
        "i" => "int",
        _ => "float",
    };
    format!("{kind}{bits}")
}

/// The type in memory with this name; bool is stored as bytes.
pub(crate) fn dtype_named(name: &str) -> Option<DType> {
    if name == name_of(DType::Bool) {
        return Some(DType::Bool.stored());
    }
    DType::ALL.into_iter().find(|dtype| name_of(*dtype) == name)
}

/// The names of all types.
pub(crate) fn supported() -> String {
    let names: Vec<String> = DType::ALL.iter().chain([&DType::Bool]).map(|dtype| name_of(*dtype)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_zarr() {
        let names: Vec<String> = [DType::U8, DType::I32, DType::F64].map(name_of).into();
        assert_eq!(names, ["uint8", "int32", "float64"]);
        for dtype in DType::ALL {
            assert_eq!(dtype_named(&name_of(dtype)), Some(dtype));
        }
        assert_eq!(dtype_named("bool"), Some(DType::U8));
        assert_eq!(dtype_named("complex64"), None);
        assert!(supported().starts_with("uint8, ") && supported().ends_with(", bool"));
    }
}
