//! The machines of all ranks, the same set on each rank: an input of planning.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::link::{Link, LinkLevel};
use super::profile::MachineProfile;

/// The machines of the ranks of a session; the same on every rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Distinct profiles, at least one.
    profiles: Vec<MachineProfile>,
    /// Index of each rank's profile; the list repeats for further ranks.
    of: Vec<usize>,
    /// Host of each rank.
    hosts: Vec<usize>,
    /// Hosts of a rack, and the link between racks; `None` if all hosts are in one.
    racks: Option<(usize, Link)>,
    /// Digest of the other fields.
    digest: u64,
}

impl Machine {
    fn new(profiles: Vec<MachineProfile>, of: Vec<usize>, hosts: Vec<usize>, racks: Option<(usize, Link)>) -> Machine {
        let mut digest = DefaultHasher::new();
        // Numbers have no hash, but their text has.
        serde_json::to_string(&profiles).unwrap_or_default().hash(&mut digest);
        (&of, &hosts).hash(&mut digest);
        racks.map(|(n, link)| (n, link.latency.to_bits(), link.bandwidth.to_bits())).hash(&mut digest);
        Machine { profiles, of, hosts, racks, digest: digest.finish() }
    }

    /// The machines of ranks with equal profiles, each on its own host.
    pub fn alike(profile: MachineProfile) -> Machine {
        Machine::new(vec![profile], vec![0], vec![0], None)
    }

    /// A digest with which ranks compare their machines.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The assumed machine, if no profile is known: see [`MachineProfile::of_default`].
    pub fn of_default(unified: bool) -> Machine {
        Machine::alike(MachineProfile::of_default(unified))
    }

    /// The machines of ranks given by profile and host number, at least one.
    pub fn of_ranks(ranks: Vec<(MachineProfile, usize)>) -> Machine {
        let mut profiles: Vec<MachineProfile> = Vec::new();
        let (mut of, mut hosts) = (Vec::new(), Vec::new());
        for (profile, host) in ranks {
            let known = profiles.iter().position(|p| *p == profile);
            of.push(known.unwrap_or(profiles.len()));
            hosts.push(host);
            if known.is_none() {
                profiles.push(profile);
            }
        }
        if profiles.is_empty() {
            return Machine::of_default(true);
        }
        Machine::new(profiles, of, hosts, None)
    }

    /// The distinct profiles.
    pub fn profiles(&self) -> &[MachineProfile] {
        &self.profiles
    }

    /// The profile of rank `rank`. Profiles repeat for ranks beyond those of the session.
    pub fn of(&self, rank: usize) -> &MachineProfile {
        &self.profiles[self.of[rank % self.of.len()]]
    }

    /// The highest cost on any of the machines.
    pub fn slowest(&self, cost: impl Fn(&MachineProfile) -> f64) -> f64 {
        self.profiles.iter().map(cost).fold(0.0, f64::max)
    }

    /// Returns `true` if the devices of all ranks compute on the memory of their hosts.
    pub fn is_unified(&self) -> bool {
        self.profiles.iter().all(MachineProfile::is_unified)
    }

    /// Returns `true` if only some ranks have devices that compute on the memory of their hosts.
    pub fn is_mixed(&self) -> bool {
        !self.is_unified() && self.profiles.iter().any(MachineProfile::is_unified)
    }

    /// The slowest link for messages: from device to device (`direct`) or through the host, or the network between
    /// several hosts.
    pub fn link(&self, direct: bool) -> Link {
        let is_one_host = self.hosts.iter().all(|host| *host == self.hosts[0]);
        let mut links = self.profiles.iter().map(|p| match (is_one_host, direct) {
            (true, true) => p.links.peers,
            (true, false) => p.links.host,
            (false, _) => p.links.network,
        });
        let first = links.next().unwrap_or_default();
        links.fold(first, Link::worse)
    }

    /// The level that messages between two ranks cross: within a host, from device to device
    /// (`direct`) or through its memory.
    pub fn level(&self, a: usize, b: usize, direct: bool) -> LinkLevel {
        let (a, b) = (self.host(a), self.host(b));
        match self.racks {
            _ if a == b => {
                if direct {
                    LinkLevel::Device
                } else {
                    LinkLevel::Host
                }
            }
            Some((hosts, _)) if a / hosts != b / hosts => LinkLevel::Cluster,
            _ => LinkLevel::Rack,
        }
    }

    /// The link between two ranks: see [`Machine::level`].
    pub(crate) fn link_between(&self, a: usize, b: usize, direct: bool) -> Link {
        let level = self.level(a, b, direct);
        let link = |p: &MachineProfile| match (level, self.racks) {
            (LinkLevel::Device, _) => p.links.peers,
            (LinkLevel::Host, _) => p.links.host,
            (LinkLevel::Cluster, Some((_, racks))) => p.links.network.worse(racks),
            (LinkLevel::Rack | LinkLevel::Cluster, _) => p.links.network,
        };
        link(self.of(a)).worse(link(self.of(b)))
    }

    /// The host of rank `rank`. Ranks beyond those of the session occupy further hosts.
    pub fn host(&self, rank: usize) -> usize {
        let hosts = 1 + self.hosts.iter().max().copied().unwrap_or(0);
        rank / self.hosts.len() * hosts + self.hosts[rank % self.hosts.len()]
    }

    /// The machines of the first `ranks` ranks.
    #[must_use]
    pub fn first(&self, ranks: usize) -> Machine {
        let ranks = (0..ranks.max(1)).map(|rank| (self.of(rank).clone(), self.host(rank)));
        let Machine { profiles, of, hosts, .. } = Machine::of_ranks(ranks.collect());
        Machine::new(profiles, of, hosts, self.racks)
    }

    /// The same machines with `ranks` ranks, `on_each_host` of them on each host.
    #[must_use]
    pub fn packed(&self, ranks: usize, on_each_host: usize) -> Machine {
        let of = (0..ranks.max(1)).map(|rank| self.of[rank % self.of.len()]).collect();
        let hosts = (0..ranks.max(1)).map(|rank| rank / on_each_host.max(1)).collect();
        Machine::new(self.profiles.clone(), of, hosts, self.racks)
    }

    /// The same machines in racks of `hosts` hosts, with this link between racks.
    #[must_use]
    pub(crate) fn in_racks(self, hosts: usize, link: Link) -> Machine {
        let Machine { profiles, of, hosts: on, .. } = self;
        Machine::new(profiles, of, on, Some((hosts.max(1), link)))
    }

    /// The same machines with another network between hosts.
    #[must_use]
    pub fn networked_by(self, link: Link) -> Machine {
        let Machine { mut profiles, of, hosts, racks, .. } = self;
        for profile in &mut profiles {
            profile.links.network = link;
        }
        Machine::new(profiles, of, hosts, racks)
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, profile) in self.profiles.iter().enumerate() {
            let ranks: Vec<usize> = (0..self.of.len()).filter(|r| self.of[*r] == i).collect();
            let separator = if i == 0 { "" } else { "; " };
            let (origin, MachineProfile { hardware, .. }) = (profile.origin, profile);
            let device =
                if hardware.device.is_empty() { "a machine of which nothing is known" } else { &hardware.device };
            write!(f, "{separator}{origin} profile of {device}")?;
            match &ranks[..] {
                _ if self.profiles.len() == 1 => {}
                [first, .., last] if last - first == ranks.len() - 1 => write!(f, " (ranks {first} to {last})")?,
                ranks => {
                    let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
                    write!(f, " (ranks {})", ranks.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
