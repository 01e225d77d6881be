//! Arrays of NumPy.

use super::{Decoded, read};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_files::OpenOptions;

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    [b"\x93NUMPY\x01\0", &u16::try_from(header.len()).unwrap().to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
}

fn decoded(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Result<Decoded, String> {
    read(&npy(&header(descr, fortran, shape), data), &OpenOptions::default())
}

fn refused(descr: &str, shape: &str, data: &[u8]) -> String {
    decoded(descr, "False", shape, data).err().unwrap()
}

#[test]
fn every_type_is_read_in_both_byte_orders() {
    let p = decoded("<u2", "False", "(1, 2)", &[1, 2, 3, 4]).unwrap();
    assert_eq!((p.shape, p.pixels.as_slice::<u16>()), (Shape::new(1, 2, 1), &[0x201, 0x403][..]));
    assert_eq!(decoded(">u2", "False", "(1, 2)", &[1, 2, 3, 4]).unwrap().pixels.as_slice::<u16>(), [0x102, 0x304]);
    for (descr, bytes) in [("<i4", (-7i32).to_le_bytes()), (">i4", (-7i32).to_be_bytes())] {
        assert_eq!(decoded(descr, "False", "(1, 1)", &bytes).unwrap().pixels.as_slice::<i32>(), [-7]);
    }
    for (descr, bytes) in [("<f4", 0.1f32.to_le_bytes()), (">f4", 0.1f32.to_be_bytes())] {
        assert_eq!(decoded(descr, "False", "(1, 1)", &bytes).unwrap().pixels.as_slice::<f32>(), [0.1]);
    }
    for (descr, bytes) in [("<f8", 0.1f64.to_le_bytes()), (">f8", 0.1f64.to_be_bytes())] {
        let p = decoded(descr, "False", "(1, 1)", &bytes).unwrap();
        assert_eq!((p.dtype, p.pixels.as_slice::<f64>()), (DType::F64, &[0.1][..]));
    }
    assert_eq!(decoded("|u1", "False", "(2, 1)", &[9, 8]).unwrap().pixels.as_slice::<u8>(), [9, 8]);
    assert_eq!(decoded("|b1", "False", "(3, 1)", &[0, 1, 7]).unwrap().pixels.as_slice::<u8>(), [0, 1, 1]);
}

#[test]
fn both_orders_are_read() {
    // Height 2, width 3, 2 channels; the value encodes the position: 100 c + 10 y + x.
    let at = |y: u8, x: u8, c: u8| 100 * c + 10 * y + x;
    let each = |f: &mut dyn FnMut(u8, u8, u8), order: [usize; 3]| {
        let extents = [2u8, 3, 2];
        for i in 0..extents[order[0]] {
            for j in 0..extents[order[1]] {
                for k in 0..extents[order[2]] {
                    let mut place = [0; 3];
                    (place[order[0]], place[order[1]], place[order[2]]) = (i, j, k);
                    f(place[0], place[1], place[2]);
                }
            }
        }
    };
    let listed = |order: [usize; 3]| {
        let mut values = Vec::new();
        each(&mut |y, x, c| values.push(at(y, x, c)), order);
        values
    };
    let pixels = listed([0, 1, 2]);
    let c = decoded("|u1", "False", "(2, 3, 2)", &pixels).unwrap();
    let fortran = decoded("|u1", "True", "(2, 3, 2)", &listed([2, 1, 0])).unwrap();
    assert_eq!((c.shape, c.pixels.as_slice::<u8>()), (Shape::new(2, 3, 2), &pixels[..]));
    assert_eq!(fortran.pixels.as_slice::<u8>(), &pixels[..]);
    let grey = decoded("|u1", "True", "(2, 3)", &[0, 10, 1, 11, 2, 12]).unwrap();
    assert_eq!(grey.pixels.as_slice::<u8>(), [0, 1, 2, 10, 11, 12]);
}

#[test]
fn what_cannot_be_read_is_named() {
    assert!(refused("<i8", "(2, 2)", &[0; 32]).contains("of type <i8 are not supported; use bool, uint8"));
    assert!(refused("<f2", "(2, 2)", &[0; 8]).contains("<f2"));
    assert!(refused("<c8", "(2, 2)", &[0; 32]).contains("<c8"));
    assert!(refused("|u1", "(4,)", &[0; 4]).contains("of shape (4,) is not a picture"));
    assert!(refused("|u1", "(1, 1, 1, 1, 1)", &[0]).contains("(1, 1, 1, 1, 1)"));
    assert!(refused("|u1", "()", &[0]).contains("()"));
    assert!(refused("|u1", "(0, 5)", &[]).contains("(0, 5) has no pixels"));
    assert!(refused("<f4", "(2, 2)", &[0; 15]).contains("too short for a NumPy array of shape (2, 2) and type <f4"));
    let structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1)}";
    let e = read(&npy(structured, &[0; 4]), &OpenOptions::default()).err().unwrap();
    assert!(e.contains("the header {'descr': [('a', '<f4')]"), "{e}");
}

#[test]
fn a_claim_costs_no_memory() {
    let huge = ["(4294967296, 1)", "(1, 1, 18446744073709551615)", "(4000000000, 1, 4000000000)"];
    for shape in huge {
        assert!(refused("<f8", shape, &[0; 8]).contains("too short"), "{shape}");
    }
    assert!(refused("|u1", "(65536, 65537)", &[]).contains("the limit of 4294967296"));
    for text in ["((((((((", "{'shape': (99999999999999999999999,)}", "{", "{'descr': '"] {
        assert!(read(&npy(text, &[]), &OpenOptions::default()).is_err(), "{text}");
    }
    assert!(read(b"\x93NUMPY\x02\0\xff\xff\xff\xff{", &OpenOptions::default()).is_err());
}
