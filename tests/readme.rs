//! What the README says is so.

use horus::core::ops::pixel::TABLE;
use horus::prelude::*;

const README: &str = include_str!("../README.md");
const PROGRAM: &str = include_str!("../examples/lines.rs");

#[test]
fn its_program_is_the_example() {
    let program = PROGRAM.split_once("\n\n").unwrap().1;
    assert!(README.contains(program), "README.md and examples/lines.rs differ");
}

#[test]
fn it_names_every_pixel_operation() {
    for row in TABLE {
        assert!(README.contains(&format!("`{}`", row.name)), "README.md does not name `{}`", row.name);
    }
}

#[test]
fn a_turn_of_its_loop_is_two_kernels() {
    let session = Session::builder().device("cpu").build().unwrap();
    let image = Image::<f32>::worms(&session, 40, 50).unwrap();
    let mut lines = image.zeros_like();
    for theta in [0.0, 45.0, 90.0, 135.0] {
        let turned = image.rotate(theta).unwrap();
        let across = turned.gauss_xy(5.0, 2.0, 0, 2).unwrap();
        let smooth = turned.gauss_xy(5.0, 2.0, 0, 0).unwrap();
        let contrast = across.absdiv(&smooth, 1e-3).unwrap() * 10.0;
        lines = lines.max(&contrast.rotate(-theta).unwrap()).unwrap();
    }
    drop(image);
    lines.to_vec().unwrap();
    // The maxima with their rotations are read off two responses at a time.
    assert_eq!(session.stats().made.launches, 4 * 2 + 2);
}
