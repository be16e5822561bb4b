//! Reason why a condition holds or fails: what meets it, or what is missing, as data and as text.

use crate::describe;
use crate::event::{Class, Domain, Scope, Trace};
use crate::names::Names;

/// An agent that is not in the scope instance of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The event whose agent is outside …
    pub event: usize,
    /// … of the instance of the scope of this event.
    pub of: usize,
    /// Its scope.
    pub scope: Scope,
}

/// What two operations lack that would otherwise synchronize, or be mutually ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingRequirement {
    /// They use different references.
    References,
    /// They are not in each other's scopes.
    Scope(Vec<Outside>),
    /// They are atomics of the host and of the device, which this device does not order.
    HostAndDevice,
    /// They access different bytes.
    Bytes,
    /// The atomic write does not release, nor does a barrier next to it.
    NoRelease(usize),
    /// The atomic read does not acquire, nor does a barrier next to it.
    NoAcquire(usize),
    /// The semantics of an operation lack the class of the memory.
    Class(usize, Class),
    /// Nothing releases between the first access and the control barrier.
    NothingReleases,
    /// Nothing acquires between the control barrier and the second access.
    NothingAcquires,
    /// They synchronize, but happens-before does not continue from them to the accesses: no single set of storage
    /// classes is in the semantics of every step of the path.
    NotContinued,
}

/// A step of a path through happens-before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Program order.
    ProgramOrder,
    /// Synchronizes-with.
    SynchronizesWith,
    /// System-synchronizes-with.
    System,
    /// The order of host threads.
    Host,
}

impl Step {
    /// The abbreviation.
    pub fn label(self) -> &'static str {
        match self {
            Self::ProgramOrder => "po",
            Self::SynchronizesWith => "sw",
            Self::System => "ssw",
            Self::Host => "host",
        }
    }
}

/// Why a condition holds or fails. Numbers are events; "first" and "second" are the accesses of the explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Ordered: by these steps, each with the event to which it leads.
    Path(Vec<(Step, usize)>),
    /// Non-private: both are.
    BothNonPrivate,
    /// Same reference: both use it.
    OneReference,
    /// Available: to the domain of this scope, by this event.
    AvailableBy(usize, Scope),
    /// Visible: from the domain of this scope, by this event.
    VisibleBy(usize, Scope),

    /// Not mutually ordered.
    NotMutual(MissingRequirement),
    /// Not ordered: `read` reads from `write`, but they do not synchronize.
    ReadsFrom {
        /// An atomic read before the second access.
        read: usize,
        /// An atomic write after the first access.
        write: usize,
        /// What they lack.
        lacks: MissingRequirement,
    },
    /// Not ordered: two control barriers wait for each other, but do not synchronize.
    ControlBarriers {
        /// The barrier after the first access.
        left: usize,
        /// The barrier before the second access.
        right: usize,
        /// What they lack.
        lacks: MissingRequirement,
    },
    /// Not ordered: nothing that the second access waits for or reads follows the first.
    Unrelated,
    /// These accesses are private.
    Private(Vec<usize>),
    /// One location, but two references.
    TwoReferences,
    /// No operation makes the first access available to the domain of this scope or a wider one.
    NotAvailable(Scope),
    /// An operation makes it available, but to the domain of a narrower scope than is needed.
    AvailableOnlyTo {
        /// The operation.
        by: usize,
        /// The scope of the domain.
        to: Scope,
        /// The scope of the domain that both agents share.
        needed: Scope,
    },
    /// An operation makes it available, but is not ordered before the second access.
    AvailableTooLate(usize),
    /// No operation makes the domain of this scope or a wider one visible to the second access.
    NotVisible(Scope),
    /// An operation makes a domain visible, but is not ordered after the first access was made available to it.
    VisibleTooEarly(usize),
    /// No operation of the API makes the first access available to this domain.
    ApiNotAvailable(Domain),
    /// It is available in a domain, but no memory domain operation takes it to another.
    ApiNotTransferred {
        /// The availability operation.
        by: usize,
        /// The domain to which it makes available.
        from: Domain,
        /// The domain of the second access.
        to: Domain,
    },
    /// It is available in the second access's domain, but no operation of the API makes that visible.
    ApiNotVisible {
        /// The last operation that made it available there.
        by: usize,
        /// The domain.
        domain: Domain,
    },
}

fn name(domain: Domain) -> &'static str {
    match domain {
        Domain::Device => "device",
        Domain::Host => "host",
    }
}

impl MissingRequirement {
    fn code(&self) -> &'static str {
        match self {
            Self::References => "different-reference",
            Self::Scope(_) => "scope",
            Self::HostAndDevice => "host-and-device",
            Self::Bytes => "different-bytes",
            Self::NoRelease(_) | Self::NothingReleases => "no-release",
            Self::NoAcquire(_) | Self::NothingAcquires => "no-acquire",
            Self::Class(..) => "storage-class",
            Self::NotContinued => "not-transitive",
        }
    }

    fn events(&self) -> Vec<usize> {
        match self {
            Self::Scope(outside) => outside.iter().flat_map(|outside| [outside.event, outside.of]).collect(),
            Self::NoRelease(event) | Self::NoAcquire(event) | Self::Class(event, _) => vec![*event],
            _ => Vec::new(),
        }
    }

    fn text(&self, (first, second): (usize, usize), names: &dyn Names) -> String {
        match self {
            Self::References => "they use different references".to_owned(),
            Self::Scope(outside) => {
                let text = |outside: &Outside| {
                    let (event, of) = (names.place(outside.event), names.place(outside.of));
                    format!("{event} is outside of {of}'s {} scope", outside.scope.name())
                };
                let mut texts: Vec<_> = outside.iter().map(text).collect();
                // Two invocations of one instruction.
                texts.dedup();
                texts.join(", and ")
            }
            Self::HostAndDevice => "one is an atomic of the host, the other of the device".to_owned(),
            Self::Bytes => "they are atomics of different bytes, of which only some are common".to_owned(),
            Self::NoRelease(event) => {
                format!("{} does not release, nor does a barrier next to it", names.place(*event))
            }
            Self::NoAcquire(event) => {
                format!("{} does not acquire, nor does a barrier next to it", names.place(*event))
            }
            Self::Class(event, class) => format!("the semantics of {} lack {class:?}Memory", names.place(*event)),
            Self::NothingReleases => format!("nothing releases between {} and the barrier", names.place(first)),
            Self::NothingAcquires => format!("nothing acquires between the barrier and {}", names.place(second)),
            Self::NotContinued => {
                "no single set of storage classes is in the semantics of every step of the path".to_owned()
            }
        }
    }
}

impl Reason {
    /// A name of the kind of reason, for JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::BothNonPrivate => "non-private",
            Self::OneReference => "one-reference",
            Self::AvailableBy(..) => "available",
            Self::VisibleBy(..) => "visible",
            Self::NotMutual(gap) | Self::ReadsFrom { lacks: gap, .. } | Self::ControlBarriers { lacks: gap, .. } => {
                gap.code()
            }
            Self::Unrelated => "not-synchronized",
            Self::Private(_) => "private",
            Self::TwoReferences => "different-reference",
            Self::NotAvailable(_) => "not-available",
            Self::AvailableOnlyTo { .. } => "available-domain",
            Self::AvailableTooLate(_) => "available-too-late",
            Self::NotVisible(_) => "not-visible",
            Self::VisibleTooEarly(_) => "visible-too-early",
            Self::ApiNotAvailable(_) => "api-not-available",
            Self::ApiNotTransferred { .. } => "api-not-transferred",
            Self::ApiNotVisible { .. } => "api-not-visible",
        }
    }

    /// The events, apart from the two accesses, that it is about.
    pub fn events(&self) -> Vec<usize> {
        let with = |a: &usize, b: &usize, gap: &MissingRequirement| {
            let mut events = vec![*a, *b];
            events.extend(gap.events());
            events.sort_unstable();
            events.dedup();
            events
        };
        match self {
            Self::Path(steps) => steps.iter().map(|step| step.1).collect(),
            Self::NotMutual(gap) => gap.events(),
            Self::ReadsFrom { read, write, lacks } => with(write, read, lacks),
            Self::ControlBarriers { left, right, lacks } => with(left, right, lacks),
            Self::AvailableBy(by, _)
            | Self::VisibleBy(by, _)
            | Self::AvailableOnlyTo { by, .. }
            | Self::AvailableTooLate(by)
            | Self::VisibleTooEarly(by)
            | Self::ApiNotTransferred { by, .. }
            | Self::ApiNotVisible { by, .. } => vec![*by],
            _ => Vec::new(),
        }
    }

    /// The reason as a sentence about the accesses `first` and `second` of `trace`.
    pub fn text(&self, (first, second): (usize, usize), trace: &Trace, names: &dyn Names) -> String {
        let place = |event: usize| names.place(event);
        match self {
            Self::Path(steps) => {
                let mut text = place(first);
                for &(step, to) in steps {
                    // Semantics matter for what synchronizes, not for the second access of a plain program order.
                    let alone = steps.len() == 1 && step == Step::ProgramOrder;
                    let semantics = if alone { String::new() } else { describe::semantics(trace.operation(to)) };
                    let space = if semantics.is_empty() { "" } else { " " };
                    text += &format!(" -{}-> {}{space}{semantics}", step.label(), place(to));
                }
                text
            }
            Self::BothNonPrivate => "both are".to_owned(),
            Self::OneReference => format!("both use {}", names.reference(first)),
            Self::AvailableBy(by, scope) => {
                format!("to the {} domain, by {}", describe::domain(*scope), place(*by))
            }
            Self::VisibleBy(by, scope) => {
                format!("from the {} domain, by {}", describe::domain(*scope), place(*by))
            }
            Self::NotMutual(gap) => gap.text((first, second), names),
            Self::ReadsFrom { read, write, lacks } => {
                format!("{} reads from {}, but {}", place(*read), place(*write), lacks.text((first, second), names))
            }
            Self::ControlBarriers { left, right, lacks } => {
                let lacks = lacks.text((first, second), names);
                let (left, right) = (place(*left), place(*right));
                // Two invocations of one instruction.
                if left == right {
                    return format!("both invocations wait at {left}, but {lacks}");
                }
                format!("{left} and {right} wait for each other, but {lacks}")
            }
            Self::Unrelated => {
                format!("nothing that {} waits for or reads follows {}", place(second), place(first))
            }
            Self::Private(events) => match events[..] {
                [one] => format!("{} is private", place(one)),
                _ => "neither access carries NonPrivatePointer".to_owned(),
            },
            Self::TwoReferences => {
                let [first, second] = [first, second].map(|event| names.reference(event));
                format!("{first} and {second} are one location, but two references")
            }
            Self::NotAvailable(scope) => {
                let wanted = describe::domain(*scope);
                format!("no operation makes {} available to the {wanted} domain or a wider one", place(first))
            }
            Self::AvailableOnlyTo { by, to, needed } => format!(
                "{} makes {} available to the {} domain only; {} needs the {} domain",
                place(*by),
                place(first),
                describe::domain(*to),
                place(second),
                describe::domain(*needed)
            ),
            Self::AvailableTooLate(by) => {
                let first = place(first);
                format!("{} makes {first} available, but is not ordered before {}", place(*by), place(second))
            }
            Self::NotVisible(scope) => {
                let wanted = describe::domain(*scope);
                format!("no operation makes the {wanted} domain or a wider one visible to {}", place(second))
            }
            Self::VisibleTooEarly(by) => format!(
                "{} makes memory visible to {}, but not after {} was made available",
                place(*by),
                place(second),
                place(first)
            ),
            Self::ApiNotAvailable(domain) => {
                format!("no command makes {} available to the {} domain", place(first), name(*domain))
            }
            Self::ApiNotTransferred { by, from, to } => format!(
                "{} makes {} available to the {} domain, from which no memory domain operation takes it to the {} domain",
                place(*by),
                place(first),
                name(*from),
                name(*to)
            ),
            Self::ApiNotVisible { by, domain } => format!(
                "{} makes {} available to the {} domain, but no command makes that visible to {}",
                place(*by),
                place(first),
                name(*domain),
                place(second)
            ),
        }
    }
}
