//! Loops, series, volumes and choices of a session, on lanes.

use std::sync::{Arc, Mutex};

use horus_core::device::Device;
use horus_core::dtype::{Element, Pixel};
use horus_core::error::Result;
use horus_core::image::{Image, Until};
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_core::settings::Ranks;
use horus_core::shape::{Axis, Border};
use horus_testing::simulated::SimulatedDevice;

use crate::{DeviceConnection, KINDS, ROOM, cpu, device, lanes, one};

fn given(s: &Session, height: usize, width: usize) -> Image<f32> {
    let pixels: Vec<f32> = (0..height * width).map(|i| ((i * 31 + i / width * 17) % 101) as f32 * 0.37 - 9.0).collect();
    Image::from_slice(s, (height, width), &pixels)
}

fn bits<T: Element + Pixel>(image: &Image<T>) -> Result<Vec<u8>> {
    Ok(bytemuck::cast_slice(&image.to_vec()?).to_vec())
}

fn on_all(program: impl Fn(&Session) -> Result<Vec<Vec<u8>>>) {
    let want = program(&one()).unwrap();
    for kind in KINDS {
        for count in [2, 3, 5] {
            let s = lanes(kind, count).build().unwrap();
            assert!(program(&s).unwrap() == want, "{kind:?}, {count} lanes");
            // If each program chooses, images change from one number of lanes to another.
            let s = lanes(kind, count).ranks(Ranks::Auto).build().unwrap();
            assert!(program(&s).unwrap() == want, "{kind:?}, {count} lanes or one");
        }
    }
}

#[test]
fn loops_run_on_lanes() {
    on_all(|s| {
        let u = given(s, 33, 17);
        let looped = s.iterate(u.clone(), 21, |u| u.gauss(0.8) * 0.5 + 1.0)?;
        let ended = s.iterate(u, Until::below(1e-3, 40).every(3), |u| u.gauss(1.0) * 0.5)?;
        Ok(vec![bits(&looped.state)?, ended.steps.to_le_bytes().to_vec(), bits(&ended.state)?])
    });
}

#[test]
fn volumes_run_on_lanes() {
    on_all(|s| {
        let pixels: Vec<f32> = (0..4 * 15 * 9).map(|i| ((i * 37) % 113) as f32).collect();
        let volume = Image::<f32>::from_slice(s, (4, 15, 9), &pixels);
        let smooth = volume.gauss(1.0);
        Ok(vec![
            bits(&(&smooth - &volume))?,
            bits(&smooth.rotate(10.0, Interpolation::Bilinear))?,
            smooth.sum().get()?.to_le_bytes().to_vec(),
        ])
    });
}

#[test]
fn what_is_started_runs_on_lanes_beside_the_program() {
    on_all(|s| {
        let image = given(s, 40, 12);
        let smooth = image.gauss(1.5);
        let mean = smooth.mean();
        s.start();
        let more = &smooth * 2.0;
        s.start();
        Ok(vec![mean.get()?.to_le_bytes().to_vec(), bits(&more)?, bits(&smooth)?])
    });
}

#[test]
fn an_image_of_one_lane_and_one_of_all_meet() {
    // A session that uses its lanes only for large programs.
    let s = lanes(DeviceConnection::Connected, 3).ranks(Ranks::Auto).build().unwrap();
    let o = one();
    let program = |s: &Session| -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        let (small, large) = (given(s, 8, 8), given(s, 512, 300));
        let little = &small * 2.0;
        s.evaluate()?;
        let mut much = large.clone();
        for sigma in [3.0, 4.0, 5.0] {
            much = much.gauss(sigma) - large.gauss_2d(20.0, sigma, 3.0, 0, 2);
        }
        s.evaluate()?;
        all.push(bits(&(little + much.resize(8, 8, Interpolation::Bilinear)))?);
        all.push(bits(&much)?);
        Ok(all)
    };
    assert!(program(&s).unwrap() == program(&o).unwrap());
}

#[test]
fn small_programs_take_one_lane_and_large_ones_all_and_explain_says_so() {
    let texts: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&texts);
    let devices = (0..2).map(|_| device(DeviceConnection::Separate, 1 << 30)).collect();
    let builder = Session::over(devices).ranks(Ranks::Auto);
    let s = builder.explain(move |t| told.lock().unwrap().push(t.to_owned())).build().unwrap();
    let said = || {
        let all = std::mem::take(&mut *texts.lock().unwrap());
        all.into_iter().find(|t| t.starts_with("predicted to take:")).expect("a word on lanes")
    };
    (given(&s, 8, 8) * 2.0).to_vec().unwrap();
    let small = said();
    assert!(small.contains("ms on 2 of 2 devices") && !small.contains("rows divided"), "{small}");
    let forecast = given(&s, 2048, 2048).gauss_2d(30.0, 8.0, 3.0, 0, 2).gauss_2d(60.0, 8.0, 3.0, 0, 2);
    forecast.sum().get().unwrap();
    let large = said();
    assert!(large.contains("rows divided as 50.0%, 50.0%") && large.contains("device 2  simulated device"), "{large}");
}

#[test]
fn a_device_on_the_hosts_memory_beside_one_with_its_own() {
    let want = |s: &Session| -> Result<Vec<Vec<u8>>> {
        let image = given(s, 50, 21);
        let smooth = image.gauss(1.5).with_border(Border::Wrap).rotate(20.0, Interpolation::Bilinear);
        let mut into = vec![0.0f32; 50 * 21];
        smooth.read_into(&mut into)?;
        Ok(vec![
            bits(&(&smooth * &image))?,
            bytemuck::cast_slice(&into).to_vec(),
            bits(&smooth.median(3).over(Axis::Rows).sum())?,
        ])
    };
    let mixed: Vec<Arc<dyn Device>> =
        vec![Arc::new(SimulatedDevice::new(cpu(), ROOM)), Arc::new(cpu()), Arc::new(cpu())];
    let s = Session::over(mixed).weights(vec![2.0, 1.0, 3.0]).build().unwrap();
    assert!(!s.peer_to_peer());
    assert!(want(&s).unwrap() == want(&one()).unwrap());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let devices = || (0..2).map(|_| device(DeviceConnection::Unified, ROOM)).collect::<Vec<_>>();
    let e = Session::over(devices()).weights(vec![1.0]).build().unwrap_err().to_string();
    assert!(e.contains("got 1 weights for 2 devices"), "{e}");
    assert!(Session::over(Vec::new()).build().is_err());
    let e = horus_core::comm::threads::ThreadComm::run(2, |comm| {
        let s = Session::over(devices()).communicator(Arc::new(comm)).build();
        s.map(drop).unwrap_err().to_string()
    });
    assert!(e.iter().all(|e| e.contains("2 devices of one process on 2 ranks")), "{e:?}");
}

#[test]
fn a_trace_has_a_process_for_each_lane() {
    let s = lanes(DeviceConnection::Connected, 3).trace(true).build().unwrap();
    given(&s, 64, 9).gauss(1.0).to_vec().unwrap();
    let json = s.trace_json().unwrap().unwrap();
    for lane in 0..3 {
        assert!(json.contains(&format!("\"device {lane}\"")), "{json}");
    }
    assert!(json.starts_with("{\"traceEvents\":[{") && !json.contains(",,"));
}
