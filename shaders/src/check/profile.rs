//! Names of profiles.

use std::fmt;
use std::str::FromStr;

use super::Profile;

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
