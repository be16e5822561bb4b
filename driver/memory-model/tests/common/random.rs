//! Random programs: well-formed operations on few names, so that they interact.

use proptest::prelude::*;
use spelter_memory_model::event::{Access, Action, Agent, Class, Classes, Location, Operation, Scope};
use spelter_memory_model::program::{
    Barrier, Expression, Instruction, InstructionKind, Operand, Place, Program, Thread,
};

/// Parameters of an operation; each number is reduced to its range.
pub(crate) type Recipe = (u8, u8, u8, u8, bool, bool);

const SCOPES: [Scope; 4] = [Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device];

fn semantics(pick: u8) -> Classes {
    let both = [Class::Uniform, Class::Workgroup];
    match pick % 3 {
        0 => [both[0]].into_iter().collect(),
        1 => [both[1]].into_iter().collect(),
        _ => both.into_iter().collect(),
    }
}

/// One operation.
pub(crate) fn operation((kind, location, scope, order, first, second): Recipe) -> Operation {
    let scope = SCOPES[usize::from(scope % 4)];
    let kind = kind % 9;
    let mut operation = match kind {
        0..=6 => {
            let (reads, writes) = [(true, false), (false, true), (true, true)][usize::from(kind % 3)];
            let atomic = kind >= 3 || reads && writes;
            let location = u32::from(location % 3);
            // The third name is a second reference to the first location.
            Operation::new(Action::Access(Access {
                reads,
                writes,
                atomic,
                non_private: first || second,
                available: writes && first,
                visible: reads && first,
                class: if location == 1 { Class::Workgroup } else { Class::Uniform },
                reference: location,
                location: Location::whole(location % 2),
            }))
        }
        7 => Operation::new(Action::Fence),
        _ => Operation::new(Action::ControlBarrier { execution: scope }),
    };
    let access = operation.access().cloned();
    let may = |needed: bool| access.as_ref().is_none_or(|access| access.atomic && needed);
    operation.acquire = order & 1 != 0 && may(access.as_ref().is_some_and(|access| access.reads));
    operation.release = order & 2 != 0 && may(access.as_ref().is_some_and(|access| access.writes));
    if kind == 7 && !operation.acquire && !operation.release {
        operation.release = true;
    }
    if operation.acquire || operation.release {
        operation.semantics = semantics(order >> 2);
        operation.make_available = operation.release && first;
        operation.make_visible = operation.acquire && second;
    }
    if access.is_none_or(|access| access.atomic || access.available || access.visible) {
        operation.scope = Some(scope);
    }
    operation.complete();
    operation
}

/// A program of threads in groups. Control barriers that look alike get the same instance number.
pub(crate) fn program(threads: &[(u8, Vec<Recipe>)]) -> Program {
    let mut program = Program {
        name: "random".to_owned(),
        references: ["x", "y", "z"].map(str::to_owned).to_vec(),
        locations: [("x".to_owned(), 0), ("y".to_owned(), 0)].to_vec(),
        ..Program::default()
    };
    let mut written = 0;
    let mut alike: Vec<(Operation, u32)> = Vec::new();
    for (number, (group, recipes)) in threads.iter().enumerate() {
        let (subgroup, workgroup) = [(0, 0), (1, 0), (2, 1), (3, 2)][usize::from(group % 4)];
        let agent = Agent::Device { subgroup, workgroup, queue_family: u32::from(workgroup == 2), device: 0 };
        let mut code = Vec::new();
        for recipe in recipes {
            let operation = operation(*recipe);
            let value = operation.writes().then(|| {
                written += 1;
                Expression::Operand(Operand::Constant(written))
            });
            let barrier = operation.control_barrier().then(|| {
                let round = code.iter().filter(|earlier: &&Instruction| same(earlier, &operation)).count() as u32;
                let shape = alike.iter().position(|known| known.0 == operation).unwrap_or_else(|| {
                    alike.push((operation.clone(), 0));
                    alike.len() - 1
                });
                Barrier::Dynamic(shape as u32 * 16 + round)
            });
            let kind = InstructionKind::Execute { operation, destination: None, value, barrier };
            code.push(Instruction { place: Place::default(), kind });
        }
        program.threads.push(Thread { name: format!("T{number}"), agent, code, registers: vec![] });
    }
    program
}

fn same(instruction: &Instruction, wanted: &Operation) -> bool {
    matches!(&instruction.kind, InstructionKind::Execute { operation, .. } if operation == wanted)
}

/// Threads of a random program: at most `threads` of at most `events` operations each.
pub(crate) fn threads(threads: usize, events: usize) -> impl Strategy<Value = Vec<(u8, Vec<Recipe>)>> {
    let recipe = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>(), any::<bool>());
    prop::collection::vec((any::<u8>(), prop::collection::vec(recipe, 1..=events)), 1..=threads)
}
