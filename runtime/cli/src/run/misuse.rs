//! Errors of a dispatch in terms of the command line: with the option that caused them.

use spelter::{Error, Program};

use super::bind;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::slot::{Slot, named};

/// The message for an error of the dispatch that these options ask for.
pub(super) fn failure(error: Error, program: &Program, args: &RunArgs) -> Failure {
    match &error {
        Error::Binding { group, binding, problem, .. } => match bind::option_of(program, *group, *binding) {
            Some(option) => {
                let is_it = |slot: Slot| (slot.group, slot.binding) == (*group, *binding);
                let name = bind::given(args).find_map(|(_, slot, name)| name.filter(|_| is_it(slot)));
                let place = named(format_args!("{group}.{binding}"), name);
                Failure::misuse(format!("{option} {place}: {problem}"))
            }
            None => error.into(),
        },
        Error::Misuse(misuse) => match misuse.vuid.strip_prefix("VUID-vkCmdDispatch-groupCount") {
            Some(rule) => {
                Failure::misuse(format!("{}, {}: {} ({})", args.size_option(), axis(rule), misuse.problem, misuse.vuid))
            }
            None => error.into(),
        },
        Error::Push(problem) => Failure::misuse(format!("--push: {problem}")),
        Error::Several(all) => {
            let each: Vec<_> = all.iter().map(|error| failure(error.clone(), program, args).to_string()).collect();
            Failure::misuse(each.join("\n"))
        }
        _ => error.into(),
    }
}

/// The direction of a rule on group counts: the X, Y or Z that follows in its id.
fn axis(rule: &str) -> &str {
    rule.split('-').next().unwrap_or(rule)
}
