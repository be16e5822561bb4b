//! Descriptions of the rules: the demand of each in a sentence, for lists of rules.

use super::super::{Hazard, Rule};

/// The rule in a sentence.
pub fn description(rule: Rule) -> &'static str {
    match rule {
        Rule::Race(Hazard::ReadAfterWrite) => {
            "A read of memory that another invocation or command wrote follows the write without an order, \
             availability and visibility between them."
        }
        Rule::Race(Hazard::WriteAfterRead) => {
            "A write of memory that another invocation or command read follows the read without an order between them."
        }
        Rule::Race(Hazard::WriteAfterWrite) => {
            "Two invocations or commands write the same memory without an order and availability between the writes."
        }
        Rule::Barrier => "All invocations of a control barrier's scope execute it: it is in uniform control flow.",
        Rule::Host => "The host reads values of the device only after a dependency has made them visible to the host.",
        Rule::Note => {
            "Code that the memory model calls a data race and that compilers emit for code that is right in its \
             language."
        }
    }
}
