//! What files say beside their pixels: a row for each operation, of what its results keep, move or drop. New operations on
//! pixels have theirs by the library's table; others state where their pixels lie (`ImageOperation::position_map`), and none has
//! a default.

use std::path::Path;

use horus_core::dtype::Element;
use horus_core::image::Image;
use horus_core::image::bindings;
use horus_core::io::{AnyImage, PixelSize, with_pixel_size};
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_core::ops::resize::Resampling;
use horus_core::ops::sampling::Sampling;
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};

use super::georeference::{geotiff, read_geo_tags};
use super::{TestFolder, session};

/// A GeoTIFF whose pixels are 2 high and 1 wide.
fn open(s: &Session, path: &Path) -> AnyImage {
    AnyImage::open(s, path).unwrap().with_pixel_size(PixelSize::of([None, Some(2.0), Some(1.0)]))
}

/// Grid (kept, moved or dropped), value of missing pixels, size of pixels (rows by columns), and names of channels of the
/// file that an image is saved to.
fn said<T: Element>(image: &Image<T>, input: &Path, output: &Path) -> String {
    image.save(output).unwrap();
    let (found, whole) = (read_geo_tags(output), read_geo_tags(input));
    let place = |of: &super::georeference::GeoTags| (of.scale.clone(), of.tie.clone(), of.matrix.clone());
    let grid = match (found.scale.is_empty() && found.matrix.is_empty(), place(&found) == place(&whole)) {
        (true, _) => "-",
        (_, true) => "kept",
        _ => "moved",
    };
    let again = AnyImage::open(image.session(), output).unwrap();
    let size = again.pixel_size().map(|size| format!("{}x{}", size.rows as f32, size.columns as f32));
    let (missing, size) = (found.nodata.unwrap_or("-".into()), size.unwrap_or("-".into()));
    let names = match again.channel_names() {
        [] => "-".into(),
        names => names.join(","),
    };
    format!("{grid} {missing} {size} {names}")
}

#[test]
fn every_operation_keeps_moves_or_drops_what_files_say() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.ome.tif"));
    geotiff(&input, 0.0);
    let named = |names: &[&str], image: &AnyImage| {
        image.with_channel_names(names.iter().map(|name| (*name).to_owned()).collect()).convert::<u8>()
    };
    let a = named(&["a"], &open(&s, &input));
    let b = open(&s, &input).convert::<u8>();
    let rgb =
        Image::stack(&s, [&named(&["r"], &open(&s, &input)), &named(&["g"], &open(&s, &input)), &b], Axis::Channels);
    let f = a.convert::<f32>();
    let mask = a.gt(100);
    let shape = a.shape();
    let mut wrong = Vec::new();
    let mut row = |name: &str, found: String, want: &str| {
        if found != want {
            wrong.push(format!("{name}: {found}, not {want}"));
        }
    };
    macro_rules! rows {
        ($want:literal: $($name:literal $image:expr;)*) => {
            $(row($name, said(&$image, &input, &output), $want);)*
        };
    }
    for info in TABLE {
        match info.kind {
            PixelKind::Unary => row(info.name, said(&bindings::unary(&a, info.op), &input, &output), "kept 255 2x1 a"),
            PixelKind::Binary => {
                row(info.name, said(&bindings::binary(&a, info.op, &b), &input, &output), "kept 255 2x1 a");
                row(info.name, said(&bindings::binary(&a, info.op, 2u8), &input, &output), "kept 255 2x1 a");
            }
            PixelKind::Compare => {
                row(info.name, said(&bindings::compare(&a, info.op, &b), &input, &output), "kept - 2x1 a")
            }
            PixelKind::Ternary => {
                let result = match info.op {
                    PixelOp::AbsDiv => a.absdiv(&b, 1u8),
                    PixelOp::MulAdd => a.mul_add(2u8, &b),
                    PixelOp::Clamp => a.clamp(9, 99),
                    other => panic!("a row for {other}"),
                };
                row(info.name, said(&result, &input, &output), "kept 255 2x1 a");
            }
            PixelKind::Select => row(info.name, said(&mask.select(&a, 0), &input, &output), "kept 255 2x1 a"),
        }
    }
    rows! { "kept 255 2x1 a":
        "unchanged" a;
        "lookup" a.lookup(&(0..=255).rev().collect::<Vec<u8>>());
        "median" a.median(3);
        "rank" a.median(7);
        "dilate" a.dilate((3, 3));
        "opening" a.opening((3, 5));
        "reconstruct" a.min(&b).reconstruct(&a, Connectivity::FACES);
        "stack of levels" Image::stack(&s, [&a, &a], Axis::Depth).slice(1);
        "number" &a + a.max_value();
        "row" &a + a.over(Axis::Rows).max();
        "column" &a + a.over(Axis::Columns).min();
    }
    // Values of other types are not missing where bytes of the file were.
    rows! { "kept - 2x1 a":
        "convert" f;
        "gauss" a.gauss(2.0);
        "correlate" f.correlate(&Filter::row([1.0, 2.0, 1.0]));
        "box_mean" a.box_mean((31, 31));
        "fourier" f.within(1e-3).gauss(30.0);
        "spline" f.spline_coefficients([Axis::Rows, Axis::Columns], Sampling::spline(3).unwrap());
        "cumsum" a.over(Axis::Columns).cumsum();
        "cumsum of rows" a.over(Axis::Rows).cumsum();
        "distances" mask.convert::<u8>().distances().euclidean::<f32>();
        "label" mask.convert::<u8>().label(Connectivity::FACES);
        "mask" mask.clone() & a.lt(200);
        "index" Image::<f32>::index(&s, shape, Axis::Rows) + &f;
    }
    rows! { "moved 255 2x1 a":
        "flip" a.flip(Axis::Rows);
        "crop" a.crop(1, 2, 20, 30);
        "pad" a.pad(1, 2, 3, 4);
        "shift" a.shift(0, 1, -2);
        "translate" a.translate(0.5, 0.25);
    }
    rows! { "moved 255 4x2 a":
        "resize" a.resize(24, 32, Resampling::Area);
        "sampled" a.resize(24, 32, Interpolation::Nearest);
        "step" a.step(2);
        "affine" a.affine([[2.0, 0.0, 3.0], [0.0, 2.0, 1.0]], (20, 20), Interpolation::Bilinear);
        "tiles" a.tiles(2, 2).max();
        "windows" a.windows((5, 3), (2, 2)).min();
    }
    rows! { "moved 255 1x2 a":
        "transpose" a.transpose();
        "quarter turn" a.rotate(90.0, Interpolation::Nearest);
    }
    rows! { "moved 255 - a":
        "rotate" a.rotate(30.0, Interpolation::Bilinear);
        "shear" a.affine([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0]], (48, 64), Interpolation::Bilinear);
    }
    rows! { "moved - 4x2 a":
        "pyramid_down" a.pyramid_down();
    }
    rows! { "moved - 1x0.5 a":
        "pyramid_up" a.pyramid_up(96, 128);
    }
    let (y, x) = (Image::<f64>::index(&s, shape, Axis::Rows), Image::<f64>::index(&s, shape, Axis::Columns));
    rows! { "- 255 - a":
        "remap" a.remap([&y, &x], Interpolation::Bilinear);
        "maximum of rows" a.over(Axis::Columns).max();
        "maximum" a.over([Axis::Rows, Axis::Columns]).max();
    }
    rows! { "- - - a":
        "matmul" f.matmul(&f.transpose());
    }
    rows! { "- 255 2x1 a":
        "flipped together" a.max(a.flip(Axis::Rows));
    }
    let other = with_pixel_size(&a, PixelSize::of([None, Some(3.0), Some(1.0)]));
    rows! { "kept 255 - a":
        "other size" &a + &other;
    }
    rows! { "kept 255 2x1 -":
        "other names" &a + rgb.channel(0);
    }
    rows! { "kept 255 2x1 r,g,":
        "stack" rgb;
        "flip of channels" rgb.flip(Axis::Channels).flip(Axis::Channels);
        "beside one channel" rgb.max(&a);
    }
    rows! { "kept 255 2x1 g":
        "channel" rgb.channel(1);
    }
    assert_eq!(Shape::new(48, 64, 1), shape);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
