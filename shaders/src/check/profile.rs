//! Profiles: which programs that the memory model calls racy are errors.

use std::fmt;
use std::str::FromStr;

/// How strictly checked mode applies the memory model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Idioms that compilers emit for code that is right in its own language are notes: storage buffers that a workgroup
    /// shares under a barrier although they are not coherent, `memoryBarrierBuffer(); barrier();`, and modules of the
    /// Vulkan memory model in which no access is non-private.
    #[default]
    Common,
    /// The memory model as it is written.
    Spec,
    /// As `Spec`, with advices on what is legal and mostly a mistake.
    Strict,
}

impl Profile {
    /// All profiles, the most lenient first.
    pub const ALL: [Self; 3] = [Self::Common, Self::Spec, Self::Strict];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Spec => "spec",
            Self::Strict => "strict",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == name);
        found.ok_or_else(|| format!("`{name}` is not a profile: common, spec or strict"))
    }
}
