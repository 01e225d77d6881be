//! Programs over volumes, compared with NumPy (`tests/goldens/fields.py`, `kpp.py`, `tracers.py`, from the
//! published equations).

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use clap::Parser;
use horus::prelude::{AnyImage, BlockMap, Image, Mode};
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::session::Session;
use horus_models::kpp::{Coefficients, Kpp, Ocean, Parameters, Surface};
use horus_models::ocean::{Basin, Equation, OceanField, SeaWater, pressure};
use horus_models::tracers::{Cells, Column, Transport};
use horus_partition::{Blocks, Mask, Scheme, Seams};
use horus_testing::simulated::SimulatedDevice;

// It has a `main`, which is not called here.
#[allow(dead_code)]
#[path = "../../examples/ocean.rs"]
mod ocean_between_continents;
use ocean_between_continents::{ExampleOcean, OceanArgs};

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

/// The ocean without a floor.
fn water(session: &Session, depths: &[f64]) -> SeaWater {
    let floor = Image::constant(session, (1, 1), depths.len() as f64);
    SeaWater::new(&Basin::new(session, depths, &floor).unwrap(), Equation::Mwjf).unwrap()
}

/// All computed fields, plane by plane.
fn all(session: &Session) -> [Vec<f64>; 7] {
    let water = water(session, &depths());
    let t = Image::from_volume_fn(session, D, H, W, |z, y, x| tracers(z, y, x).0);
    let s = Image::from_volume_fn(session, D, H, W, |z, y, x| tracers(z, y, x).1);
    let none = Image::constant(session, (1, 1), 0.0);
    let (state, buoyancy) = (water.state(&t, &s), water.buoyancy(&t, &s));
    let [of_heat, of_salt] = water.double_diffusion(&t, &s, [&none, &none]);
    let results = [
        state.density,
        state.by_temperature,
        state.by_salinity,
        buoyancy.from_surface,
        buoyancy.from_below,
        of_heat,
        of_salt,
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
        // The depth that has this pressure.
        let (mut above, mut depth) = (0.0, 1e4);
        for _ in 0..60 {
            let middle = (above + depth) / 2.0;
            if pressure(middle) < p { above = middle } else { depth = middle }
        }
        let one = |v: f64| Image::from_slice(&session, (1, 1, 1), &[v]);
        let ours = water(&session, &[depth]).density(&one(t), &one(s)).to_vec().unwrap()[0];
        assert!((ours - rho).abs() < 5e-7, "{ours}, published {rho}");
    }
}

#[test]
fn results_of_state_share_launches() {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let cpu = Box::new(CpuDevice::new(Some(2)).unwrap());
    let session = Session::on(cpu).explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let water = water(&session, &depths());
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
                if ranks == 3 { Box::new(SimulatedDevice::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
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

/// The middles of layers of 10, 10, 20, 20, 40, 60, 80, 120 and 180 m.
const DEPTHS: [f64; 9] = [5.0, 15.0, 30.0, 50.0, 80.0, 130.0, 200.0, 300.0, 450.0];
const PLANE: usize = 5 * 7;

fn golden(name: &str) -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/goldens/fields/{name}.npy"));
    AnyImage::open_volume(&alone(Mode::Fused), path).unwrap().convert::<f64>().to_vec().unwrap()
}

/// The ocean of `tests/goldens/kpp.py`: temperature, salinity, velocities, stresses, heat, salt, sunlight,
/// the Coriolis parameter and the floor; of all columns, or of one alone.
fn given(session: &Session, column: Option<usize>) -> [OceanField; 11] {
    let (file, mut first) = (golden("kpp_given"), 0);
    [9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1].map(|levels| {
        let pixels = &file[first..first + levels * PLANE];
        first += levels * PLANE;
        match column {
            None => Image::from_slice(session, (levels, 5, 7), pixels),
            Some(at) => {
                let pixels: Vec<f64> = pixels.iter().skip(at).step_by(PLANE).copied().collect();
                Image::from_slice(session, (levels, 1, 1), &pixels)
            }
        }
    })
}

/// Viscosity, diffusivities, the nonlocal term and the depth of the boundary layer, one after the other.
fn mixed(session: &Session, given: [OceanField; 11], limited: bool) -> Vec<f64> {
    let [temperature, salinity, u, v, x, y, heat, salt, sunlight, coriolis, floor] = given;
    let water = SeaWater::new(&Basin::new(session, &DEPTHS, &floor).unwrap(), Equation::Mwjf).unwrap();
    let ocean = Ocean { temperature, salinity, velocity: [u, v] };
    let surface = Surface { stress: [x, y], heat, salt, sunlight, coriolis: limited.then_some(coriolis) };
    let made = Kpp::new(&water, Parameters::default()).unwrap().coefficients(&ocean, &surface);
    let fields = [made.viscosity, made.of_heat, made.of_salt, made.nonlocal, made.depth];
    fields.iter().flat_map(|field| field.to_vec().unwrap()).collect()
}

/// Depths of metres depend on the root of a quadratic equation, which costs some digits.
fn assert_near(what: &str, ours: &[f64], want: &[f64]) {
    assert_eq!(ours.len(), want.len(), "{what}");
    for (i, (ours, want)) in ours.iter().zip(want).enumerate() {
        assert!((ours - want).abs() <= 1e-9 * want.abs().max(1e-3), "{what}, {i}: {ours:e} instead of {want:e}");
    }
}

#[test]
fn mixing_by_kpp_is_that_of_numpy() {
    let session = alone(Mode::Fused);
    assert_near("limited", &mixed(&session, given(&session, None), true), &golden("kpp_mixing"));
    let free = mixed(&session, given(&session, None), false);
    let want = golden("kpp_free");
    assert_near("free", &free[..9 * PLANE], &want[..9 * PLANE]);
    assert_near("free depths", &free[36 * PLANE..], &want[9 * PLANE..]);
    for (at, want) in [0, 7 + 3, 2 * 7 + 6, 4 * 7 + 2].into_iter().zip(golden("kpp_alone").chunks(4 * 9 + 1)) {
        assert_near("alone", &mixed(&session, given(&session, Some(at)), true), want);
    }
}

#[test]
fn each_equation_of_state_is_that_of_numpy() {
    let session = alone(Mode::Fused);
    let [t, s, .., floor] = given(&session, None);
    let basin = Basin::new(&session, &DEPTHS, &floor).unwrap();
    let golden = golden("kpp_states");
    let equations = [Equation::Jmcd, Equation::Polynomial, Equation::Linear];
    for (equation, want) in equations.into_iter().zip(golden.chunks(3 * 9 * PLANE)) {
        let d = SeaWater::new(&basin, equation).unwrap().state(&t, &s);
        // Polynomials are fitted by other means, and have their condition.
        let most = if equation == Equation::Polynomial { 1e-9 } else { 1e-12 };
        for (field, want) in [d.density, d.by_temperature, d.by_salinity].iter().zip(want.chunks(9 * PLANE)) {
            let largest = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            for (ours, want) in field.to_vec().unwrap().iter().zip(want) {
                assert!((ours - want).abs() <= most * largest, "{equation:?}: {ours:e} instead of {want:e}");
            }
        }
    }
}

/// Temperature and salinity a step later than given.
fn later(session: &Session) -> [OceanField; 2] {
    let [t, s, ..] = given(session, None);
    let change = |of: fn(f64, f64, f64) -> f64| {
        Image::from_volume_fn(session, 9, 5, 7, move |z, y, x| of(z as f64, y as f64, x as f64))
    };
    [t + change(|z, y, x| 0.05 * (0.7 * z + y - 0.8 * x).cos()), s + change(|z, y, x| 0.01 * (z - 0.9 * y + x).sin())]
}

/// Temperature and salinity after a leapfrog step with the mixing of `kpp.py`, and after an Euler step.
fn stepped(session: &Session) -> Vec<f64> {
    let [t, s, u, v, _, _, heat, salt, sunlight, _, floor] = given(session, None);
    let mixing = golden("kpp_mixing");
    let mixed = |i: usize| Image::from_slice(session, (9, 5, 7), &mixing[i * 9 * PLANE..(i + 1) * 9 * PLANE]);
    let basin = Basin::new(session, &DEPTHS, &floor).unwrap();
    let grid = Cells::on_sphere(session, 28.0, 0.25, 5).unwrap();
    let transport = Transport::new(&basin, &grid, 900.0).unwrap();
    let kpp = Kpp::new(&SeaWater::new(&basin, Equation::Mwjf).unwrap(), Parameters::default()).unwrap();
    let none = Image::constant(session, (1, 1), 0.0);
    let (viscosity, nonlocal) = (mixed(0), mixed(3));
    let mixing = Coefficients { viscosity, of_heat: mixed(1), of_salt: mixed(2), nonlocal, depth: none.clone() };
    let surface = Surface { stress: [none.clone(), none], heat, salt, sunlight, coriolis: None };
    let columns = kpp.columns(&mixing, &surface);
    let flow = transport.flow([&u, &v]);
    let later = later(session);
    let before = [t, s];
    let step = |i: usize, now: &OceanField, interval| transport.step([&before[i], now], interval, &flow, &columns[i]);
    let leapfrog = [0, 1].map(|i| step(i, &later[i], 7200.0));
    let euler = [0, 1].map(|i| step(i, &before[i], 3600.0));
    leapfrog.iter().chain(&euler).flat_map(|field| field.to_vec().unwrap()).collect()
}

#[test]
fn a_step_of_tracers_is_that_of_numpy() {
    // Degrees and psu: rounding alone, enlarged by what mixing 0.5 m^2/s over 10 m costs.
    let (ours, want) = (stepped(&alone(Mode::Fused)), golden("tracers"));
    assert_eq!(ours.len(), want.len());
    for (i, (ours, want)) in ours.iter().zip(&want).enumerate() {
        assert!((ours - want).abs() < 1e-12, "{i}: {ours:e} instead of {want:e}");
    }
}

#[test]
fn a_step_keeps_what_is_constant_and_all_heat() {
    let session = alone(Mode::Fused);
    let [_, _, u, v, _, _, heat, .., floor] = given(&session, None);
    let number = |v: f64| Image::constant(&session, (1, 1), v);
    let column = |flux: &OceanField| Column {
        diffusivity: Image::constant(&session, (9, 1, 1), 0.05),
        nonlocal: number(0.0),
        flux: flux.clone(),
        passing: None,
    };
    let transport = |depths: &[f64], floor: &OceanField| {
        let basin = Basin::new(&session, depths, floor).unwrap();
        Transport::new(&basin, &Cells::on_sphere(&session, 28.0, 0.25, floor.height()).unwrap(), 1e3).unwrap()
    };
    let ocean = transport(&DEPTHS, &floor);
    // 7 degrees stay 7 degrees, whatever flows.
    let warm = Image::constant(&session, (9, 5, 7), 7.0);
    let after = ocean.step([&warm, &warm], 7200.0, &ocean.flow([&u, &v]), &column(&number(0.0))).to_vec().unwrap();
    let floor = floor.to_vec().unwrap();
    for (i, t) in after.iter().enumerate() {
        let want = if ((i / PLANE) as f64) < floor[i % PLANE] { 7.0 } else { 0.0 };
        assert!((t - want).abs() < 1e-12, "{i}: {t}");
    }
    // One column takes in all that passes the surface; one cell, too.
    for levels in [9, 1] {
        let alone = transport(&DEPTHS[..levels], &number(levels as f64));
        let before = Image::from_volume_fn(&session, levels, 1, 1, |z, _, _| (3.0 * z as f64).sin());
        let still = Image::constant(&session, (levels, 1, 1), 1.0);
        let flux = heat.crop(0, 0, 1, 1);
        let column = Column { diffusivity: Image::constant(&session, (levels, 1, 1), 0.05), ..column(&flux) };
        let after = alone.step([&before, &before], 3600.0, &alone.flow([&still, &still]), &column);
        let thick = [10.0, 10.0, 20.0, 20.0, 40.0, 60.0, 80.0, 120.0, 180.0];
        let taken = (after - &before).to_vec().unwrap().iter().zip(thick).map(|(d, h)| d * h).sum::<f64>();
        let given = flux.to_vec().unwrap()[0] * 3600.0;
        assert!((taken - given).abs() < 1e-12, "{levels} levels take {taken} of {given}");
    }
    let said = Cells::on_sphere(&session, 80.0, 1.0, 11).unwrap_err().to_string();
    assert!(said.contains("from 79.5 to 90.5 degrees"), "{said}");
}

#[test]
fn kpp_and_steps_give_the_same_bits_in_all_modes_and_on_all_numbers_of_ranks() {
    let bits = |v: Vec<f64>| v.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    let made = |session: &Session| bits([mixed(session, given(session, None), true), stepped(session)].concat());
    let want = made(&alone(Mode::Fused));
    assert!(made(&alone(Mode::Lazy)) == want, "lazy");
    for ranks in 2..=3 {
        let each = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            let device: Box<dyn Device> =
                if ranks == 3 { Box::new(SimulatedDevice::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
            made(&Session::on(device).communicator(Arc::new(comm)).build().unwrap())
        });
        assert!(each.into_iter().all(|one| one == want), "{ranks} ranks");
    }
}

#[test]
fn an_ocean_between_continents_moves_alike_on_all_numbers_of_ranks() {
    let moved = |session: &Session| {
        let planet = ExampleOcean::new(session, 11, 19).unwrap();
        let [t, s] = planet.after(3, None).unwrap();
        let picture = planet.picture(&t.slice(0)).to_vec().unwrap();
        ([t, s].map(|field| field.to_vec().unwrap()), picture)
    };
    let ([t, s], picture) = moved(&alone(Mode::Fused));
    assert_eq!(picture.len(), 44 * 76 * 3);
    let water: Vec<(f64, f64)> = t.iter().zip(&s).filter(|(_, s)| **s != 0.0).map(|(t, s)| (*t, *s)).collect();
    assert!(water.len() > 300 && water.iter().all(|(t, s)| (1.0..29.0).contains(t) && (34.9..35.1).contains(s)));
    assert!(t[..11 * 19].iter().zip(&s).any(|(t, s)| *s == 0.0 && *t == 0.0), "land");
    let saltiest = water.iter().map(|(_, s)| *s).fold(0.0, f64::max);
    assert!(saltiest > 35.0 + 1e-4, "drought leaves salt: {saltiest}");
    let mask = Mask::new(19, 11, s[..11 * 19].iter().map(|s| *s != 0.0).collect()).unwrap();
    let blocks = Blocks::new(&mask, (4, 3), 1, Seams::default()).unwrap();
    assert!(blocks.len() < blocks.in_all(), "land is left out");
    let bits = |fields: [Vec<f64>; 2]| fields.map(|f| f.into_iter().map(f64::to_bits).collect::<Vec<_>>());
    let want = bits([t, s]);
    for ranks in 1..=3 {
        let parts = Scheme::Hierarchical.partition(&blocks, &ranks.to_string().parse().unwrap()).unwrap();
        let map = BlockMap::new((11, 19), (3, 4), blocks.placed(&parts)).unwrap();
        let each = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            let told = Arc::new(Mutex::new(String::new()));
            let sink = Arc::clone(&told);
            let explained = move |text: &str| sink.lock().unwrap().push_str(text);
            let session = Session::on(Box::new(cpu)).communicator(Arc::new(comm)).explain(explained).build().unwrap();
            let strips = moved(&session);
            session.place(map.clone()).unwrap();
            let in_blocks = moved(&session);
            assert!(told.lock().unwrap().contains("blocks:\n      4x5 blocks of 3x4"), "in strips");
            [strips, in_blocks]
        });
        let mut all = each.into_iter().flatten();
        assert!(all.all(|(one, shown)| bits(one) == want && shown == picture), "{ranks} ranks");
    }
}

#[test]
fn a_stopped_ocean_continues_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("ocean.zarr");
    let after = |words: &[&str]| {
        let args = OceanArgs::try_parse_from([&["ocean", "--steps"], words].concat()).unwrap();
        let planet = ExampleOcean::new(&alone(Mode::Fused), 11, 19).unwrap();
        let fields = planet.after(args.steps, args.checkpoints.of("ocean").as_ref());
        fields
            .map(|fields| fields.map(|field| field.to_vec().unwrap().into_iter().map(f64::to_bits).collect::<Vec<_>>()))
    };
    let checkpoints = ["--checkpoint", store.to_str().unwrap(), "--checkpoint-every", "2"];
    let whole = after(&["4"]).unwrap();
    assert!(after(&[&["3"], &checkpoints[..]].concat()).unwrap() != whole);
    let resumed = |steps| after(&[&[steps, "--resume"], &checkpoints[..]].concat());
    assert!(resumed("1").unwrap_err().to_string().contains("its checkpoint is after 2 steps"));
    assert!(resumed("4").unwrap() == whole);
}

#[test]
fn diffusivities_are_added_to() {
    let session = alone(Mode::Fused);
    let [t, s, .., floor] = given(&session, None);
    let water = SeaWater::new(&Basin::new(&session, &DEPTHS, &floor).unwrap(), Equation::Mwjf).unwrap();
    let added = [0.5, 0.25].map(|v| Image::constant(&session, (9, 5, 7), v));
    let none = Image::constant(&session, (1, 1), 0.0);
    let [heat, salt] = water.double_diffusion(&t, &s, added.each_ref()).map(|f| f.to_vec().unwrap());
    let [no_heat, no_salt] = water.double_diffusion(&t, &s, [&none, &none]).map(|f| f.to_vec().unwrap());
    assert!(heat.iter().zip(&no_heat).all(|(a, b)| *a == b + 0.5));
    assert!(salt.iter().zip(&no_salt).all(|(a, b)| *a == b + 0.25));
}

#[test]
fn basins_that_cannot_be_are_refused() {
    let session = alone(Mode::Fused);
    let told = |depths: &[f64], floor: &[f64]| {
        let floor = Image::from_slice(&session, (1, floor.len()), floor);
        let basin = Basin::new(&session, depths, &floor);
        let water = basin.and_then(|basin| SeaWater::new(&basin, Equation::Polynomial));
        water.and_then(|water| Kpp::new(&water, Parameters::default())).unwrap_err().to_string()
    };
    for (depths, floor, says) in [
        (&[5.0, 5.0][..], &[2.0][..], "level 2 lies at 5 m"),
        (&[-5.0], &[0.0], "level 1 lies at -5 m"),
        (&[5.0, f64::NAN], &[2.0], "level 2 lies at NaN m"),
        (&[5.0, 15.0], &[1.0, 3.0], "from 0 to 2, the number of levels: 1 columns"),
        (&[5.0, 15.0], &[0.5, -1.0, f64::NAN], "3 columns"),
        (&[5.0, 9000.0], &[2.0], "known to 8250 m"),
        (&[5.0, 9.0], &[2.0], "level 2 at 9 m is not the middle of a layer: the layer above reaches to 10 m"),
    ] {
        let said = told(depths, floor);
        assert!(said.contains(says), "{said}");
    }
    let volume = Image::constant(&session, (2, 3, 3), 1.0);
    let said = Basin::new(&session, &[5.0, 15.0], &volume).unwrap_err().to_string();
    assert!(said.contains("one image, not 2x3x3"), "{said}");
}

#[test]
fn the_program_mixes_an_ocean() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let session = alone(Mode::Fused);
    let names = ["t", "s", "u", "v", "x", "y", "heat", "salt", "sun", "f", "floor"];
    for (name, field) in names.into_iter().zip(given(&session, None)) {
        field.save(file(&format!("{name}.npy"))).unwrap();
    }
    let list = DEPTHS.map(|d| d.to_string()).join(",");
    let pop = |words: &str| {
        let words = words.split(' ').map(|word| if word.ends_with(".npy") { file(word) } else { word.into() });
        let ends = ["--depths", &list, "--out-dir", dir.path().to_str().unwrap(), "--device", "cpu"];
        let out = Command::new(env!("CARGO_BIN_EXE_pop")).args(words).args(ends).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let forced = "--velocity u.npy v.npy --stress x.npy y.npy --heat heat.npy --salt salt.npy --sunlight sun.npy";
    let (done, said) = pop(&format!("kpp t.npy s.npy --floor floor.npy {forced} --coriolis f.npy"));
    assert!(done, "{said}");
    let want = mixed(&session, given(&session, None), true);
    let results = ["viscosity", "of_heat", "of_salt", "nonlocal", "boundary_layer"];
    let got = results.iter().flat_map(|name| {
        AnyImage::open_volume(&session, file(&format!("{name}.npy"))).unwrap().convert::<f64>().to_vec().unwrap()
    });
    assert!(got.collect::<Vec<_>>() == want);

    for (name, field) in ["t_now", "s_now"].iter().zip(later(&session)) {
        field.save(file(&format!("{name}.npy"))).unwrap();
    }
    let on = "--floor floor.npy --coriolis f.npy --south 28 --degrees 0.25 --horizontal 900";
    let step = format!("step t_now.npy s_now.npy --before t.npy s.npy {forced} {on} --seconds 3600");
    let (done, said) = pop(&step);
    assert!(done, "{said}");
    let got = ["temperature", "salinity"].iter().flat_map(|name| {
        AnyImage::open_volume(&session, file(&format!("{name}.npy"))).unwrap().convert::<f64>().to_vec().unwrap()
    });
    assert_near("a step", &got.collect::<Vec<_>>(), &golden("tracers")[..2 * 9 * PLANE]);
    let (done, said) = pop(&step.replace("--south 28", "--south 89.9"));
    assert!(!done && said.contains("between the poles"), "{said}");
    let (done, said) = pop(&step.replace("3600", "-3600"));
    assert!(!done && said.contains("--seconds"), "{said}");

    let (done, said) = pop("mixing t.npy s.npy --floor floor.npy --diffusivities of_heat.npy of_salt.npy");
    assert!(done, "{said}");
    let (done, said) = pop("state t.npy s.npy --floor t.npy");
    assert!(!done && said.contains("t.npy: 9x5x7 pixels; temperatures require 5x7"), "{said}");
    let (done, said) = pop("state t.npy heat.npy");
    assert!(!done && said.contains("heat.npy"), "{said}");
    let (done, said) = pop("kpp t.npy s.npy");
    assert!(!done && said.contains("--velocity"), "{said}");
}
