//! Options of checked mode.

use std::fmt;
use std::str::FromStr;

use spelter_shaders::check::Limits;
pub use spelter_shaders::check::Profile;

/// Options of checked mode ([`DeviceOptions::check`](crate::DeviceOptions::check)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Which idioms of compilers are notes rather than errors. Default: [`Profile::Common`].
    pub profile: Profile,
    /// Bytes of host memory for the shadow of device and workgroup memory; what exceeds it is not checked, and a
    /// warning says so. Default: 1 GiB.
    pub memory: u64,
    /// Bytes of host memory for what confirmation needs: a copy of the buffers that a dispatch may write, from before
    /// it ran, and the recorded events. Without enough of it a race is a warning. Default: 1 GiB.
    pub replay_memory: u64,
    /// Whether repairs of races are sought: each is verified by runs of the dispatch with a changed kernel, the most
    /// expensive part of a finding. Default: true.
    pub repairs: bool,
    /// Whether races that were reported stay known after the program has taken the findings: then most dispatches whose
    /// suspicions are all of known kinds do not run again, and the known errors are reported, which the program must
    /// merge by [`Finding::identity`](super::Finding::identity). Each of them was confirmed once, not in each dispatch.
    /// Default: false, so that each finding is of a dispatch since the last ones were taken.
    pub count_known: bool,
    /// Only dispatches of this part are checked; the others run unchecked. Default: all.
    pub shard: Shard,
    /// Accesses of commands that are known before those that nothing can race with any more are dropped. With fewer
    /// that is done more often. Default: 16,384.
    pub log_accesses: usize,
    /// What is done about accesses of the host through
    /// [`DeviceMemory::host_address`](crate::DeviceMemory::host_address) to memory that it has mapped. Default:
    /// [`MappedAccesses::Advise`].
    pub host: MappedAccesses,
}

impl CheckOptions {
    /// The least [`CheckOptions::memory`] with which something is checked.
    pub const MIN_MEMORY: u64 = Limits::MIN_BYTES;
}

/// How accesses of the host to mapped memory are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MappedAccesses {
    /// They are not seen. A note says so when the host has waited for a command that wrote to mapped memory, and the
    /// values are not visible to it.
    #[default]
    Advise,
    /// They are errors as those of the Rust API are: the pages are closed to the host, and a signal handler sees what
    /// it does. On Linux on x86-64; the handlers for `SIGSEGV` and `SIGTRAP` are the device's.
    Trap,
}

impl MappedAccesses {
    /// The name, as options have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advise => "advise",
            Self::Trap => "trap",
        }
    }
}

/// `advise` or `trap`.
impl FromStr for MappedAccesses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Advise, Self::Trap];
        all.into_iter().find(|known| known.name() == text).ok_or_else(|| format!("`{text}` is neither advise nor trap"))
    }
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            profile: Profile::Common,
            memory: 1 << 30,
            replay_memory: 1 << 30,
            repairs: true,
            count_known: false,
            shard: Shard::ALL,
            log_accesses: 1 << 14,
            host: MappedAccesses::Advise,
        }
    }
}

/// One of `of` equal parts of the dispatches, chosen by a hash of the dispatch's number: to sample a program that runs
/// long, or to check it on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the part, from 0.
    pub index: u32,
    /// Number of parts, at least 1.
    pub of: u32,
}

impl Shard {
    /// All dispatches.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// Whether the dispatch with this number, counted in the order of execution, is in the part.
    pub(super) fn has(self, dispatch: u64) -> bool {
        // Fibonacci hashing: the parts of a program that repeats a pattern of dispatches have some of each kind.
        let hash = dispatch.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash % u64::from(self.of.max(1)) == u64::from(self.index)
    }
}

/// `I/N`, with I from 1.
impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (index, of) = text.split_once('/').ok_or("a shard is I/N")?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| "a shard is two numbers, I/N".to_owned());
        match (number(index)?, number(of)?) {
            (index, of) if (1..=of).contains(&index) => Ok(Self { index: index - 1, of }),
            (index, of) => Err(format!("there is no part {index} of {of}")),
        }
    }
}

/// `I/N`, with I from 1.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", u64::from(self.index) + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_written_as_it_is_read() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 1, of: 3 }));
        assert_eq!(Shard { index: 1, of: 3 }.to_string(), "2/3");
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/2", "1/99999999999"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_are_disjoint_and_complete() {
        for of in [1, 2, 3, 7] {
            for dispatch in 0..100 {
                assert_eq!((0..of).filter(|&index| Shard { index, of }.has(dispatch)).count(), 1);
            }
        }
        let taken = (0..3000).filter(|&dispatch| Shard { index: 1, of: 3 }.has(dispatch)).count();
        assert!((900..1100).contains(&taken), "{taken}");
    }
}
