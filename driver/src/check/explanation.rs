//! Why two accesses race, in sentences.

use spelter_shaders::check::Cause;

/// The detector's hint.
pub(super) fn of_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Unordered => "nothing orders the two accesses",
        Cause::Barrier => "the barrier between them does not cover this memory: its semantics lack the storage class",
        Cause::Private => "an access is private: only program order orders it",
        Cause::Reference => "they use different descriptors or variables for the same memory",
        Cause::Scope => "the scope of an atomic does not include the other invocation",
        Cause::Overlap => "the atomics are of different sizes or places",
        Cause::Command => "nothing orders the two commands",
    }
}
