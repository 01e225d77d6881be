//! The content of a folder according to its metadata: an array, an OME-Zarr image, or a group.

use std::fs;
use std::path::{Component, Path, PathBuf};

use horus_core::dispatch;
use horus_core::dtype::{DType, Pixel};
use horus_core::io::{Downsampling, PixelSize};
use horus_core::lengths::micrometres;
use horus_core::shape::Shape;
use serde_json::{Map, Value, json};

use crate::layout::{ArrayLayout, Role};
use crate::location::NodeLocation;

/// A folder with Zarr metadata.
#[derive(Debug)]
pub(crate) enum ZarrNode {
    Array,
    /// A group, with its attributes.
    Group(Map<String, Value>),
}

impl ZarrNode {
    /// Reads the node at a location.
    ///
    /// # Errors
    /// A message if a path is not a folder, or if there is no readable metadata.
    pub(crate) fn at(at: &NodeLocation) -> Result<ZarrNode, String> {
        if let Some(folder) = at.folder()
            && !fs::metadata(folder).map_err(|e| e.to_string())?.is_dir()
        {
            return Err("it is not a folder; a Zarr store is a folder".into());
        }
        if let Some(metadata) = at.json("zarr.json")? {
            return match metadata.get("node_type").and_then(Value::as_str) {
                Some("array") => Ok(ZarrNode::Array),
                Some("group") => Ok(ZarrNode::Group(object(metadata.get("attributes")))),
                _ => Err("its zarr.json says neither `array` nor `group`".into()),
            };
        }
        if at.json(".zarray")?.is_some() {
            return Ok(ZarrNode::Array);
        }
        if at.json(".zgroup")?.is_some() {
            return Ok(ZarrNode::Group(at.json(".zattrs")?.unwrap_or_default()));
        }
        Err("it holds no Zarr array or group: there is no zarr.json, .zarray or .zgroup".into())
    }
}

/// The file with the metadata of an array.
pub(crate) fn metadata_of(array: &Path) -> PathBuf {
    let third = array.join("zarr.json");
    if third.exists() { third } else { array.join(".zarray") }
}

/// The names of the axes of an array, if it has names (`dimension_names` of version 3).
pub(crate) fn names_of(array: &NodeLocation) -> Result<Option<Vec<String>>, String> {
    let Some(metadata) = array.json("zarr.json")? else { return Ok(None) };
    let names = metadata.get("dimension_names").and_then(Value::as_array);
    Ok(names.and_then(|names| names.iter().map(|n| n.as_str().map(str::to_owned)).collect()))
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// An OME-Zarr image: one picture in several sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Multiscale {
    /// The axes; `None` in versions before 0.3, whose metadata has no axes.
    pub(crate) axes: Option<Vec<Role>>,
    /// Folders of the sizes, the largest first.
    pub(crate) levels: Vec<PathBuf>,
    /// The size of the pixels of each size in micrometres, if given with units.
    pub(crate) pixels: Vec<Option<PixelSize>>,
    /// Labels of the channels (`omero`); empty for channels without a label.
    pub(crate) channels: Vec<String>,
    /// Whether pixels are labels (`image-label`).
    pub(crate) is_of_labels: bool,
}

/// Names and limits of the channels of an image, as far as known.
pub(crate) struct Channels<'a> {
    /// The names of all channels, or none.
    pub(crate) names: &'a [String],
    pub(crate) dtype: DType,
}

impl Channels<'_> {
    /// The settings for viewers of channels with names: the name, a colour, and the range of values
    /// from black to full (for integers the whole range).
    fn omero(&self) -> Value {
        const COLOURS: [&str; 6] = ["00FFFF", "FF00FF", "FFFF00", "FF0000", "00FF00", "0000FF"];
        let low_high = |low: f64, high: f64| json!({"min": low, "start": low, "max": high, "end": high});
        let window = match self.dtype {
            DType::Bool => low_high(0.0, 1.0),
            dtype => dispatch!(dtype, P => match P::DTYPE.is_float() {
                true => low_high(0.0, 1.0),
                false => low_high(P::LOWEST.to_f64(), P::HIGHEST.to_f64()),
            }),
        };
        let channel = |(k, name): (usize, &String)| {
            let color = if self.names.len() == 1 { "FFFFFF" } else { COLOURS[k % COLOURS.len()] };
            json!({"label": name, "color": color, "window": window, "active": true})
        };
        json!({"channels": self.names.iter().enumerate().map(channel).collect::<Vec<_>>()})
    }
}

impl Multiscale {
    /// The image in the attributes of a group, if there is one.
    ///
    /// # Errors
    /// A message if the attributes are invalid.
    pub(crate) fn of(attributes: &Map<String, Value>) -> Result<Option<Multiscale>, String> {
        // From version 0.5 on, inside `ome`.
        let ome = attributes.get("ome").and_then(Value::as_object).unwrap_or(attributes);
        let Some(all) = ome.get("multiscales") else { return Ok(None) };
        let all = all.as_array().map_or(&[][..], Vec::as_slice);
        let first = all.first().and_then(Value::as_object).ok_or("its `multiscales` are empty")?;
        if all.len() > 1 {
            horus_core::warn!("it has {} `multiscales`, of which the first is read", all.len());
        }
        let axes = first.get("axes").and_then(Value::as_array).map(|axes| roles(axes)).transpose()?;
        let datasets = first.get("datasets").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let path = |dataset: &Value| {
            let path =
                dataset.get("path").and_then(Value::as_str).ok_or("a dataset of its `multiscales` has no path")?;
            inside(path).ok_or_else(|| format!("the path of a dataset, `{path}`, leads out of it"))
        };
        let levels = datasets.iter().map(path).collect::<Result<Vec<PathBuf>, String>>()?;
        if levels.is_empty() {
            return Err("its `multiscales` have no datasets".into());
        }
        let pixels = datasets.iter().map(|dataset| pixel(first, dataset)).collect();
        let channels = ome.get("omero").and_then(|omero| omero.get("channels")?.as_array());
        let label = |channel: &Value| channel.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
        let channels = channels.map_or_else(Vec::new, |all| all.iter().map(label).collect());
        let is_of_labels = ome.contains_key("image-label");
        Ok(Some(Multiscale { axes, levels, pixels, channels, is_of_labels }))
    }
}

/// The size of the pixels of a dataset, from the scales of both and the units of axes.
fn pixel(image: &Map<String, Value>, dataset: &Value) -> Option<PixelSize> {
    let scale = |of: Option<&Value>| -> Option<Vec<f64>> {
        let all = of?.as_array()?.iter().find(|one| one.get("type").and_then(Value::as_str) == Some("scale"))?;
        all.get("scale")?.as_array()?.iter().map(Value::as_f64).collect()
    };
    let axes = image.get("axes")?.as_array()?;
    let of_dataset = scale(dataset.get("coordinateTransformations"))?;
    let of_all = scale(image.get("coordinateTransformations"));
    let side = |role: Role| {
        let at = axes
            .iter()
            .position(|axis| axis.get("name").and_then(Value::as_str).and_then(Role::named) == Some(role))?;
        let unit = micrometres(axes[at].get("unit")?.as_str()?)?;
        let all = of_all.as_ref().map_or(Some(1.0), |scale| scale.get(at).copied())?;
        Some(of_dataset.get(at)? * all * unit)
    };
    PixelSize::of([Role::Level, Role::Row, Role::Column].map(side))
}

/// The roles of axes, by kind and name, or by name alone (version 0.3).
fn roles(axes: &[Value]) -> Result<Vec<Role>, String> {
    let role = |axis: &Value| {
        let name = axis.get("name").unwrap_or(axis).as_str().unwrap_or_default();
        let by_kind = match axis.get("type").and_then(Value::as_str) {
            Some("time") => Some(Role::Time),
            Some("channel") => Some(Role::Channel),
            _ => None,
        };
        by_kind.or_else(|| Role::named(name)).ok_or_else(|| format!("its axis `{name}` is none of t, c, z, y and x"))
    };
    axes.iter().map(role).collect()
}

/// A path, if it stays inside its root.
fn inside(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let stays = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
    path.components().all(stays).then(|| path.to_owned())
}

/// The distance between pixels of each size, in pixels of the first size, along an axis whose
/// lengths in the sizes are `extents`. It doubles where the axis was halved; an axis of a single
/// pixel is not halved.
fn scale_factors(extents: impl Iterator<Item = usize>) -> Vec<f64> {
    let mut steps = vec![1.0];
    steps.extend(extents.scan(1.0, |step, extent| {
        *step *= if extent > 1 { 2.0 } else { 1.0 };
        Some(*step)
    }));
    steps
}

/// The metadata of an OME-Zarr image with this name and these sizes, in arrays `0`, `1` and so on,
/// with the size of the pixels of the first.
pub(crate) fn group(
    name: &str,
    sizes: &[Shape],
    resampling: Option<Downsampling>,
    pixel: Option<PixelSize>,
    channels: &Channels<'_>,
) -> Value {
    let first = sizes.first().copied().unwrap_or(Shape::new(0, 0, 1));
    let layout = ArrayLayout::of(first);
    let axis = |role: &Role| match (pixel, role) {
        (Some(PixelSize { levels: Some(_), .. }), Role::Level) | (Some(_), Role::Row | Role::Column) => {
            json!({"name": role.name(), "type": role.kind(), "unit": "micrometer"})
        }
        _ => json!({"name": role.name(), "type": role.kind()}),
    };
    let axes: Vec<Value> = layout.roles().iter().map(axis).collect();
    let [depth, height, width] = pixel.map_or([1.0; 3], |size| size.sides());
    let rows = scale_factors(sizes.iter().map(|size| size.height));
    let columns = scale_factors(sizes.iter().map(|size| size.width));
    let dataset = |number: usize| {
        let of_axes = |value: &dyn Fn(f64, f64) -> f64, other: f64| -> Vec<f64> {
            let one = |role: &Role| match role {
                Role::Level => value(depth, 1.0),
                Role::Row => value(height, rows[number]),
                Role::Column => value(width, columns[number]),
                Role::Time | Role::Channel => other,
            };
            layout.roles().iter().map(one).collect()
        };
        let scale = of_axes(&|side, step| side * step, 1.0);
        let mut all = vec![json!({"type": "scale", "scale": scale})];
        // A pixel is in the middle of the pixels that it stands for, or at the first of them.
        let translation = of_axes(&|side, step| side * ((step - 1.0) / 2.0), 0.0);
        if resampling != Some(Downsampling::Nearest) && translation.iter().any(|at| *at != 0.0) {
            all.push(json!({"type": "translation", "translation": translation}));
        }
        json!({"path": number.to_string(), "coordinateTransformations": all})
    };
    let datasets: Vec<Value> = (0..sizes.len()).map(dataset).collect();
    let image = json!({"name": name, "axes": axes, "datasets": datasets});
    let mut ome = json!({"version": "0.5", "multiscales": [image]});
    if channels.names.len() == first.channels && channels.names.iter().any(|name| !name.is_empty()) {
        ome["omero"] = channels.omero();
    }
    let attributes = json!({ "ome": ome });
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// The error for a group that is not an image; it names the content.
pub(crate) fn no_image(at: &NodeLocation) -> String {
    let none = "it is a group without an image (no `multiscales`)";
    let Some(folder) = at.folder() else { return none.into() };
    let mut below: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && ZarrNode::at(&NodeLocation::Folder(path.clone())).is_ok())
        .filter_map(|path| Some(path.file_name()?.display().to_string()))
        .collect();
    below.sort();
    const SHOWN: usize = 8;
    let more = if below.len() > SHOWN { ", ..." } else { "" };
    match &below[..below.len().min(SHOWN)] {
        [] => format!("{none}, and nothing is below it"),
        shown => format!("{none}; open one of those below it: {}{more}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn multiscale(attributes: &Value) -> Result<Option<Multiscale>, String> {
        Multiscale::of(attributes.as_object().unwrap())
    }

    #[test]
    fn images_of_all_versions_are_found() {
        let datasets = json!([{"path": "0"}, {"path": "a/1"}]);
        let axes = json!([{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x"}]);
        let fourth = json!({"multiscales": [{"axes": axes, "datasets": datasets}]});
        let found = multiscale(&fourth).unwrap().unwrap();
        assert_eq!(found.axes, Some(vec![Role::Channel, Role::Row, Role::Column]));
        assert_eq!(found.levels, [PathBuf::from("0"), PathBuf::from("a/1")]);
        assert_eq!(multiscale(&json!({"ome": fourth})).unwrap().unwrap(), found);
        let mut named = fourth.clone();
        named["omero"] = json!({"channels": [{"label": "DAPI"}, {"color": "00FF00"}]});
        let named = multiscale(&json!({"ome": named})).unwrap().unwrap();
        assert_eq!(named.channels, ["DAPI", ""]);
        let mut labelled = fourth.clone();
        labelled["image-label"] = json!({"version": "0.4"});
        assert!(multiscale(&labelled).unwrap().unwrap().is_of_labels && !found.is_of_labels);
        let third = json!({"multiscales": [{"axes": ["c", "y", "x"], "datasets": datasets}]});
        assert_eq!(multiscale(&third).unwrap().unwrap(), found);
        let first = json!({"multiscales": [{"datasets": datasets}]});
        assert_eq!(multiscale(&first).unwrap().unwrap(), Multiscale { axes: None, ..found });
        assert_eq!(multiscale(&json!({"plate": {}})).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        let fails = |one: Value, cause: &str| {
            let error = multiscale(&json!({"multiscales": [one]})).unwrap_err();
            assert!(error.contains(cause), "{error}");
        };
        fails(json!({"axes": ["y", "q"], "datasets": [{"path": "0"}]}), "its axis `q`");
        fails(json!({"datasets": [{}]}), "has no path");
        fails(json!({"datasets": []}), "have no datasets");
        for path in ["/etc", "../other", "a/../.."] {
            fails(json!({"datasets": [{"path": path}]}), "leads out of it");
        }
        assert!(multiscale(&json!({"multiscales": []})).unwrap_err().contains("are empty"));
    }
}
