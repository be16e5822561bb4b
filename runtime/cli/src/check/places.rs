//! Places of findings in terms of the file that the user gave: the reader calls a WGSL text `wgsl`, and of an assembled
//! module it knows words, where the user has lines of the text.

use std::sync::Arc;

use spelter::check::{Finding, FoundAccess};
use spelter_shaders::ir::SourceLine;

use crate::shader::Shader;

/// The reader's name of a WGSL text.
const WGSL: &str = "wgsl";

/// What precedes the number of a word.
const WORD: &str = "SPIR-V word ";

/// Gives the places of a finding the path of the shader, and lines in place of words that were assembled.
pub(crate) fn in_file(finding: &mut Finding, shader: &Shader) {
    let file: Arc<str> = shader.path().display().to_string().into();
    match shader.assembled_text() {
        Some(text) => of_assembly(finding, shader, &file, text),
        None => of_wgsl(finding, &file),
    }
}

/// The accesses of a finding.
fn accesses(finding: &mut Finding) -> impl Iterator<Item = &mut FoundAccess> {
    finding.first.iter_mut().chain([&mut finding.second])
}

/// Changes each text of a finding.
fn rename(finding: &mut Finding, renamed: impl Fn(&str) -> String) {
    let texts = finding.repairs.iter_mut().map(|repair| &mut repair.text).chain(&mut finding.reasons);
    texts.for_each(|text| *text = renamed(text));
    if let Some(group) = &mut finding.group {
        let group = Arc::make_mut(group);
        group.reason = renamed(&group.reason);
        group.repair.text = renamed(&group.repair.text);
    }
    finding.replay = finding.replay.as_deref().map(|text| renamed(text).into());
}

fn of_wgsl(finding: &mut Finding, file: &Arc<str>) {
    let named = |line: &mut SourceLine| {
        if &*line.file == WGSL {
            line.file = Arc::clone(file);
        }
    };
    accesses(finding).flat_map(|access| access.line.iter_mut().chain(&mut access.inlined_at)).for_each(named);
    finding.repairs.iter_mut().filter_map(|repair| repair.line.as_mut()).for_each(named);
    finding.group.iter_mut().filter_map(|group| Arc::make_mut(group).repair.line.as_mut()).for_each(named);
    rename(finding, |text| text.replace(&format!(" at {WGSL}:"), &format!(" at {file}:")));
}

/// Debug lines of the text itself remain: they lead to the language that was translated to it.
fn of_assembly(finding: &mut Finding, shader: &Shader, file: &Arc<str>, text: &Arc<str>) {
    for access in accesses(finding).filter(|access| access.line.is_none() && access.word > 0) {
        if let Some(line) = shader.line_of_word(access.word) {
            access.line = Some(SourceLine { file: Arc::clone(file), line, column: 0 });
            access.source = Some(Arc::clone(text));
        }
    }
    let place = |word| shader.line_of_word(word).map(|line| format!("{file}:{line}"));
    rename(finding, |text| with_lines(text, place));
}

/// A text with places instead of words.
fn with_lines(text: &str, place: impl Fn(u32) -> Option<String>) -> String {
    let mut parts = text.split(WORD);
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        match number.parse().ok().and_then(&place) {
            Some(place) => named.push_str(&place),
            None => named.extend([WORD, number]),
        }
        named.push_str(rest);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_lines() {
        let place = |word: u32| (word < 100).then(|| format!("a.spvasm:{}", word / 10));
        let text = "the write at SPIR-V word 41 before the read at SPIR-V word 52, not SPIR-V word 200; SPIR-V word x";
        let lines = "the write at a.spvasm:4 before the read at a.spvasm:5, not SPIR-V word 200; SPIR-V word x";
        assert_eq!(with_lines(text, place), lines);
        assert_eq!(with_lines("none", place), "none");
    }
}
