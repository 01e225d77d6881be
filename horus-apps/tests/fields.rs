//! Programs over volumes, against their formulas written down for one point.

use std::process::Command;
use std::sync::{Arc, Mutex};

use horus::core::comm::threads::ThreadComm;
use horus::core::cpu::device::CpuDevice;
use horus::core::device::Device;
use horus::core::device::simulated::Simulated;
use horus::core::session::Session;
use horus::prelude::{AnyImage, Image, Mode};
use horus_apps::fields::ocean::{SeaWater, pressure};

/// Density as published, for one point: equation A1 to A3 of McDougall and others.
fn density(s: f64, t: f64, p: f64) -> f64 {
    let over = 9.99843699e2 + 7.35212840 * t - 5.45928211e-2 * t.powi(2) + 3.98476704e-4 * t.powi(3) + 2.96938239 * s
        - 7.23268813e-3 * s * t
        + 2.12382341e-3 * s * s
        + 1.04004591e-2 * p
        + 1.03970529e-7 * p * t * t
        + 5.18761880e-6 * p * s
        - 3.24041825e-8 * p * p
        - 1.23869360e-11 * p * p * t * t;
    let under = 1.0 + 7.28606739e-3 * t - 4.60835542e-5 * t.powi(2)
        + 3.68390573e-7 * t.powi(3)
        + 1.80809186e-10 * t.powi(4)
        + 2.14691708e-3 * s
        - 9.27062484e-6 * s * t
        - 1.78343643e-10 * s * t.powi(3)
        + 4.76534122e-6 * s.powf(1.5)
        + 1.63410736e-9 * s.powf(1.5) * t * t
        + 5.30848875e-6 * p
        - 3.03175128e-16 * p * p * t.powi(3)
        - 1.27934137e-17 * p.powi(3) * t;
    over / under
}

const D: usize = 5;
const H: usize = 7;
const W: usize = 9;

fn depths() -> Vec<f64> {
    (0..D).map(|z| 5.0 + 40.0 * (z * z) as f64).collect()
}

/// Temperature and salinity of a point; somewhere salt fingers, somewhere convection, somewhere neither.
fn tracers(z: usize, y: usize, x: usize) -> (f64, f64) {
    let (z, y, x) = (z as f64, y as f64, x as f64);
    (16.0 + (y - 3.0) * 0.7 * z + 0.3 * (x * 1.7).sin(), 34.5 + (x - 4.0) * 0.15 * z + 0.05 * (y * 2.3).cos())
}

fn close(ours: f64, theirs: f64, scale: f64, what: &str) {
    assert!((ours - theirs).abs() <= 1e-9 * scale, "{what}: {ours} instead of {theirs}");
}

/// Everything that is computed, plane by plane.
fn all(session: &Session) -> [Vec<f64>; 7] {
    let pressures: Vec<f64> = depths().into_iter().map(pressure).collect();
    let water = SeaWater::at(&Image::from_volume(session, D, 1, 1, &pressures));
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
        let one = |v: f64| Image::from_volume(&session, 1, 1, 1, &[v]);
        let ours = SeaWater::at(&one(p)).density(&one(t), &one(s)).to_vec().unwrap()[0];
        assert!((ours - rho).abs() < 5e-7 && (density(s, t, p) - rho).abs() < 5e-7, "{ours}, published {rho}");
    }
}

#[test]
fn results_of_state_share_launches() {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let cpu = Box::new(CpuDevice::new(Some(2)).unwrap());
    let session = Session::on(cpu).explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let pressures: Vec<f64> = depths().into_iter().map(pressure).collect();
    let water = SeaWater::at(&Image::from_volume(&session, D, 1, 1, &pressures));
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
fn state_and_mixing_are_those_of_each_point() {
    let [rho, by_t, by_s, surface, below, heat, salt] = all(&alone(Mode::Fused));
    let p: Vec<f64> = depths().into_iter().map(pressure).collect();
    let slope = |z: usize, y: usize, x: usize| {
        let ((t, s), h) = (tracers(z, y, x), 1e-4);
        let central = |f: &dyn Fn(f64) -> f64| (f(h) - f(-h)) / (2.0 * h);
        (central(&|h| density(s, t + h, p[z])), central(&|h| density(s + h, t, p[z])))
    };
    let mut kinds = [0; 3];
    for (i, (z, y, x)) in (0..D).flat_map(|z| (0..H).flat_map(move |y| (0..W).map(move |x| (z, y, x)))).enumerate() {
        let (t, s) = tracers(z, y, x);
        let here = density(s, t, p[z]);
        close(rho[i], here, here, "density");
        // Central differences have about seven digits.
        let (dt, ds) = slope(z, y, x);
        assert!((by_t[i] - dt).abs() < 1e-6 && (by_s[i] - ds).abs() < 1e-6, "{} {dt}, {} {ds}", by_t[i], by_s[i]);
        let (ts, ss) = tracers(0, y, x);
        close(surface[i], 9.806 * (1.0 - density(ss, ts, p[z]) / here), 1e-2, "buoyancy from the surface");
        if z + 1 == D {
            assert_eq!((below[i], heat[i], salt[i]), (0.0, 0.0, 0.0));
            continue;
        }
        let (tb, sb) = tracers(z + 1, y, x);
        close(
            below[i],
            9.806 * (1.0 - density(s, t, p[z + 1]) / density(sb, tb, p[z + 1])),
            1e-2,
            "buoyancy from below",
        );
        let (dt_below, ds_below) = (by_t[i + H * W], by_s[i + H * W]);
        let by_heat = -0.5 * (by_t[i] + dt_below) * (t - tb);
        let by_salt = 0.5 * (by_s[i] + ds_below) * (s - sb);
        let (want_heat, want_salt) = if by_heat > by_salt && by_salt > 0.0 {
            kinds[0] += 1;
            let x = ((by_heat / by_salt).min(2.55) - 1.0) / 1.55;
            let finger = 1e-4 * (1.0 - x.powi(3));
            (0.7 * finger, finger)
        } else if by_heat < 0.0 && by_salt < 0.0 && by_heat > by_salt {
            kinds[1] += 1;
            let r = by_heat / by_salt;
            let convection = 1.5e-6 * 0.909 * (4.6 * (-0.54 * (1.0 / r - 1.0)).exp()).exp();
            (convection, convection * if r > 0.5 { 1.85 * r - 0.85 } else { 0.15 * r })
        } else {
            kinds[2] += 1;
            (0.0, 0.0)
        };
        close(heat[i], want_heat, 1e-4, "diffusivity of heat");
        close(salt[i], want_salt, 1e-4, "diffusivity of salt");
    }
    assert!(kinds.iter().all(|n| *n > 5), "{kinds:?} of each kind");
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
