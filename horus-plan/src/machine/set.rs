//! The machines of all ranks, the same set on each rank: the input of planning.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::link::Link;
use super::profile::Profile;

/// The machines that the ranks of a session run on. The same on every rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Distinct profiles, at least one.
    profiles: Vec<Profile>,
    /// Index of each rank's profile; further ranks repeat the list.
    of: Vec<usize>,
    /// Host of each rank.
    hosts: Vec<usize>,
    /// Digest of the other fields.
    digest: u64,
}

impl Machine {
    fn new(profiles: Vec<Profile>, of: Vec<usize>, hosts: Vec<usize>) -> Machine {
        let mut digest = DefaultHasher::new();
        // Numbers have no hash, but their text has.
        serde_json::to_string(&profiles).unwrap_or_default().hash(&mut digest);
        (&of, &hosts).hash(&mut digest);
        Machine { profiles, of, hosts, digest: digest.finish() }
    }

    /// Ranks on equal machines, each on its own host.
    pub fn alike(profile: Profile) -> Machine {
        Machine::new(vec![profile], vec![0], vec![0])
    }

    /// A digest of the machines, by which ranks compare them.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The assumed machine, if nothing is known: see [`Profile::of_default`].
    pub fn of_default(unified: bool) -> Machine {
        Machine::alike(Profile::of_default(unified))
    }

    /// A profile and a host number per rank, at least one.
    pub fn of_ranks(ranks: Vec<(Profile, usize)>) -> Machine {
        let mut profiles: Vec<Profile> = Vec::new();
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
        Machine::new(profiles, of, hosts)
    }

    /// The distinct profiles.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The profile of rank `rank`. Ranks beyond those of the session repeat them in turn.
    pub fn of(&self, rank: usize) -> &Profile {
        &self.profiles[self.of[rank % self.of.len()]]
    }

    /// The highest cost on any of the machines.
    pub fn slowest(&self, cost: impl Fn(&Profile) -> f64) -> f64 {
        self.profiles.iter().map(cost).fold(0.0, f64::max)
    }

    /// The slowest link for messages: see [`Profile::link`].
    pub fn link(&self, direct: bool) -> Link {
        let mut links = self.profiles.iter().map(|p| p.link(direct));
        let first = links.next().unwrap_or_default();
        links.fold(first, Link::worse)
    }

    /// The link between two ranks: from device to device (`direct`) within a host, through its
    /// memory, or over the network.
    pub fn link_between(&self, a: usize, b: usize, direct: bool) -> Link {
        let link = |p: &Profile| match (self.host(a) == self.host(b), direct) {
            (true, true) => p.links.peers,
            (true, false) => p.links.host,
            (false, _) => p.links.network,
        };
        link(self.of(a)).worse(link(self.of(b)))
    }

    /// The host of rank `rank`. Ranks beyond those of the session occupy further hosts.
    pub fn host(&self, rank: usize) -> usize {
        let hosts = 1 + self.hosts.iter().max().copied().unwrap_or(0);
        rank / self.hosts.len() * hosts + self.hosts[rank % self.hosts.len()]
    }

    /// The same machines with `ranks` ranks, `on_each_host` of them on each host.
    #[must_use]
    pub fn packed(&self, ranks: usize, on_each_host: usize) -> Machine {
        let of = (0..ranks.max(1)).map(|rank| self.of[rank % self.of.len()]).collect();
        let hosts = (0..ranks.max(1)).map(|rank| rank / on_each_host.max(1)).collect();
        Machine::new(self.profiles.clone(), of, hosts)
    }

    /// The same machines with another network between hosts.
    #[must_use]
    pub fn networked_by(self, link: Link) -> Machine {
        let Machine { mut profiles, of, hosts, .. } = self;
        for profile in &mut profiles {
            profile.links.network = link;
        }
        Machine::new(profiles, of, hosts)
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, profile) in self.profiles.iter().enumerate() {
            let ranks: Vec<usize> = (0..self.of.len()).filter(|r| self.of[*r] == i).collect();
            let separator = if i == 0 { "" } else { "; " };
            let (origin, Profile { hardware, .. }) = (profile.origin, profile);
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
