//! Hints for wrong usage that clap cannot know: a file without a subcommand, and a profile that is not attached.

use std::ffi::OsStr;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use spelter::check::Profile;

/// Endings of the files that `spelter run` takes.
const SHADERS: [&str; 5] = ["wgsl", "spv", "spvasm", "comp", "glsl"];

/// The error, with a hint if one is known.
pub(crate) fn with_hint(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let hint = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            text(ContextKind::InvalidSubcommand).filter(|word| is_shader(word)).map(of_file)
        }
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg).filter(|word| is_profile(word)).map(of_profile),
        _ => None,
    };
    if let Some(hint) = hint {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

fn of_file(file: String) -> String {
    format!("a shader runs with 'spelter run {file}'")
}

fn of_profile(profile: String) -> String {
    format!("a profile follows an equals sign: '--check={profile}'")
}

fn is_shader(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| SHADERS.contains(&ending))
}

/// Whether the word is a profile after `--check`, which takes one only in the same argument.
fn is_profile(word: &str) -> bool {
    let words: Vec<_> = std::env::args_os().collect();
    word.parse::<Profile>().is_ok() && words.windows(2).any(|pair| pair[0] == "--check" && pair[1] == word)
}
