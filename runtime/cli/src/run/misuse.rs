//! Errors of a dispatch in terms of the command line: with the option that caused them.

use spelter::{Error, Program};

use super::bind;
use crate::failure::Failure;

/// The message for an error of a dispatch whose size an option gave.
pub(super) fn failure(error: Error, program: &Program, size: &str) -> Failure {
    match &error {
        Error::Binding { group, binding, problem } => match bind::option_of(program, *group, *binding) {
            Some(option) => Failure::misuse(format!("{option} {group}.{binding}: {problem}")),
            None => error.into(),
        },
        Error::Misuse(misuse) => match misuse.vuid.strip_prefix("VUID-vkCmdDispatch-groupCount") {
            Some(rule) => Failure::misuse(format!("{size}, {}: {} ({})", axis(rule), misuse.problem, misuse.vuid)),
            None => error.into(),
        },
        Error::Push(problem) => Failure::misuse(format!("--push: {problem}")),
        Error::Several(all) => {
            let each: Vec<_> = all.iter().map(|error| failure(error.clone(), program, size).to_string()).collect();
            Failure::misuse(each.join("\n"))
        }
        _ => error.into(),
    }
}

/// The direction of a rule on group counts: the X, Y or Z that follows in its id.
fn axis(rule: &str) -> &str {
    rule.split('-').next().unwrap_or(rule)
}
