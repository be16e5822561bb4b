//! Parses one operation of a `.test` text: its tokens, its name and its values.

use super::super::lex::{Piece, shown};
use super::{KhronosReader, Line};
use crate::event::{Access, Action, Class, Domain, Location, Operation, Scope};
use crate::format::Error;
use crate::program::{Barrier, Expression, Operand};

/// The tokens of one operation.
#[derive(Default)]
pub(super) struct Tokens<'a> {
    seen: Vec<Piece<'a>>,
}

const TOKENS: [&str; 23] = [
    "st",
    "ld",
    "rmw",
    "atom",
    "membar",
    "cbar",
    "acq",
    "rel",
    "sc0",
    "sc1",
    "semsc0",
    "semsc1",
    "scopesg",
    "scopewg",
    "scopeqf",
    "scopedev",
    "av",
    "vis",
    "semav",
    "semvis",
    "avdevice",
    "visdevice",
    "nonpriv",
];

impl<'a> Tokens<'a> {
    /// Adds a token.
    pub(super) fn token(&mut self, token: Piece<'a>) -> Result<(), Error> {
        if !TOKENS.contains(&token.text) {
            return Err(token.error(format!("`{}` is not a token of an operation", shown(token.text))));
        }
        self.seen.push(token);
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.seen.iter().any(|token| token.text == name)
    }

    /// The one of `names` that the operation has, if any; two are an error.
    fn one<T: Copy>(&self, what: &str, names: &[(&str, T)]) -> Result<Option<T>, Error> {
        let mut found = None;
        for (name, value) in names {
            if let Some(token) = self.seen.iter().find(|token| token.text == *name)
                && found.replace(*value).is_some()
            {
                return Err(token.error(format!("an operation has one {what}, not two")));
            }
        }
        Ok(found)
    }

    /// The operation that the tokens form, with the value that it writes and its barrier.
    pub(super) fn operation(
        &self,
        place: Piece<'_>,
        operand: Piece<'_>,
        reader: &mut KhronosReader,
        line: &mut Line,
    ) -> Result<(Operation, Option<Expression>, Option<Barrier>), Error> {
        let scopes = [
            ("scopesg", Scope::Subgroup),
            ("scopewg", Scope::Workgroup),
            ("scopeqf", Scope::QueueFamily),
            ("scopedev", Scope::Device),
        ];
        let scope = self.one("scope", &scopes)?;
        let class = self.one("storage class", &[("sc0", Class::Uniform), ("sc1", Class::Workgroup)])?;
        let update = self.has("rmw");
        let (reads, writes) = (self.has("ld") || update, self.has("st") || update);
        let (mut value, mut barrier) = (None, None);
        let kinds =
            [reads || writes, self.has("membar"), self.has("cbar"), self.has("avdevice"), self.has("visdevice")];
        let action = match kinds {
            [true, false, false, false, false] => {
                let Some(class) = class else { return Err(place.error("an access has a storage class, sc0 or sc1")) };
                operands(operand, reads, writes, line)?;
                let reference = reader.reference(&line.name);
                value = line.writes.map(|value| Expression::Operand(Operand::Constant(value)));
                Action::Access(Access {
                    reads,
                    writes,
                    atomic: self.has("atom") || update,
                    non_private: self.has("nonpriv"),
                    available: self.has("av"),
                    visible: self.has("vis"),
                    class,
                    reference,
                    location: Location::whole(reference),
                })
            }
            [false, _, true, false, false] => {
                if operand.text.is_empty() {
                    return Err(place.error("a control barrier has the number of its instance"));
                }
                let number: u32 = operand.number("an instance of a control barrier")?;
                if number >= 1 << 30 {
                    return Err(operand.error(format!("the number is too large; the bound is {}", 1u32 << 30)));
                }
                barrier = Some(Barrier::Dynamic(number));
                Action::ControlBarrier { execution: scope.unwrap_or(Scope::Invocation) }
            }
            [false, true, false, false, false] => Action::Fence,
            [false, false, false, true, false] => Action::Available(Domain::Device),
            [false, false, false, false, true] => Action::Visible(Domain::Device),
            [false, false, false, false, false] => {
                return Err(place.error("an operation is st, ld, rmw, membar, cbar, avdevice or visdevice"));
            }
            _ => return Err(place.error("an operation is of one kind: these tokens are of several")),
        };
        if !kinds[0] && class.is_some() {
            return Err(place.error("only an access has a storage class; did you mean semsc?"));
        }
        if !kinds[0] && (self.has("atom") || self.has("nonpriv") || self.has("av") || self.has("vis")) {
            return Err(place.error("only an access is atomic, non-private, available or visible"));
        }
        if !kinds[0] && !kinds[2] && !operand.text.is_empty() {
            return Err(operand.error("only an access or a control barrier has an operand"));
        }
        let semantics = [("semsc0", Class::Uniform), ("semsc1", Class::Workgroup)];
        let semantics = semantics.into_iter().filter(|(name, _)| self.has(name)).map(|(_, class)| class);
        let mut operation = Operation {
            action,
            acquire: self.has("acq"),
            release: self.has("rel"),
            semantics: semantics.collect(),
            scope,
            make_available: self.has("semav"),
            make_visible: self.has("semvis"),
        };
        operation.complete();
        Ok((operation, value, barrier))
    }
}

/// Parses `name [= value [value]]`: the name, the value that is read, and the value that is written.
fn operands(operand: Piece<'_>, reads: bool, writes: bool, line: &mut Line) -> Result<(), Error> {
    let words = operand.split(|c| c == ' ' || c == '\t' || c == '=');
    let words: Vec<_> = words.into_iter().filter(|word| !word.text.is_empty()).collect();
    let Some(name) = words.first() else { return Err(operand.error("an access has the name of its reference")) };
    let starts = |c: char| c.is_alphabetic() || c == '_';
    if !name.text.starts_with(starts) || !name.text.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(name.error(format!("`{}` is not a name", shown(name.text))));
    }
    let values = words[1..].iter().map(|word| word.number("a value")).collect::<Result<Vec<i64>, _>>()?;
    if let (Some(first), false) = (words.get(1), operand.text.contains('=')) {
        return Err(first.error("a `=` stands before a value"));
    }
    let both = reads && writes;
    line.name = name.text.to_owned();
    line.place = words.get(1).unwrap_or(name).place;
    (line.reads, line.writes) = match values[..] {
        [_, _] if !both => return Err(words[2].error("only a read-modify-write has two values")),
        [_, _, ..] if values.len() > 2 => return Err(words[3].error("there are too many values")),
        [read, written] => (Some(read), Some(written)),
        [value] => (reads.then_some(value), (writes && !both).then_some(value)),
        _ => (None, None),
    };
    Ok(())
}
