//! Pictures with alpha: what mixes neighbours weighs colours by it.

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Pixel;
use horus_core::io::{Alpha, AnyImage};
use horus_core::ops::resize::Resampling;
use horus_core::prelude::*;

const HEIGHT: usize = 23;
const WIDTH: usize = 31;

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

/// A type of pictures.
trait PicturePixel: Pixel {
    fn any(image: &Image<Self>) -> AnyImage;
    fn known(any: AnyImage) -> Image<Self>;
}

macro_rules! kinds {
    ($($t:ty: $kind:ident),*) => {$(
        impl PicturePixel for $t {
            fn any(image: &Image<$t>) -> AnyImage {
                AnyImage::$kind(image.clone())
            }
            fn known(any: AnyImage) -> Image<$t> {
                let AnyImage::$kind(image) = any else { panic!("another type") };
                image
            }
        }
    )*};
}
kinds!(u8: U8, u16: U16, f32: F32, f64: F64);

/// A red disc on transparent pixels of a colour that nobody sees, with a soft edge; of a type's range.
fn disc<T: Pixel>(session: &Session, hidden: [f64; 3]) -> Image<T> {
    let opaque = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
    let at = |y: usize, x: usize| {
        let away = (y as f64 - 11.0).hypot(x as f64 - 14.5);
        (9.0 - away).clamp(0.0, 1.0)
    };
    let planes = (0..4).map(|c| {
        Image::from_fn(session, HEIGHT, WIDTH, |y, x| {
            let seen = at(y, x);
            T::from_f64(match c {
                3 => seen * opaque,
                _ if seen == 0.0 => hidden[c] * opaque,
                0 => (0.5 + 0.5 * (x as f64 / WIDTH as f64)) * opaque,
                _ => 0.125 * opaque,
            })
        })
    });
    Image::stack(session, planes, Axis::Channels)
}

/// The picture with its last channel known as alpha.
fn known<T: PicturePixel>(image: &Image<T>, alpha: Option<Alpha>) -> Image<T> {
    T::known(T::any(image).with_alpha(alpha))
}

type Mix<T> = fn(&Image<T>) -> Image<T>;

/// Operations that keep the type and mix neighbours.
fn mixes<T: Pixel>() -> Vec<(&'static str, Mix<T>)> {
    vec![
        ("resize linear", |i| i.resize(17, 40, Interpolation::Bilinear)),
        ("resize cubic", |i| i.resize(40, 17, Interpolation::Bicubic)),
        ("resize by area", |i| i.resize(9, 12, Resampling::Area)),
        ("resize by Lanczos", |i| i.resize(50, 12, Resampling::Lanczos)),
        ("rotate", |i| i.rotate(30.0, Interpolation::Bilinear)),
        ("rotate mirrored", |i| i.with_border(Border::Reflect).rotate(-50.0, Interpolation::Bicubic)),
        ("rotate on a constant", |i| i.with_border(Border::Constant(1.0)).rotate(10.0, Interpolation::Bilinear)),
        ("translate", |i| i.translate(0.25, -1.5)),
        ("affine", |i| i.affine([[1.0, 0.3, -2.0], [0.1, 0.8, 1.0]], (20, 20), Interpolation::Bilinear)),
        ("gauss", |i| i.gauss(1.5).convert()),
        ("gauss, repeated", |i| i.with_border(Border::Replicate).gauss((0.7, 2.0)).convert()),
        ("pyramid down", |i| i.pyramid_down().convert()),
        ("pyramid up", |i| i.pyramid_up(2 * HEIGHT, 2 * WIDTH - 1).convert()),
    ]
}

fn follow<T: PicturePixel>() {
    let session = session();
    let opaque = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
    let given = disc::<T>(&session, [0.0, 1.0, 0.0]);
    let picture = known(&given, Some(Alpha::Unassociated));
    let others = [[1.0, 0.0, 1.0], [0.0; 3], [1.0; 3]]
        .map(|hidden| known(&disc::<T>(&session, hidden), Some(Alpha::Unassociated)));
    for (name, mix) in mixes::<T>() {
        let what = format!("{name} {}", T::DTYPE);
        let found = mix(&picture);
        let [red, green, blue, alpha]: [Image<T>; 4] = found.unstack(Axis::Channels).try_into().expect("four channels");
        // Alpha is that of a plane, and stays alpha.
        let plain = mix(&given);
        assert_eq!(alpha.to_vec().unwrap(), plain.channel(3).to_vec().unwrap(), "{what}");
        assert!(T::any(&found).alpha().is_some(), "{what}");
        // Hidden colours do not matter.
        let all = found.to_vec().unwrap();
        for other in &others {
            assert_eq!(mix(other).to_vec().unwrap(), all, "{what}");
        }
        // No green where something is seen, and red that was there: the definition.
        let weight = given.channel(3).convert::<f64>() / opaque;
        let constant = name.contains("constant");
        for (c, colour) in [red, green, blue].iter().enumerate() {
            let (colour, alpha) = (colour.to_vec().unwrap(), alpha.to_vec().unwrap());
            let weighed = given.channel(c).convert::<f64>() * &weight;
            let by = |i: &Image<f64>| -> Vec<f64> {
                let (_, mix) = mixes::<f64>().into_iter().find(|(of, _)| *of == name).expect("of all types");
                mix(i).to_vec().unwrap()
            };
            let (weighed, weight) = (by(&weighed), by(&weight));
            for (i, colour) in colour.iter().enumerate() {
                let (colour, seen) = (colour.to_f64(), alpha[i].to_f64());
                // A quotient by less than this is mostly the rounding of its f32 terms.
                if seen <= 0.0 || constant || weight[i] < 0.02 {
                    continue;
                }
                let want = (weighed[i] / weight[i]).min(if T::DTYPE.is_float() { f64::MAX } else { opaque });
                // Sums of f32 round by 1e-6 or so, a quotient by .02 makes 5e-5 of it; integers round once.
                let bound = if T::DTYPE.is_float() { 1e-4 } else { 0.51 + 1e-4 * opaque };
                assert!((colour - want).abs() <= bound, "{what}: {colour} instead of {want} at {i} of channel {c}");
            }
        }
    }
}

#[test]
fn colours_are_weighed_by_alpha() {
    follow::<u8>();
    follow::<u16>();
    follow::<f32>();
    follow::<f64>();
}

#[test]
fn what_is_opaque_is_as_without_alpha() {
    let session = session();
    let colours = disc::<u8>(&session, [0.3, 0.6, 0.9]);
    let opaque = Image::constant(&session, (HEIGHT, WIDTH), 255u8);
    let parts = [0, 1, 2].map(|c| colours.channel(c)).into_iter().chain([opaque]);
    let given = Image::stack(&session, parts, Axis::Channels);
    let picture = known(&given, Some(Alpha::Unassociated));
    for (name, mix) in mixes::<u8>()
        .into_iter()
        .filter(|(name, _)| !matches!(*name, "rotate" | "translate" | "affine") && !name.contains("constant"))
    {
        let (got, want) = (mix(&picture).to_vec().unwrap(), mix(&given).to_vec().unwrap());
        // Halves: a quotient by sums of alpha falls on the other side of a few of them.
        let differs = got.iter().zip(&want).filter(|(a, b)| a != b).count();
        assert!(
            got.iter().zip(&want).all(|(a, b)| a.abs_diff(*b) <= 1) && differs * 200 <= got.len(),
            "{name}: {differs}"
        );
    }
}

#[test]
fn multiplied_colours_and_alpha_that_is_only_a_channel_are_mixed_as_they_are() {
    let session = session();
    let given = disc::<f32>(&session, [0.0, 1.0, 0.0]);
    let plain = given.gauss(1.0).to_vec().unwrap();
    for alpha in [None, Some(Alpha::Associated)] {
        assert_eq!(known(&given, alpha).gauss(1.0).to_vec().unwrap(), plain);
    }
    let weighed = known(&given, Some(Alpha::Unassociated)).gauss(1.0).to_vec().unwrap();
    assert_ne!(weighed, plain);
}

#[test]
fn hidden_colours_that_are_no_numbers_do_not_matter() {
    let session = session();
    let of = |hidden: f64| known(&disc::<f32>(&session, [hidden; 3]), Some(Alpha::Unassociated));
    for hidden in [f64::NAN, f64::INFINITY] {
        for (name, mix) in mixes::<f32>() {
            let (got, want) = (mix(&of(hidden)).to_vec().unwrap(), mix(&of(0.5)).to_vec().unwrap());
            assert!(got.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        }
    }
}
