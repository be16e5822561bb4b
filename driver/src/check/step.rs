//! Steps of a program between the two commands of a finding: for pictures of it.

/// A barrier, a signal, a wait or a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundStep {
    /// The queue that executes it; `None` is the host.
    pub queue: Option<u32>,
    /// What it is: `wait in COPY`.
    pub text: String,
    /// Its number among all dependencies of the device.
    pub number: u64,
    /// Of a wait, the numbers of the signals that it waits for.
    pub after: Vec<u64>,
    /// Whether it comes before the first access: `vkCmdSetEvent` of an event that was set too early.
    pub precedes: bool,
}
