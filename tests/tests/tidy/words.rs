//! Retired words stay away: the table beside this file has each with the standard term.

use super::{tracked_texts, workspace};

/// Documents that speak of retired words, and texts of licenses.
const EXEMPT: [&str; 7] = [
    "docs/glossary.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "packages/deb/copyright",
    "tests/tests/tidy/retired.txt",
    "tests/tests/tidy/words.rs",
];

/// What a text must not have.
enum Phrase {
    /// These words, one after another.
    Words(Vec<String>),
    /// Identifiers that start so.
    Prefix(String),
}

/// A phrase, the term that replaced it, and longer phrases in which it may stand.
struct Retired {
    phrase: Phrase,
    standard: String,
    allowed: Vec<Vec<String>>,
}

/// Lower-case words of a text; identifiers are taken apart at underscores and capitals.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in text.chars() {
        let starts = !c.is_alphabetic() || (c.is_uppercase() && previous.is_lowercase());
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c.is_alphabetic()
        {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The entries of the table.
fn table() -> Vec<Retired> {
    let text = std::fs::read_to_string(workspace().join("tests/tests/tidy/retired.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entries = lines.flat_map(|line| {
        let mut columns = line.split(" : ");
        let (phrases, standard) = (columns.next().unwrap(), columns.next().expect("a line names the standard term"));
        let allowed: Vec<_> = columns.next().unwrap_or_default().split(',').map(words).collect();
        let allowed: Vec<_> = allowed.into_iter().filter(|phrase| !phrase.is_empty()).collect();
        let entry = move |phrase: &str| {
            let prefix = phrase.strip_suffix('*').map(|prefix| Phrase::Prefix(prefix.to_owned()));
            let phrase = prefix.unwrap_or_else(|| Phrase::Words(words(phrase)));
            Retired { phrase, standard: standard.into(), allowed: allowed.clone() }
        };
        phrases.split('|').map(entry).collect::<Vec<_>>()
    });
    entries.collect()
}

impl Retired {
    /// Whether the phrase stands in a text with these words, outside of the phrases that may have it.
    fn is_in(&self, text: &str, words: &[String]) -> bool {
        let phrase = match &self.phrase {
            Phrase::Words(phrase) => phrase,
            Phrase::Prefix(prefix) => {
                let mut identifiers = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                return identifiers.any(|identifier| identifier.starts_with(prefix));
            }
        };
        let places = words.windows(phrase.len()).enumerate().filter(|(_, window)| window == phrase);
        places.map(|(at, _)| at).any(|at| {
            !self.allowed.iter().any(|longer| {
                let inside = longer.windows(phrase.len()).position(|window| window == phrase);
                let start = inside.and_then(|inside| at.checked_sub(inside));
                start.is_some_and(|start| words[start..].starts_with(longer))
            })
        })
    }

    fn shown(&self) -> String {
        match &self.phrase {
            Phrase::Words(words) => words.join(" "),
            Phrase::Prefix(prefix) => format!("{prefix}…"),
        }
    }
}

#[test]
fn retired_words_stay_away() {
    let table = table();
    let mut found = Vec::new();
    for (path, text) in tracked_texts().into_iter().filter(|(path, _)| !EXEMPT.contains(&path.as_str())) {
        for (line, text) in text.lines().enumerate() {
            let words = words(text);
            let retired = table.iter().filter(|retired| retired.is_in(text, &words));
            found.extend(
                retired.map(|retired| format!("{path}:{}: {:?}, say: {}", line + 1, retired.shown(), retired.standard)),
            );
        }
    }
    assert!(found.is_empty(), "{} retired words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_rule_sees_identifiers_and_spares_longer_phrases() {
    let table = table();
    let has = |text| table.iter().any(|retired| retired.is_in(text, &words(text)));
    assert!(has("let tallied = 1;") && has("fn find_tallied()") && has("TallyAtomics") && has("of No account"));
    assert!(!has("a round trip") && has("a trip around") && !has("text.strip_prefix(x)") && !has("metallic"));
    assert!(has("const MOST_ROWS: u32 = 6;") && has("x < LEAST") && !has("AT_LEAST") && !has("let most = 6;"));
    assert!(has("a flight") && !has("batches in flight"));
}
