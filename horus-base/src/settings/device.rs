//! The device of a session, or several, by name.

use super::DEVICE;

/// The device of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The GPU or the CPU, whichever is predicted to finish first.
    #[default]
    Auto,
    /// The cores of this machine.
    Cpu,
    /// The GPU of this index; without one, each rank on a node takes a different GPU.
    Cuda(Option<usize>),
    /// Several devices of one process, each a lane; possibly all of its GPUs.
    Lanes(Vec<LaneChoice>),
}

/// One of several devices of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneChoice {
    /// The cores of this machine.
    Cpu,
    /// The GPU of this index.
    Cuda(usize),
    /// Every GPU, each a lane.
    EveryGpu,
}

/// Devices joined by `+`; indices of GPUs joined by commas.
pub(super) fn lanes(text: &str) -> Result<DeviceChoice, String> {
    let mut lanes = Vec::new();
    for device in text.split('+') {
        match device.split_once(':') {
            None if device == "cpu" => lanes.push(LaneChoice::Cpu),
            Some(("cuda", "all")) => lanes.push(LaneChoice::EveryGpu),
            Some(("cuda", indices)) => {
                for index in indices.split(',') {
                    lanes.push(LaneChoice::Cuda(index.parse().map_err(|_| String::new())?));
                }
            }
            _ => return Err(String::new()),
        }
    }
    let twice = |(i, lane): (usize, &LaneChoice)| *lane != LaneChoice::Cpu && lanes[..i].contains(lane);
    if let Some((_, lane)) = lanes.iter().enumerate().find(|(i, lane)| twice((*i, lane))) {
        return Err(match lane {
            LaneChoice::Cuda(index) => format!("GPU {index} is named twice"),
            _ => "all GPUs are named twice".into(),
        });
    }
    if lanes.contains(&LaneChoice::EveryGpu)
        && let Some(LaneChoice::Cuda(index)) = lanes.iter().find(|lane| matches!(lane, LaneChoice::Cuda(_)))
    {
        return Err(format!("GPU {index} is one of all GPUs"));
    }
    Ok(match lanes[..] {
        [LaneChoice::Cpu] => DeviceChoice::Cpu,
        [LaneChoice::Cuda(index)] => DeviceChoice::Cuda(Some(index)),
        _ => DeviceChoice::Lanes(lanes),
    })
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        DEVICE.values.parse(text)
    }
}
