//! The device or devices of a session, by name.

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
    /// Several devices of one process, possibly all of its GPUs.
    Several(Vec<ListedDevice>),
}

/// One of several devices of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedDevice {
    /// The cores of this machine.
    Cpu,
    /// The GPU of this index.
    Cuda(usize),
    /// Every GPU, each as a device of its own.
    EveryGpu,
}

/// Devices joined by `+`; indices of GPUs joined by commas.
pub(super) fn parse_devices(text: &str) -> Result<DeviceChoice, String> {
    let mut lanes = Vec::new();
    for device in text.split('+') {
        match device.split_once(':') {
            None if device == "cpu" => lanes.push(ListedDevice::Cpu),
            Some(("cuda", "all")) => lanes.push(ListedDevice::EveryGpu),
            Some(("cuda", indices)) => {
                for index in indices.split(',') {
                    lanes.push(ListedDevice::Cuda(index.parse().map_err(|_| String::new())?));
                }
            }
            _ => return Err(String::new()),
        }
    }
    let twice = |(i, lane): (usize, &ListedDevice)| *lane != ListedDevice::Cpu && lanes[..i].contains(lane);
    if let Some((_, lane)) = lanes.iter().enumerate().find(|(i, lane)| twice((*i, lane))) {
        return Err(match lane {
            ListedDevice::Cuda(index) => format!("GPU {index} is named twice"),
            _ => "all GPUs are named twice".into(),
        });
    }
    if lanes.contains(&ListedDevice::EveryGpu)
        && let Some(ListedDevice::Cuda(index)) = lanes.iter().find(|lane| matches!(lane, ListedDevice::Cuda(_)))
    {
        return Err(format!("GPU {index} is one of all GPUs"));
    }
    Ok(match lanes[..] {
        [ListedDevice::Cpu] => DeviceChoice::Cpu,
        [ListedDevice::Cuda(index)] => DeviceChoice::Cuda(Some(index)),
        _ => DeviceChoice::Several(lanes),
    })
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        DEVICE.values.parse(text)
    }
}
