//! Reports of findings, for every program that shows them: text with quoted source, JSON objects, and the rules about
//! what is left out.

mod filter;
#[cfg(feature = "json")]
mod json;
mod number;
mod rules;
mod text;

pub use filter::{Filter, RulePattern, Suppression};
#[cfg(feature = "json")]
pub use json::{finding as json, stats as stats_json};
pub use number::{fingerprint, message_number};
pub use rules::description;
pub use text::{ShownGroups, gaps, summary, text};
