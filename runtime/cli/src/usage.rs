//! Hints for wrong usage that clap cannot know: a file without a subcommand, and a profile that is not attached.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use spelter::check::Profile;

use crate::shader::is_shader;

/// The error, with a hint if one is known.
pub(crate) fn with_hint(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let hint = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            text(ContextKind::InvalidSubcommand).filter(|word| is_shader(Path::new(word))).map(of_file)
        }
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg).filter(|word| is_profile(word)).map(of_profile),
        _ => None,
    };
    if let Some(hint) = hint {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// Commands whose `--json` is an object on standard output. That of `check` and `exec` is a file, or text of another
/// stream, since standard output is that of their program.
const JSON_COMMANDS: [&str; 13] =
    ["run", "bench", "profile", "compile", "reflect", "demo", "test", "info", "litmus", "merge", "trace", "icd", "man"];

/// Whether a command line that clap refuses asks for JSON: `--json` after one of these commands, and before `--`.
pub(crate) fn wants_json(words: impl Iterator<Item = OsString>) -> bool {
    let mut words = words.take_while(|word| word != "--");
    let is_command = |word: &OsString| JSON_COMMANDS.iter().any(|command| word == command);
    // Before the command there is `--color`, and its value.
    words.by_ref().take(3).any(|word| is_command(&word)) && words.any(|word| word == "--json")
}

fn of_file(file: String) -> String {
    format!("a shader runs with 'spelter run {file}'")
}

fn of_profile(profile: String) -> String {
    format!("a profile follows an equals sign: '--check={profile}'")
}

/// Whether the word is a profile after `--check`, which takes one only in the same argument.
fn is_profile(word: &str) -> bool {
    let words: Vec<_> = std::env::args_os().collect();
    word.parse::<Profile>().is_ok() && words.windows(2).any(|pair| pair[0] == "--check" && pair[1] == word)
}
