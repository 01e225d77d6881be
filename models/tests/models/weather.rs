//! Tendencies of the weather, compared with NumPy (`tests/goldens/fields.py`), with the
//! conservation of energy, and bit by bit with themselves in other modes and on other numbers of
//! ranks.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use horus::prelude::{AnyImage, Float, Image, Mode};
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::session::Session;
use horus_models::forecast::Leapfrog;
use horus_models::weather::{Dynamics, Tendencies, Weather, half_levels, latitudes};
use horus_testing::simulated::SimulatedDevice;

const D: usize = 7;
const H: usize = 11;
const W: usize = 14;
const NAMES: [&str; 5] = ["surface_pressure", "temperature", "u", "v", "humidity"];

fn dynamics<T: Float>(session: &Session) -> Dynamics<T> {
    let (rows, step) = latitudes(H);
    Dynamics::new(session, &half_levels(D), W, &rows, step)
}

fn pixels<T: Float>(tendencies: Tendencies<T>) -> [Vec<T>; 5] {
    let Tendencies { surface_pressure, temperature, u, v, humidity } = tendencies;
    [surface_pressure, temperature, u, v, humidity].map(|image| image.to_vec().unwrap())
}

/// All tendencies of wave weather, level by level.
fn all<T: Float>(session: &Session) -> [Vec<T>; 5] {
    let dynamics = dynamics::<T>(session);
    pixels(dynamics.tendencies(&dynamics.waves(session)))
}

/// The weather after three steps, field after field.
fn forecast<T: Float>(session: &Session) -> Vec<f64> {
    let dynamics = dynamics::<T>(session);
    let begin = dynamics.waves(session);
    let after = Leapfrog::new(&dynamics, &begin, 10.0, 2e12).after(&begin, 3, None).unwrap();
    let fields = [after.surface_pressure, after.temperature, after.u, after.v, after.humidity];
    fields.iter().flat_map(|field| field.convert::<f64>().to_vec().unwrap()).collect()
}

fn alone(mode: Mode) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).mode(mode).build().unwrap()
}

fn file(path: &Path) -> Vec<f64> {
    AnyImage::open_volume(&alone(Mode::Fused), path).unwrap().convert::<f64>().to_vec().unwrap()
}

/// The largest difference relative to the largest expected number.
fn differ(ours: impl IntoIterator<Item = f64>, want: &[f64]) -> f64 {
    let ours: Vec<f64> = ours.into_iter().collect();
    assert_eq!(ours.len(), want.len());
    let largest = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    // A NaN is larger than any tolerance.
    ours.iter().zip(want).map(|(a, b)| (a - b).abs() / largest).fold(0.0, |m, d| if d <= m { m } else { d })
}

#[test]
fn tendencies_are_those_of_numpy() {
    let session = alone(Mode::Fused);
    let (double, single) = (all::<f64>(&session), all::<f32>(&session));
    for ((name, double), single) in NAMES.iter().zip(double).zip(single) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/fields");
        let want = file(&folder.join(format!("hirlam_{name}.npy")));
        let apart = differ(double, &want);
        assert!(apart < 1e-12, "{name}: {apart:e}");
        let apart = differ(single.into_iter().map(f64::from), &want);
        assert!(apart < 1e-4, "{name} in f32: {apart:e}");
    }
}

#[test]
fn a_forecast_is_that_of_numpy() {
    let session = alone(Mode::Fused);
    let want = file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/fields/hirlam_forecast.npy"));
    let (double, single) = (forecast::<f64>(&session), forecast::<f32>(&session));
    let (mut first, volume) = (0, D * H * W);
    for (name, pixels) in NAMES.iter().zip([H * W, volume, volume, volume, volume]) {
        let part = first..first + pixels;
        let apart = differ(double[part.clone()].iter().copied(), &want[part.clone()]);
        assert!(apart < 1e-13, "{name}: {apart:e}");
        let apart = differ(single[part.clone()].iter().copied(), &want[part]);
        assert!(apart < 1e-5, "{name} in f32: {apart:e}");
        first += pixels;
    }
    assert_eq!(first, want.len());
    // All is frame.
    let (rows, step) = latitudes(1);
    let dynamics = Dynamics::<f64>::new(&session, &half_levels(1), 1, &rows, step);
    let begin = dynamics.waves(&session);
    let after = Leapfrog::new(&dynamics, &begin, 10.0, 1e11).after(&begin, 2, None).unwrap();
    let moved = after.u.absdiff(&begin.u).max_value().get().unwrap();
    assert!(moved < 1e-13, "the wind of one pixel changes by {moved}");
}

#[test]
fn energy_is_conserved() {
    // Calm at the frame, where values beyond it would contribute.
    let session = alone(Mode::Fused);
    let dynamics = dynamics::<f64>(&session);
    let inside = |y: usize, x: usize| if (2..H - 3).contains(&y) && (2..W - 3).contains(&x) { 1.0 } else { 0.0 };
    let wave =
        |a: f64| move |z: usize, y: usize, x: usize| (a * (1 + z) as f64 + 1.3 * y as f64 + 0.9 * x as f64).sin();
    let volume = |f: &dyn Fn(usize, usize, usize) -> f64| Image::from_volume_fn(&session, D, H, W, f);
    let weather = Weather {
        surface_pressure: Image::from_fn(&session, H, W, |y, x| 1e5 + 900.0 * wave(0.7)(0, y, x)),
        surface_geopotential: Image::from_fn(&session, H, W, |y, x| 2e3 * (1.0 + wave(0.3)(2, x, y))),
        temperature: volume(&|z, y, x| 215.0 + 10.0 * z as f64 + 4.0 * wave(0.4)(z, y, x)),
        u: volume(&|z, y, x| inside(y, x) * (20.0 + 9.0 * wave(1.1)(z, y, x))),
        v: volume(&|z, y, x| inside(y, x) * (3.0 + 12.0 * wave(0.8)(z, x, y))),
        humidity: volume(&|z, y, x| 0.004 * (1.0 + wave(0.6)(z, y, x))),
    };
    let [ps_t, t_t, u_t, v_t, q_t] = pixels(dynamics.tendencies(&weather));
    let read = |image: &Image<f64>| image.to_vec().unwrap();
    let (ps, ground, t, q) = (
        read(&weather.surface_pressure),
        read(&weather.surface_geopotential),
        read(&weather.temperature),
        read(&weather.humidity),
    );
    let (u, v) = (read(&weather.u), read(&weather.v));
    let (rows, step) = latitudes(H);
    let (halves, cos) = (half_levels(D), |at: f64| at.cos());
    // Energy without latent heat, and mass of vapour: changes per second, and the largest part of
    // them.
    let (mut energy, mut vapour, mut mass, mut most) = (0.0, 0.0, 0.0, 0.0f64);
    for (z, y, x) in (0..D).flat_map(|z| (0..H).flat_map(move |y| (0..W).map(move |x| (z, y, x)))) {
        let (area, north) = (cos(rows[y]), cos(rows[y] + step / 2.0));
        let (flat, i) = (y * W + x, (z * H + y) * W + x);
        let [(a, b), (c, d)] = [halves[z], halves[z + 1]];
        let (dp, dp_t) = (c - a + (d - b) * ps[flat], (d - b) * ps_t[flat]);
        // Winds lie between two cells, half of whose masses they move; the last ones are calm.
        let (mut kinetic, mut kinetic_t) = (0.0, 0.0);
        let (west, south) = ((x > 0).then(|| i - 1), (y > 0).then(|| i - W));
        for j in [Some(i), west].into_iter().flatten() {
            kinetic += 0.25 * u[j] * u[j];
            kinetic_t += 0.5 * u[j] * u_t[j];
        }
        for (j, wide) in [(Some(i), north), (south, cos(rows[y] - step / 2.0))] {
            let Some(j) = j else { continue };
            kinetic += 0.25 * wide / area * v[j] * v[j];
            kinetic_t += 0.5 * wide / area * v[j] * v_t[j];
        }
        let parts = [
            area * dp_t * (1004.64 * t[i] + kinetic),
            area * dp * (1004.64 * t_t[i] + kinetic_t),
            if z == 0 { area * ground[flat] * ps_t[flat] } else { 0.0 },
        ];
        energy += parts.iter().sum::<f64>();
        most = parts.iter().fold(most, |m, part| m.max(part.abs()));
        vapour += area * (dp_t * q[i] + dp * q_t[i]);
        mass += area * dp_t;
    }
    let parts = (energy / most, vapour / most, mass / most);
    assert!(parts.0.abs() < 1e-10 && parts.1.abs() < 1e-13 && parts.2.abs() < 1e-13, "{parts:?} of {most}");
    assert!(most > 1e3, "something happens: {most}");
}

#[test]
fn air_at_rest_stays_so() {
    let session = alone(Mode::Fused);
    let (flat, none) = (|v: f64| Image::constant(&session, (H, W), v), Image::constant(&session, (D, H, W), 0.0));
    let weather = Weather {
        surface_pressure: flat(1e5),
        surface_geopotential: flat(800.0),
        temperature: Image::from_volume_fn(&session, D, H, W, |z, _, _| 220.0 + 9.0 * z as f64),
        u: none.clone(),
        v: none.clone(),
        humidity: Image::from_volume_fn(&session, D, H, W, |z, _, _| 1e-3 * z as f64),
    };
    let tendencies = pixels(dynamics::<f64>(&session).tendencies(&weather));
    assert!(tendencies.iter().flatten().all(|v| *v == 0.0));
}

#[test]
fn all_modes_and_numbers_of_ranks_give_the_same_bits() {
    let all = |session: &Session| (all::<f32>(session), forecast::<f32>(session));
    let bits = |(all, forecast): ([Vec<f32>; 5], Vec<f64>)| {
        let all = all.map(|v| v.into_iter().map(f32::to_bits).collect::<Vec<_>>());
        (all, forecast.into_iter().map(f64::to_bits).collect::<Vec<_>>())
    };
    let want = bits(all(&alone(Mode::Fused)));
    for mode in [Mode::Naive, Mode::Lazy] {
        assert!(bits(all(&alone(mode))) == want, "{mode:?}");
    }
    for ranks in 2..=3 {
        let each = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            let device: Box<dyn Device> =
                if ranks == 3 { Box::new(SimulatedDevice::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
            all(&Session::on(device).communicator(Arc::new(comm)).build().unwrap())
        });
        assert!(each.into_iter().all(|one| bits(one) == want), "{ranks} ranks");
    }
}

#[test]
fn what_is_computed_together_follows_from_the_extent_and_the_bits_do_not() {
    for (levels, height, width) in [(17, 61, 93), (1, 61, 93), (32, 5, 300)] {
        let tendencies = |mode| {
            let session = alone(mode);
            let (rows, step) = latitudes(height);
            let dynamics = Dynamics::<f32>::new(&session, &half_levels(levels), width, &rows, step);
            let weather = dynamics.waves(&session);
            pixels(dynamics.tendencies(&weather)).map(|v| v.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        assert!(tendencies(Mode::Fused) == tendencies(Mode::Lazy), "{levels} levels of {height} x {width}");
    }
}

#[test]
fn the_program_writes_tendencies_and_tells_times() {
    let dir = tempfile::tempdir().unwrap();
    let hirlam = |words: &[&str]| {
        let extent = ["--levels", "7", "--rows", "11", "--columns", "14", "--device", "cpu"];
        Command::new(env!("CARGO_BIN_EXE_hirlam")).args(extent).args(words).output().unwrap()
    };
    let out = hirlam(&["--out-dir", dir.path().to_str().unwrap(), "--f64"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for (name, want) in NAMES.iter().zip(all::<f64>(&alone(Mode::Fused))) {
        assert!(file(&dir.path().join(format!("{name}.npy"))) == want, "{name}");
    }
    let steps = ["--steps", "3", "--seconds", "10", "--diffusion", "2e12", "--f64"];
    let out = hirlam(&[&["--out-dir", dir.path().to_str().unwrap()], &steps[..]].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let written = NAMES.iter().flat_map(|name| file(&dir.path().join(format!("{name}.npy"))));
    assert!(written.collect::<Vec<_>>() == forecast::<f64>(&alone(Mode::Fused)), "a forecast");
    let out = hirlam(&["--runs", "2", "--steps", "3"]);
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("--out-dir"));
    let out = hirlam(&["--runs", "2"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.starts_with("14 x 11 x 7 f32, CPU"), "{said}");
    assert!(said.contains(" ms from arrays to arrays (0.0 MB in"), "{said}");
    let out = hirlam(&["--out-dir", "nowhere/at/all"]);
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("nowhere/at/all"));
}
