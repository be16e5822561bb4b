//! Switches for the points on which the sources of the model disagree.
//!
//! The appendix is normative, and the Khronos Alloy model is an executable version of it. They differ from each other,
//! from the appendix of 2018 (1.1.90) and from Dartagnan's model in a few points. Each point is a switch, so that an
//! answer can report on which reading it depends. The names A1 … A5 are those of the design note.

use std::fmt;
use std::str::FromStr;

/// How availability and visibility operations form chains (A2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chains {
    /// As the appendix: each element happens before the next, and an agent of the narrower domain performs the next.
    Text,
    /// As the Khronos model: an element must also be covered by the next as if it were the access itself, so that a
    /// fence never continues another fence's chain.
    Alloy,
    /// The device does not support chains: each has one element.
    Single,
}

/// What orders a write after an earlier write (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overwrite {
    /// The earlier write must be available; the later one needs no visibility.
    Availability,
    /// A write after a barrier of the API needs a visibility operation, too.
    ApiVisibility,
    /// Every write of another agent needs a visibility operation, too.
    Visibility,
}

/// Definition of from-reads: the writes that come after a read (A3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FromReads {
    /// Writes after its source in scoped modification order or in location order.
    Khronos,
    /// Location order counts only if the read is itself location-ordered after its source.
    Dartagnan,
    /// Scoped modification order only.
    ModificationOrder,
}

/// Whether happens-before is transitive (A4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HappensBefore {
    /// The union of program order and inter-thread-happens-before: not transitive.
    Appendix,
    /// Their transitive closure, as the glossary says.
    Transitive,
}

/// Whether "covered by an availability operation" and "covered by a visibility operation" are one relation (A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inclusion {
    /// Two relations.
    Split,
    /// One relation for both, as in the Khronos model.
    Joint,
}

/// What availability and visibility in semantics cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// `MakeAvailable` covers earlier accesses, `MakeVisible` later ones.
    Directional,
    /// Either covers both, as in the Khronos model before 2025.
    Symmetric,
}

/// The axioms of consistent executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coherence {
    /// The union of location order, reads-from, from-reads and scoped modification order is acyclic.
    Acyclic,
    /// The four rules of 1.1.90, which apply to mutually ordered atomics only.
    Bullets,
}

/// The atomics in scoped modification order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScopedOrder {
    /// Atomic writes.
    Writes,
    /// All mutually ordered atomics (1.1.90): a read comes after its source and before the next write.
    AllAtomics,
}

/// A reading of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// A1.
    pub overwrite: Overwrite,
    /// A2, and whether the device supports chains.
    pub chains: Chains,
    /// A3.
    pub from_reads: FromReads,
    /// A4.
    pub happens_before: HappensBefore,
    /// A5.
    pub inclusion: Inclusion,
    /// What availability and visibility in semantics cover.
    pub coverage: Coverage,
    /// The axioms of consistent executions.
    pub coherence: Coherence,
    /// The atomics in scoped modification order.
    pub scoped_order: ScopedOrder,
    /// Whether being earlier in scoped modification order is a case of location order (1.1.90).
    pub scoped_order_is_location_order: bool,
    /// Whether host and device atomics may be mutually ordered: a property of the device.
    pub host_atomics: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self::SPEC
    }
}

impl Model {
    /// The current appendix.
    pub const SPEC: Self = Self {
        overwrite: Overwrite::Availability,
        chains: Chains::Text,
        from_reads: FromReads::Khronos,
        happens_before: HappensBefore::Appendix,
        inclusion: Inclusion::Split,
        coverage: Coverage::Directional,
        coherence: Coherence::Acyclic,
        scoped_order: ScopedOrder::Writes,
        scoped_order_is_location_order: false,
        host_atomics: false,
    };

    /// The Khronos Alloy model of 2025.
    pub const KHRONOS: Self = Self { chains: Chains::Alloy, inclusion: Inclusion::Joint, ..Self::SPEC };

    /// Dartagnan's `vulkan.cat`.
    pub const DARTAGNAN: Self = Self { from_reads: FromReads::Dartagnan, ..Self::KHRONOS };

    /// The appendix as it stood in Vulkan 1.1.90 (October 2018).
    pub const V1_1_90: Self = Self {
        chains: Chains::Single,
        coherence: Coherence::Bullets,
        scoped_order: ScopedOrder::AllAtomics,
        scoped_order_is_location_order: true,
        ..Self::SPEC
    };

    /// The named readings.
    pub const PROFILES: [(&'static str, Self); 4] =
        [("spec", Self::SPEC), ("khronos", Self::KHRONOS), ("dartagnan", Self::DARTAGNAN), ("1.1.90", Self::V1_1_90)];

    /// Every switch with its values, in the order of the fields.
    pub const SWITCHES: [(&'static str, &'static [&'static str]); 10] = [
        ("overwrite", &["availability", "api-visibility", "visibility"]),
        ("chains", &["text", "alloy", "single"]),
        ("from-reads", &["khronos", "dartagnan", "modification-order"]),
        ("happens-before", &["appendix", "transitive"]),
        ("inclusion", &["split", "joint"]),
        ("coverage", &["directional", "symmetric"]),
        ("coherence", &["acyclic", "bullets"]),
        ("scoped-order", &["writes", "all-atomics"]),
        ("scoped-order-is-location-order", &["no", "yes"]),
        ("host-atomics", &["no", "yes"]),
    ];

    /// The five ambiguities, each with its other readings: name, switch and value.
    pub const AMBIGUITIES: [(&'static str, &'static str, &'static str); 6] = [
        ("A1", "overwrite", "api-visibility"),
        ("A1", "overwrite", "visibility"),
        ("A2", "chains", "alloy"),
        ("A3", "from-reads", "dartagnan"),
        ("A4", "happens-before", "transitive"),
        ("A5", "inclusion", "joint"),
    ];

    /// Sets the switch `name`, which may be A1 to A5, to `value`.
    ///
    /// # Errors
    ///
    /// A message that lists the valid names or values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let ambiguity = Self::AMBIGUITIES.iter().find(|ambiguity| ambiguity.0.eq_ignore_ascii_case(name));
        let name = ambiguity.map_or(name, |ambiguity| ambiguity.1);
        let Some((_, values)) = Self::SWITCHES.iter().find(|switch| switch.0 == name) else {
            let named = |switch: &(&str, _)| {
                let ambiguity = Self::AMBIGUITIES.iter().find(|ambiguity| ambiguity.1 == switch.0);
                ambiguity.map_or(switch.0.to_owned(), |ambiguity| format!("{} ({})", switch.0, ambiguity.0))
            };
            let names: Vec<_> = Self::SWITCHES.iter().map(named).collect();
            return Err(format!("no switch is called `{name}`; there are {}", names.join(", ")));
        };
        let Some(at) = values.iter().position(|known| *known == value) else {
            return Err(format!("`{name}` may be {}, not `{value}`", values.join(" or ")));
        };
        match name {
            "overwrite" => {
                self.overwrite = [Overwrite::Availability, Overwrite::ApiVisibility, Overwrite::Visibility][at];
            }
            "chains" => self.chains = [Chains::Text, Chains::Alloy, Chains::Single][at],
            "from-reads" => {
                self.from_reads = [FromReads::Khronos, FromReads::Dartagnan, FromReads::ModificationOrder][at];
            }
            "happens-before" => self.happens_before = [HappensBefore::Appendix, HappensBefore::Transitive][at],
            "inclusion" => self.inclusion = [Inclusion::Split, Inclusion::Joint][at],
            "coverage" => self.coverage = [Coverage::Directional, Coverage::Symmetric][at],
            "coherence" => self.coherence = [Coherence::Acyclic, Coherence::Bullets][at],
            "scoped-order" => self.scoped_order = [ScopedOrder::Writes, ScopedOrder::AllAtomics][at],
            "scoped-order-is-location-order" => self.scoped_order_is_location_order = at == 1,
            _ => self.host_atomics = at == 1,
        }
        Ok(())
    }

    /// The value of each switch, in the order of [`Model::SWITCHES`].
    pub fn values(&self) -> [&'static str; 10] {
        let at = [
            self.overwrite as usize,
            self.chains as usize,
            self.from_reads as usize,
            self.happens_before as usize,
            self.inclusion as usize,
            self.coverage as usize,
            self.coherence as usize,
            self.scoped_order as usize,
            usize::from(self.scoped_order_is_location_order),
            usize::from(self.host_atomics),
        ];
        std::array::from_fn(|switch| Self::SWITCHES[switch].1[at[switch]])
    }
}

impl FromStr for Model {
    type Err = String;

    /// A profile's name, then switches, separated by commas: `khronos,chains=text`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut model = Self::SPEC;
        for (at, part) in text.split(',').enumerate() {
            if let Some((name, value)) = part.split_once('=') {
                model.set(name, value)?;
            } else if let (0, Some((_, profile))) = (at, Self::PROFILES.iter().find(|profile| profile.0 == part)) {
                model = *profile;
            } else {
                let names: Vec<_> = Self::PROFILES.iter().map(|profile| profile.0).collect();
                return Err(format!("`{part}` is neither a switch (name=value) nor a profile: {}", names.join(", ")));
            }
        }
        Ok(model)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Self::PROFILES.iter().find(|profile| profile.1 == *self) {
            return f.write_str(name);
        }
        f.write_str("spec")?;
        let differ = self.values().into_iter().zip(Self::SPEC.values()).zip(Self::SWITCHES);
        differ
            .filter(|((mine, spec), _)| mine != spec)
            .try_for_each(|((mine, _), (name, _))| write!(f, ",{name}={mine}"))
    }
}
