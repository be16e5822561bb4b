//! Settings that kernels of a family need to do any work: constants, push constants and grids by the names of files.
//!
//! A kernel whose loops are bounded by its input writes nothing for most random values, or does not end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::mutate::Rng;

/// A table of [`Settings`] by patterns of file names.
#[derive(Clone, Debug, Default)]
pub struct Families {
    /// The file it was read from.
    pub path: PathBuf,
    entries: Vec<(String, Settings)>,
}

/// Settings of a file; everything else is random.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Workgroups of a dispatch.
    pub groups: Option<[u32; 3]>,
    /// Specialization constants by id.
    pub constants: BTreeMap<u32, u64>,
    /// Words of the push constants.
    pub push: Vec<Rule>,
    /// Words of buffers by set and binding.
    pub bindings: BTreeMap<(u32, u32), Vec<Rule>>,
}

/// Words and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    first: usize,
    last: usize,
    values: Values,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    Range(i64, i64),
    OneOf(Vec<u32>),
}

impl Families {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The table is invalid.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(Self { path: path.to_owned(), ..text.parse()? })
    }

    /// The combined settings of all entries for a file; later entries override earlier ones.
    pub fn of(&self, file: &Path) -> Settings {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut all = Settings::default();
        for (_, settings) in self.entries.iter().filter(|(pattern, _)| matches(pattern, &name)) {
            all.groups = settings.groups.or(all.groups);
            all.constants.extend(&settings.constants);
            all.push.extend_from_slice(&settings.push);
            for (place, rules) in &settings.bindings {
                all.bindings.entry(*place).or_default().extend_from_slice(rules);
            }
        }
        all
    }
}

impl FromStr for Families {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let table: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let table = table.as_array().ok_or("the table is not an array of objects")?;
        let entries = table.iter().map(|entry| {
            let files = entry["files"].as_str().ok_or_else(|| format!("`files` is missing in {entry}"))?;
            let settings = Settings::parse(entry).map_err(|error| format!("{files}: {error}"))?;
            Ok((files.to_owned(), settings))
        });
        Ok(Self { path: PathBuf::new(), entries: entries.collect::<Result<_, String>>()? })
    }
}

impl Settings {
    fn parse(entry: &Value) -> Result<Self, String> {
        let mut settings = Self::default();
        for (key, value) in entry.as_object().into_iter().flatten() {
            match key.as_str() {
                "files" => {}
                "groups" => settings.groups = Some(groups(value).ok_or("`groups` is not three numbers above 0")?),
                "push" => settings.push = rules(object(key, value)?)?,
                "constants" => {
                    for (id, value) in object(key, value)? {
                        let id = id.parse().map_err(|_| format!("`{id}` is no id of a constant"))?;
                        settings.constants.insert(id, u64::from(number(value)?));
                    }
                }
                "bindings" => {
                    for (place, value) in object(key, value)? {
                        let (set, binding) =
                            split(place, ".").ok_or_else(|| format!("`{place}` is not SET.BINDING"))?;
                        settings.bindings.insert((set, binding), rules(object(place, value)?)?);
                    }
                }
                _ => return Err(format!("`{key}` is unknown")),
            }
        }
        Ok(settings)
    }
}

/// Writes the words that rules name; others are unchanged.
pub fn apply(rules: &[Rule], bytes: &mut [u8], rng: &mut Rng) {
    for rule in rules {
        let words = bytes.chunks_exact_mut(4).skip(rule.first).take(rule.last - rule.first + 1);
        words.for_each(|word| word.copy_from_slice(&rule.values.draw(rng).to_le_bytes()));
    }
}

impl Values {
    fn parse(value: &Value) -> Result<Self, String> {
        let Some(text) = value.as_str() else { return Ok(Self::OneOf(vec![number(value)?])) };
        if let Some((low, high)) = split(text, "..") {
            return if low <= high { Ok(Self::Range(low, high)) } else { Err(format!("`{text}` has no values")) };
        }
        let one = |text: &str| {
            let value = serde_json::from_str(text.trim()).map_err(|_| format!("`{text}` is no number"))?;
            number(&value)
        };
        Ok(Self::OneOf(text.split('|').map(one).collect::<Result<_, String>>()?))
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Range(low, high) => (low + (rng.bits() >> 1) as i64 % (high - low + 1)) as u32,
            Self::OneOf(values) => rng.pick(values),
        }
    }
}

fn object<'a>(key: &str, value: &'a Value) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("`{key}` is not an object"))
}

fn rules(words: &Map<String, Value>) -> Result<Vec<Rule>, String> {
    let rule = |(words, values): (&String, &Value)| {
        let range = words.parse().ok().map(|word: usize| (word, word)).or_else(|| split(words, ".."));
        let (first, last) = match words.as_str() {
            "*" => (0, usize::MAX - 1),
            _ => range.filter(|(first, last)| first <= last).ok_or_else(|| format!("`{words}` is no word"))?,
        };
        Ok(Rule { first, last, values: Values::parse(values)? })
    };
    words.iter().map(rule).collect()
}

/// The bits of a number: of a float, if it is written with a point.
fn number(value: &Value) -> Result<u32, String> {
    let integer =
        value.as_i64().and_then(|value| u32::try_from(value).or(i32::try_from(value).map(i32::cast_unsigned)).ok());
    let float = value.as_f64().filter(|_| value.is_f64()).map(|value| (value as f32).to_bits());
    integer.or(float).ok_or_else(|| format!("`{value}` is no number of 32 bits"))
}

fn groups(value: &Value) -> Option<[u32; 3]> {
    let sizes = value.as_array()?.iter().map(|size| number(size).ok().filter(|size| *size > 0));
    sizes.collect::<Option<Vec<_>>>()?.try_into().ok()
}

fn split<T: FromStr>(text: &str, by: &str) -> Option<(T, T)> {
    let (a, b) = text.split_once(by)?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

/// Whether a name matches a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((first, rest)) => name
            .strip_prefix(first)
            .is_some_and(|name| name.char_indices().any(|(at, _)| matches(rest, &name[at..])) || matches(rest, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::EntryPoint;
    use super::super::run::Runner;
    use super::*;
    use spelter_shaders::front::wgsl::WgslModule;

    const TABLE: &str = r#"[
        { "files": "mat*", "groups": [2, 1, 6], "constants": { "3": 32 },
          "push": { "0": 7, "2..3": "5..6", "4": "0.5|-1" }, "bindings": { "0.1": { "*": 9 } } },
        { "files": "*_id.spv", "push": { "0": 8 } }
    ]"#;

    fn words(rules: &[Rule]) -> Vec<u32> {
        let mut bytes = [0xff; 24];
        apply(rules, &mut bytes, &mut Rng::new(3));
        bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    #[test]
    fn entries_that_match_are_taken_together() {
        let families: Families = TABLE.parse().unwrap();
        let settings = families.of(Path::new("a/mat_f32.spv"));
        assert_eq!((settings.groups, settings.constants), (Some([2, 1, 6]), BTreeMap::from([(3, 32)])));
        let push = words(&settings.push);
        assert_eq!((push[0], push[1], push[5]), (7, !0, !0));
        assert!((5..=6).contains(&push[2]) && (5..=6).contains(&push[3]));
        assert!([0.5f32.to_bits(), !0].contains(&push[4]));
        assert_eq!(words(&settings.bindings[&(0, 1)]), [9; 6]);
        assert_eq!(words(&families.of(Path::new("mat_id.spv")).push)[0], 8);
        assert!(families.of(Path::new("a_mat.spv")).push.is_empty());
    }

    #[test]
    fn patterns() {
        for (pattern, name, yes) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*a*", "bab", true),
            ("*", "", true),
            ("a", "ab", false),
            ("*b*b", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (table, message) in [
            ("{}", "not an array"),
            ("[{}]", "`files` is missing"),
            (r#"[{"files": "a", "grups": 1}]"#, "a: `grups` is unknown"),
            (r#"[{"files": "a", "groups": [1, 0, 1]}]"#, "three numbers above 0"),
            (r#"[{"files": "a", "push": {"x": 1}}]"#, "`x` is no word"),
            (r#"[{"files": "a", "push": {"3..2": 1}}]"#, "`3..2` is no word"),
            (r#"[{"files": "a", "push": {"1": "4..2"}}]"#, "`4..2` has no values"),
            (r#"[{"files": "a", "push": {"1": 5000000000}}]"#, "no number of 32 bits"),
            (r#"[{"files": "a", "bindings": {"1": {}}}]"#, "not SET.BINDING"),
        ] {
            let error = table.parse::<Families>().unwrap_err();
            assert!(error.contains(message), "{table}: {error}");
        }
    }

    /// Whether a kernel writes that waits for a number which random choice does not hit.
    fn writes(settings: &Settings, condition: &str) -> bool {
        let text = format!(
            "@group(0) @binding(0) var<uniform> n: vec4u; @group(0) @binding(1) var<storage, read_write> to: array<u32>;
            @compute @workgroup_size(16)
            fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {{
                if ({condition}) {{ to[id.x + groups.x * 16 * (id.y + groups.y * id.z)] = 0xabcdef; }}
            }}"
        );
        let words = WgslModule::parse(&text).and_then(|module| module.to_spirv("main", &BTreeMap::new()));
        let entry = EntryPoint { name: "main".into(), words: words.unwrap() };
        let subjects = entry.subjects(&BTreeMap::new()).unwrap();
        let report = Runner::new("avx2", [2, 2, 1]).examine(&subjects[0], 1, settings);
        assert!(report.findings.is_empty(), "{report:?}");
        report.wrote
    }

    #[test]
    fn what_a_family_is_given_reaches_its_kernels() {
        let table = r#"[{ "files": "*", "groups": [1, 1, 3], "bindings": { "0.0": { "1": 77777 } } }]"#;
        let settings = table.parse::<Families>().unwrap().of(Path::new("any"));
        let condition = "n.y == 77777 && groups.z == 3";
        assert!(writes(&settings, condition));
        assert!(!writes(&Settings::default(), condition));
    }

    #[test]
    fn kernels_that_write_nothing_are_given_other_numbers() {
        assert!(writes(&Settings::default(), "n.x == 0 || n.y > 4"));
        assert!(writes(&Settings::default(), "id.z > 1"));
    }
}
