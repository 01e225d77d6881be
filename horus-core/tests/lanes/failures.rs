//! A failing lane: all lanes end, none hangs, and the session keeps its images.

use std::sync::Arc;

use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_testing::faulty::{FaultControl, FaultyDevice};
use horus_testing::simulated::SimulatedDevice;

use crate::{DeviceConnection, KINDS, ROOM, cpu, device, one};

const SIDE: usize = 48;

fn given(s: &Session, seed: usize) -> Image<f32> {
    Image::from_fn(s, SIDE, SIDE, |y, x| ((y * 31 + x * 17 + seed) % 101) as f32)
}

fn bits(image: &Image<f32>) -> Result<Vec<u32>> {
    Ok(image.to_vec()?.into_iter().map(f32::to_bits).collect())
}

struct DeviceFailureProgram {
    held: Image<f32>,
    before: Image<f32>,
    result: Image<f32>,
}

fn program(s: &Session) -> Result<DeviceFailureProgram> {
    let held = given(s, 1);
    let before = held.gauss(1.0) + given(s, 2);
    before.sum().get()?;
    let result = (before.rotate(30.0, Interpolation::Bilinear) * 0.75 + &held).gauss(2.0);
    Ok(DeviceFailureProgram { held, before, result })
}

fn everything(p: &DeviceFailureProgram) -> Result<Vec<Vec<u32>>> {
    [&p.result, &p.before, &p.held].map(bits).into_iter().collect()
}

#[test]
fn whatever_fails_on_a_lane_nothing_that_is_held_is_lost() {
    let want = everything(&program(&one()).unwrap()).unwrap();
    for kind in KINDS {
        for lane in [0, 2] {
            let open = || {
                let (faulty, fault): (Arc<dyn Device>, FaultControl) = match kind {
                    DeviceConnection::Unified => {
                        let (device, fault) = FaultyDevice::new(cpu());
                        (Arc::new(device), fault)
                    }
                    DeviceConnection::Separate => {
                        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), ROOM));
                        (Arc::new(device), fault)
                    }
                    DeviceConnection::Connected => {
                        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), ROOM).with_fabric());
                        (Arc::new(device), fault)
                    }
                };
                let mut devices: Vec<_> = (0..3).map(|_| device(kind, ROOM)).collect();
                devices[lane] = faulty;
                (Session::over(devices).build().unwrap(), fault)
            };
            let mut failures = 0;
            for call in 0.. {
                let (s, fault) = open();
                let p = program(&s).unwrap();
                fault.fail_after(call);
                let failed = bits(&p.result);
                let met = fault.disarm();
                if let Err(e) = &failed {
                    failures += 1;
                    assert!(e.to_string().contains(&format!("lane {} of 3", lane + 1)), "{e}");
                }
                let got = everything(&p).unwrap_or_else(|e| panic!("{kind:?} lane {lane} call {call}: {e}"));
                assert!(got == want, "{kind:?}, call {call} of lane {lane}");
                if !met {
                    break;
                }
            }
            assert!(failures > 2, "{failures} failures of {kind:?}");
        }
    }
}

#[test]
fn a_lane_without_memory_fails_the_evaluation_and_is_named() {
    // Too small for the program, which planning detects; and filled by memory unknown to the
    // session.
    let small = Arc::new(SimulatedDevice::new(cpu(), 8_000));
    let full = Arc::new(SimulatedDevice::new(cpu(), 100_000));
    let taken = full.allocate(95_000).unwrap();
    for second in [small as Arc<dyn Device>, full] {
        let devices = vec![device(DeviceConnection::Separate, ROOM), second, device(DeviceConnection::Separate, ROOM)];
        let s = Session::over(devices).build().unwrap();
        let image = given(&s, 1);
        let e = image.rotate(45.0, Interpolation::Bilinear).to_vec().map(drop).unwrap_err().to_string();
        assert!(e.contains("lane 2 of 3") && e.contains("memory"), "{e}");
        assert!(bits(&image).unwrap() == bits(&given(&one(), 1)).unwrap(), "what was given is there");
    }
    drop(taken);
}
