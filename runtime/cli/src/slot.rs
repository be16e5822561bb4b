//! The place of a descriptor as text: `G.B`, or `G.B[E]`.

use std::fmt;
use std::str::FromStr;

/// A descriptor: set, binding and element of the binding's array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) group: u32,
    pub(crate) binding: u32,
    pub(crate) element: u32,
}

impl FromStr for Slot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (group, rest) = text.split_once('.')?;
            let (binding, element) = match rest.split_once('[') {
                Some((binding, element)) => (binding, element.strip_suffix(']')?),
                None => (rest, "0"),
            };
            Some(Self { group: digits(group)?, binding: digits(binding)?, element: digits(element)? })
        };
        parse().ok_or_else(|| format!("{text:?} is not a binding: use G.B, such as 0.1, or the name of a variable"))
    }
}

impl Slot {
    /// The slot as text, with its element even if that is 0.
    pub(crate) fn with_element(self) -> String {
        format!("{}.{}[{}]", self.group, self.binding, self.element)
    }
}

/// A slot, with the name of the variable if the user wrote that: `0.1 (data)`.
pub(crate) fn named(slot: impl fmt::Display, name: Option<&str>) -> String {
    name.map_or_else(|| slot.to_string(), |name| format!("{slot} ({name})"))
}

/// A number without sign or spaces.
pub(crate) fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.group, self.binding)?;
        if self.element != 0 { write!(f, "[{}]", self.element) } else { Ok(()) }
    }
}
