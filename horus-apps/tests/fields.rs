//! Programs over volumes, compared with NumPy (`tests/goldens/fields.py`, from the published
//! equations).

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use horus::core::comm::threads::ThreadComm;
use horus::core::cpu::device::CpuDevice;
use horus::core::device::Device;
use horus::core::session::Session;
use horus::prelude::{AnyImage, Image, Mode};
use horus_apps::fields::ocean::{SeaWater, pressure};
use horus_testing::simulated::Simulated;

const D: usize = 5;
const H: usize = 7;
const W: usize = 9;

fn depths() -> Vec<f64> {
    (0..D).map(|z| 5.0 + 40.0 * (z * z) as f64).collect()
}

/// Temperature and salinity of a point, with regions of salt fingers, of convection, and of
/// neither.
fn tracers(z: usize, y: usize, x: usize) -> (f64, f64) {
    let (z, y, x) = (z as f64, y as f64, x as f64);
    (16.0 + (y - 3.0) * 0.7 * z + 0.3 * (x * 1.7).sin(), 34.5 + (x - 4.0) * 0.15 * z + 0.05 * (y * 2.3).cos())
}

/// All computed fields, plane by plane.
fn all(session: &Session) -> [Vec<f64>; 7] {
    let pressures: Vec<f64> = depths().into_iter().map(pressure).collect();
    let water = SeaWater::at(&Image::from_slice(session, (D, 1, 1), &pressures));
    let t = Image::from_volume_fn(session, D, H, W, |z, y, x| tracers(z, y, x).0);
    let s = Image::from_volume_fn(session, D, H, W, |z, y, x| tracers(z, y, x).1);
    let (state, mixing) = (water.state(&t, &s), water.mixing(&t, &s));
    let results = [
        state.density,
        state.by_temperature,
        state.by_salinity,
        mixing.from_surface,
        mixing.from_below,
        mixing.of_heat,
        mixing.of_salt,
    ];
    results.map(|r| r.to_vec().unwrap())
}

fn alone(mode: Mode) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).mode(mode).build().unwrap()
}

#[test]
fn published_values_of_density_are_met() {
    for (s, t, p, rho) in
        [(35.0, 25.0, 2000.0, 1031.654229), (20.0, 20.0, 1000.0, 1017.726743), (40.0, 12.0, 8000.0, 1062.928258)]
    {
        let session = alone(Mode::Fused);
        let one = |v: f64| Image::from_slice(&session, (1, 1, 1), &[v]);
        let ours = SeaWater::at(&one(p)).density(&one(t), &one(s)).to_vec().unwrap()[0];
        assert!((ours - rho).abs() < 5e-7, "{ours}, published {rho}");
    }
}

#[test]
fn results_of_state_share_launches() {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let cpu = Box::new(CpuDevice::new(Some(2)).unwrap());
    let session = Session::on(cpu).explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let pressures: Vec<f64> = depths().into_iter().map(pressure).collect();
    let water = SeaWater::at(&Image::from_slice(&session, (D, 1, 1), &pressures));
    let t = Image::from_volume_fn(&session, D, H, W, |z, y, x| tracers(z, y, x).0);
    let s = Image::from_volume_fn(&session, D, H, W, |z, y, x| tracers(z, y, x).1);
    session.evaluate().unwrap();
    let state = water.state(&t, &s);
    session.evaluate().unwrap();
    drop(state);
    let text = told.lock().unwrap();
    assert!(text.contains("= 3 results: ") && !text.contains("= sqrt"), "{text}");
}

#[test]
fn state_and_mixing_are_those_of_numpy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/fields");
    let session = alone(Mode::Fused);
    // Densities of 1000 kg/m^3 have 13 digits in f64; buoyancy is a difference of two similar ones.
    let fields = [
        ("density", 1e-9),
        ("by_temperature", 1e-12),
        ("by_salinity", 1e-12),
        ("from_surface", 1e-13),
        ("from_below", 1e-13),
        ("of_heat", 1e-15),
        ("of_salt", 1e-15),
    ];
    for ((name, most), ours) in fields.into_iter().zip(all(&session)) {
        let golden = AnyImage::open_volume(&session, folder.join(format!("pop_{name}.npy"))).unwrap();
        let golden = golden.convert::<f64>().to_vec().unwrap();
        assert_eq!(ours.len(), golden.len());
        for (i, (ours, golden)) in ours.into_iter().zip(golden).enumerate() {
            assert!((ours - golden).abs() <= most, "{name}, {i}: {ours:e} instead of {golden:e}");
        }
    }
}

#[test]
fn all_modes_and_numbers_of_ranks_give_the_same_bits() {
    let bits = |all: [Vec<f64>; 7]| all.map(|v| v.into_iter().map(f64::to_bits).collect::<Vec<_>>());
    let want = bits(all(&alone(Mode::Fused)));
    for mode in [Mode::Naive, Mode::Lazy] {
        assert!(bits(all(&alone(mode))) == want, "{mode:?}");
    }
    for ranks in 2..=3 {
        let each = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            let device: Box<dyn Device> =
                if ranks == 3 { Box::new(Simulated::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
            all(&Session::on(device).communicator(Arc::new(comm)).build().unwrap())
        });
        assert!(each.into_iter().all(|one| bits(one) == want), "{ranks} ranks");
    }
}

#[test]
fn the_program_reads_and_writes_levels() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let session = alone(Mode::Fused);
    Image::from_volume_fn(&session, D, H, W, |z, y, x| tracers(z, y, x).0).save(file("t.npy")).unwrap();
    Image::from_volume_fn(&session, D, H, W, |z, y, x| tracers(z, y, x).1).save(file("s.npy")).unwrap();
    let pop = |depths: &str, task: &str| {
        let words =
            [task, &file("t.npy"), &file("s.npy"), "--depths", depths, "--out-dir", dir.path().to_str().unwrap()];
        Command::new(env!("CARGO_BIN_EXE_pop")).args(words).args(["--device", "cpu"]).output().unwrap()
    };
    let list = depths().iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let want = all(&session);
    for (task, first, names) in [
        ("state", 0, &["density", "by_temperature", "by_salinity"][..]),
        ("mixing", 3, &["from_surface", "from_below", "of_heat", "of_salt"]),
    ] {
        let out = pop(&list, task);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        for (name, want) in names.iter().zip(&want[first..]) {
            let got = AnyImage::open_volume(&session, file(&format!("{name}.npy"))).unwrap().convert::<f64>();
            assert!(got.to_vec().unwrap() == *want, "{name}");
        }
    }
    let out = pop("5,10", "state");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("--depths has 2 numbers for 5 levels"), "{said}");
}
