//! Machines other than this one, by name, for predictions.

use super::link::Link;
use super::profile::MachineProfile;
use super::set::Machine;

/// The links of a network: between hosts of a rack, between racks, and whether the devices of a host share
/// them. Rates are 90 % of the nominal rates; latencies are estimates.
struct Network {
    name: &'static str,
    hosts: Link,
    racks: Link,
    shared: bool,
}

/// Hosts of a rack.
const RACK: usize = 4;

const NETWORKS: [Network; 2] = [
    // InfiniBand NDR, 400 Gb/s for each device; half of it leaves a rack.
    Network {
        name: "ib",
        hosts: Link { latency: 5e-6, bandwidth: 45e9 },
        racks: Link { latency: 7e-6, bandwidth: 22.5e9 },
        shared: false,
    },
    // Ethernet, 100 Gb/s for each host; half of it leaves a rack.
    Network {
        name: "eth",
        hosts: Link { latency: 20e-6, bandwidth: 11.25e9 },
        racks: Link { latency: 30e-6, bandwidth: 5.6e9 },
        shared: true,
    },
];

impl Machine {
    /// The machine with a name such as `h200x8-ib`, and the number of ranks on each of its hosts. The name
    /// has a device (`h200`, `h100`, or `cpu16` for a CPU of 16 threads), the number of ranks on each host
    /// (`x8`; 1 if omitted), and the network (`ib` or `eth`; the profile's if omitted), in racks of 4 hosts.
    ///
    /// # Errors
    /// The unknown part of the name, and the known names.
    pub fn named(name: &str) -> Result<(Machine, usize), String> {
        let (device, network) = name.split_once('-').map_or((name, None), |(d, n)| (d, Some(n)));
        let (device, ranks) = device.rsplit_once('x').map_or((device, "1"), |(d, n)| (d, n));
        let ranks = ranks.parse().ok().filter(|n| *n > 0);
        let ranks: usize = ranks.ok_or_else(|| format!("{name}: the number of ranks on each host must follow x"))?;
        let threads = device.strip_prefix("cpu").map(|n| n.parse::<usize>().ok().filter(|n| *n > 0));
        let profile = match (device, threads) {
            (_, Some(Some(threads))) => MachineProfile::of_cores(threads),
            ("h200" | "h100", _) => MachineProfile::shipped(&device.to_ascii_uppercase())
                .unwrap_or_else(|| MachineProfile::of_default(false)),
            _ => return Err(format!("{name}: the device must be h200, h100 or cpu with a number of threads")),
        };
        let machine = Machine::alike(profile);
        let Some(wanted) = network else { return Ok((machine, ranks)) };
        let network = NETWORKS.iter().find(|n| n.name == wanted);
        let network = network.ok_or_else(|| format!("{name}: the network must be ib or eth"))?;
        let share = if network.shared { ranks as f64 } else { 1.0 };
        let each = |link: Link| Link { bandwidth: link.bandwidth / share, ..link };
        Ok((machine.networked_by(each(network.hosts)).in_racks(RACK, each(network.racks)), ranks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::LinkLevel;

    #[test]
    fn names_give_devices_hosts_and_racks() {
        let (machine, on_each_host) = Machine::named("h200x8-ib").unwrap();
        assert_eq!((machine.of(0).hardware.device.as_str(), on_each_host), ("NVIDIA H200", 8));
        let machine = machine.packed(512, 8);
        let levels = [1, 8, 31, 32].map(|rank| machine.level(0, rank, true));
        assert_eq!(levels, [LinkLevel::Device, LinkLevel::Rack, LinkLevel::Rack, LinkLevel::Cluster]);
        assert_eq!(machine.level(0, 7, false), LinkLevel::Host);
        assert!(machine.link_between(0, 8, true).bandwidth > machine.link_between(0, 32, true).bandwidth);
        let shared = Machine::named("h100x4-eth").unwrap().0.packed(8, 4);
        assert!((shared.link(false).bandwidth - 11.25e9 / 4.0).abs() < 1.0, "{:?}", shared.link(false));
        let (cores, one) = Machine::named("cpu16").unwrap();
        assert_eq!((cores.of(0).hardware.threads, cores.of(0).is_unified(), one), (16, true, 1));
    }

    #[test]
    fn unknown_parts_of_names_are_told() {
        for (name, part) in [
            ("a100x8-ib", "the device"),
            ("h200x0", "the number of ranks"),
            ("h200x8-5g", "the network"),
            ("cpu", "the device"),
        ] {
            let told = Machine::named(name).unwrap_err();
            assert!(told.starts_with(name) && told.contains(part), "{told}");
        }
    }
}
