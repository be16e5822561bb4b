//! Well-formedness: the valid usage of SPIR-V's memory operands and semantics.
//!
//! A program that breaks one of these rules has no executions. The rules are those of the Khronos model, since its
//! tests rely on them.

use crate::event::{Action, Operation, Scope, Trace};

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The event that breaks it.
    pub event: usize,
    /// The rule.
    pub rule: &'static str,
}

/// The rules that `operation` breaks on its own.
pub fn operation_defects(operation: &Operation) -> Vec<&'static str> {
    let ordered = operation.acquire || operation.release;
    let flagged = operation.access().is_some_and(|access| access.available || access.visible);
    let barrier = operation.control_barrier() || matches!(operation.action, Action::Fence);
    let mut rules = Vec::new();
    let mut rule = |broken: bool, rule| {
        if broken {
            rules.push(rule);
        }
    };
    if let Some(access) = operation.access() {
        rule(access.reads && access.writes && !access.atomic, "a read-modify-write must be atomic");
        rule(access.available && !access.writes, "only a write makes its pointer available");
        rule(access.visible && !access.reads, "only a read makes its pointer visible");
        rule(operation.acquire && !(access.atomic && access.reads), "only an atomic read or a barrier acquires");
        rule(operation.release && !(access.atomic && access.writes), "only an atomic write or a barrier releases");
        rule(!access.reads && !access.writes, "an access reads or writes");
    } else {
        rule(ordered && !barrier, "only an atomic or a barrier acquires or releases");
    }
    rule(matches!(operation.action, Action::Fence) && !ordered, "a memory barrier acquires or releases");
    rule(ordered && operation.semantics.is_empty(), "acquire and release need storage-class semantics");
    rule(!ordered && !operation.semantics.is_empty(), "storage-class semantics need acquire or release");
    rule(operation.make_available && !operation.release, "MakeAvailable needs release semantics");
    rule(operation.make_visible && !operation.acquire, "MakeVisible needs acquire semantics");
    let scoped = operation.atomic() || barrier || flagged;
    rule(scoped && operation.scope.is_none(), "an atomic, a barrier, and availability or visibility need a scope");
    rules
}

/// The rules that the trace breaks.
pub fn defects(trace: &Trace) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (event, executed) in trace.events.iter().enumerate() {
        defects.extend(operation_defects(&executed.operation).into_iter().map(|rule| Defect { event, rule }));
        let device = trace.agent(event) != crate::event::Agent::Host;
        if device && executed.operation.scope == Some(Scope::CrossDevice) {
            defects.push(Defect { event, rule: "a shader must not use CrossDevice scope" });
        }
    }
    let barriers: Vec<_> = (0..trace.len()).filter(|&event| trace.events[event].instance.is_some()).collect();
    let together = |a: usize, b: usize| trace.events[a].instance == trace.events[b].instance;
    for (at, &a) in barriers.iter().enumerate() {
        for &b in barriers[at + 1..].iter().filter(|&&b| together(a, b)) {
            let (x, y) = (trace.operation(a), trace.operation(b));
            if trace.same_agent(a, b) {
                defects.push(Defect {
                    event: b,
                    rule: "an invocation executes an instance of a control barrier at most once",
                });
            } else if (&x.action, x.acquire, x.release, x.semantics, x.scope)
                != (&y.action, y.acquire, y.release, y.semantics, y.scope)
            {
                let rule = "all events of one control barrier have the same scopes and semantics";
                defects.push(Defect { event: b, rule });
            }
            let crossed = |&c: &usize| trace.same_agent(a, c) && c > a;
            let against = |c: usize| barriers.iter().any(|&d| together(c, d) && trace.same_agent(b, d) && d < b);
            if barriers.iter().filter(|c| crossed(c)).any(|&c| against(c)) {
                defects.push(Defect { event: b, rule: "all invocations execute control barriers in the same order" });
            }
        }
    }
    defects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Agent, Class, Classes, Event};

    /// A fence with one order and one flag.
    fn fence(acquire: bool, available: bool) -> Operation {
        let mut fence = Operation::new(Action::Fence);
        (fence.acquire, fence.release) = (acquire, !acquire);
        (fence.make_available, fence.make_visible) = (available, !available);
        fence.semantics = Classes::NONE.with(Class::Uniform);
        fence.scope = Some(Scope::Workgroup);
        fence
    }

    #[test]
    fn flags_of_semantics_need_their_order() {
        assert_eq!(operation_defects(&fence(false, true)), Vec::<&str>::new());
        assert_eq!(operation_defects(&fence(true, false)), Vec::<&str>::new());
        assert_eq!(operation_defects(&fence(true, true)), ["MakeAvailable needs release semantics"]);
        assert_eq!(operation_defects(&fence(false, false)), ["MakeVisible needs acquire semantics"]);
    }

    #[test]
    fn only_the_host_names_all_devices() {
        let mut operation = fence(false, true);
        operation.scope = Some(Scope::CrossDevice);
        let of =
            |agent| Trace { agents: vec![agent], events: vec![Event::new(0, operation.clone())], ..Trace::default() };
        let device = Agent::Device { subgroup: 0, workgroup: 0, queue_family: 0, device: 0 };
        assert_eq!(defects(&of(Agent::Host)), []);
        let rules: Vec<_> = defects(&of(device)).into_iter().map(|defect| defect.rule).collect();
        assert_eq!(rules, ["a shader must not use CrossDevice scope"]);
    }
}
