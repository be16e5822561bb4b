//! Parser of scripts: declarations and commands in the order of the text. A name can be used after its declaration.

mod bind;
mod buffer;
mod command;
mod expect;
mod picture;
mod pipeline;
mod sampler;
mod shader;
mod structure;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use super::Stop;
use super::number::Number;
use super::script::{Need, Script};
use super::text::{Cursor, SourcePosition, Word};
use super::types::Struct;

/// Parses a script. Paths in it are relative to `folder`.
pub(crate) fn parse(text: &str, folder: &Path) -> Result<Script, Stop> {
    if text.split_ascii_whitespace().next() != Some("#!amber") {
        return Err(SourcePosition { line: 1, column: 1 }.fail("a script begins with `#!amber`"));
    }
    let mut parser = Parser {
        cursor: Cursor::new(text),
        folder,
        script: Script::default(),
        names: Names::default(),
        structs: HashMap::new(),
    };
    while let Some(word) = parser.cursor.any_word() {
        parser.statement(word)?;
    }
    Ok(parser.script)
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    folder: &'t Path,
    script: Script,
    names: Names<'t>,
    structs: HashMap<String, Rc<Struct>>,
}

/// Name → index.
#[derive(Default)]
struct Names<'t> {
    shaders: HashMap<&'t str, usize>,
    buffers: HashMap<&'t str, usize>,
    samplers: HashMap<&'t str, usize>,
    pipelines: HashMap<&'t str, usize>,
}

impl<'t> Parser<'t> {
    fn statement(&mut self, word: Word<'t>) -> Result<(), Stop> {
        match word.text {
            "SHADER" => self.shader(word.at),
            "VIRTUAL_FILE" => self.virtual_file(word.at),
            "STRUCT" => self.structure(word.at),
            "BUFFER" => self.buffer(word.at),
            "IMAGE" => self.image(word.at),
            "SAMPLER" => self.sampler(),
            "PIPELINE" => self.pipeline(word.at),
            "DERIVE_PIPELINE" => self.derive_pipeline(word.at),
            "SET" => self.engine_data(),
            "DEVICE_FEATURE" => self.need(Need::Feature),
            "DEVICE_PROPERTY" => self.need(Need::Property),
            "DEVICE_EXTENSION" => self.need(Need::DeviceExtension),
            "INSTANCE_EXTENSION" => self.need(Need::InstanceExtension),
            "ACCELERATION_STRUCTURE" => Err(word.at.skip("needs ray tracing")),
            text if is_placeholder(text) => Err(word.at.skip(format!("a template: `{text}` is to be filled in"))),
            _ => {
                let command = self.command(word)?;
                self.script.commands.push(command);
                Ok(())
            }
        }
    }

    fn need(&mut self, need: fn(String) -> Need) -> Result<(), Stop> {
        let name = self.cursor.expect("a name")?;
        self.script.needs.push(need(name.text.to_owned()));
        self.cursor.line_end()
    }

    /// `SET ENGINE_DATA fence_timeout_ms …`.
    fn engine_data(&mut self) -> Result<(), Stop> {
        self.cursor.keyword("ENGINE_DATA")?;
        self.cursor.keyword("fence_timeout_ms")?;
        self.script.fence_timeout_ms = Some(self.cursor.integer("number of milliseconds")?);
        self.cursor.line_end()
    }

    /// `VIRTUAL_FILE path`, its lines, `END`.
    fn virtual_file(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let path = self.cursor.expect("a path")?;
        let text = self.cursor.raw_block("VIRTUAL_FILE", at)?;
        if self.script.virtual_files.insert(path.text.to_owned(), text.to_owned()).is_some() {
            return Err(path.fail(format!("the virtual file `{}` is already declared", path.text)));
        }
        self.cursor.line_end()
    }

    /// A literal.
    fn number(&mut self, what: &str) -> Result<Number, Stop> {
        let word = self.cursor.expect(what)?;
        number(word)
    }

    /// `on` or `off`.
    fn switch(&mut self) -> Result<bool, Stop> {
        let word = self.cursor.expect("`on` or `off`")?;
        match word.text {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(word.fail(format!("expected `on` or `off`, found `{other}`"))),
        }
    }
}

/// A literal.
fn number(word: Word<'_>) -> Result<Number, Stop> {
    Number::parse(word.text).ok_or_else(|| word.fail(format!("`{}` is not a number", word.text)))
}

/// The index of a declared name; `what` is its kind.
fn find(names: &HashMap<&str, usize>, what: &str, word: Word<'_>) -> Result<usize, Stop> {
    names.get(word.text).copied().ok_or_else(|| word.fail(format!("there is no {what} `{}`", word.text)))
}

/// Declares a name; `what` is its kind.
fn declare<'t>(names: &mut HashMap<&'t str, usize>, what: &str, word: Word<'t>, index: usize) -> Result<(), Stop> {
    match names.insert(word.text, index) {
        None => Ok(()),
        Some(_) => Err(word.fail(format!("the {what} `{}` is already declared", word.text))),
    }
}

/// Whether a word is a placeholder in a template, such as `{device_features}`.
fn is_placeholder(text: &str) -> bool {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inside.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
