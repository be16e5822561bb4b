//! The `.test` format of the Khronos Vulkan memory model.
//!
//! Line by line: topology (`NEWQF`, `NEWWG`, `NEWSG`, `NEWTHREAD`), relations (`SSW`, `SLOC`), operations, questions.
//! Peculiarities, which are preserved:
//! 1. A line with fewer than two characters, or one that begins with `//`, is ignored.
//! 2. Topology lines only open groups: a group cannot be reopened. Thread 0 is open at the start.
//! 3. A load reads from the store of the same name and value, and a load of 0 without such a store reads the initial
//!    value. A missing value counts as -1: a load and a store without values are paired, too. Two stores of one value
//!    leave a load of it without a source, with a warning; a read-modify-write of equal values would have to read
//!    itself. A stated value of a load that no store has is an error here (the Khronos tool ignores it); -1 leaves the
//!    source of a read-modify-write open.
//! 4. A name is a reference. `SLOC` makes two names references to the same location.
//! 5. Programs that break the rules of well-formed programs give a warning, and have no executions.

mod operation;

use std::collections::BTreeSet;

use super::lex::{Piece, lines, shown};
use super::{Atom, Error, Question, QuestionKind, Test, invocation};
use crate::event::Location;
use crate::program::{Comparison, Instruction, InstructionKind, Pin, PinnedSource, Place, Program, Thread};
use crate::wellformed::operation_defects;

use operation::Tokens;

/// A parsed operation, with the values that determine sources.
struct Line {
    at: (usize, usize),
    name: String,
    reads: Option<i64>,
    writes: Option<i64>,
    /// Place of the value that is read, or of the operation.
    place: Place,
}

#[derive(Default)]
struct KhronosReader {
    program: Program,
    questions: Vec<Question>,
    warnings: Vec<Error>,
    lines: Vec<Line>,
    /// The number of the open thread, its index once it has operations, and the numbers by index.
    number: u32,
    current: Option<usize>,
    numbers: Vec<u32>,
    /// The open subgroup, workgroup and queue family, and whether they have operations.
    groups: [u32; 3],
    used: [bool; 3],
    system: Vec<(Named, Named)>,
    same: Vec<[(String, Place); 2]>,
}

/// A thread's number and its place in the text.
type Named = (u32, Place);

const MAX_EVENTS: usize = 4096;

/// Reads a test.
pub(super) fn read(name: &str, text: &str) -> Result<Test, Error> {
    let mut reader = KhronosReader::default();
    reader.program.name = name.to_owned();
    for line in lines(text) {
        if line.text.len() >= 2 && !line.text.starts_with("//") {
            reader.line(line)?;
        }
    }
    reader.finish()
}

impl KhronosReader {
    fn line(&mut self, line: Piece<'_>) -> Result<(), Error> {
        let words = line.words();
        let Some(first) = words.first() else { return Ok(()) };
        match first.text {
            "SATISFIABLE" | "NOSOLUTION" => self.question(line, *first, &words[1..]),
            "SSW" => {
                let [a, b] = words[1..] else { return Err(first.error("SSW takes two numbers of threads")) };
                let pair = [a, b].map(|word| Ok((word.number("a thread")?, word.place)));
                let [a, b]: [Result<Named, Error>; 2] = pair;
                self.system.push((a?, b?));
                Ok(())
            }
            "SLOC" => {
                let [a, b] = words[1..] else { return Err(first.error("SLOC takes two names")) };
                self.same.push([a, b].map(|name| (name.text.to_owned(), name.place)));
                Ok(())
            }
            "NEWQF" | "NEWWG" | "NEWSG" => {
                if let Some(extra) = words.get(1) {
                    return Err(extra.error(format!("nothing may follow {}", first.text)));
                }
                let level = ["NEWSG", "NEWWG", "NEWQF"].iter().position(|name| *name == first.text).unwrap_or(0);
                if std::mem::take(&mut self.used[level]) {
                    self.groups[level] += 1;
                }
                Ok(())
            }
            "NEWTHREAD" => self.thread(&words[1..]),
            _ => self.operation(*first, line.after(first.text.len() + leading(line.text))),
        }
    }

    fn thread(&mut self, words: &[Piece<'_>]) -> Result<(), Error> {
        self.number = match words {
            [] => self.number.saturating_add(1),
            [number] => number.number("a thread")?,
            [_, extra, ..] => return Err(extra.error("NEWTHREAD takes one number at most")),
        };
        self.current = None;
        Ok(())
    }

    /// The index of the open thread, which exists from its first operation.
    fn open(&mut self, place: Piece<'_>) -> Result<usize, Error> {
        let missing = match self.used {
            _ if self.numbers.is_empty() => None,
            [_, true, false] => Some("a new queue family begins with NEWWG, NEWSG and NEWTHREAD"),
            [true, false, _] => Some("a new workgroup begins with NEWSG and NEWTHREAD"),
            [false, ..] if self.current.is_some() => Some("a new subgroup begins with NEWTHREAD"),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(place.error(missing));
        }
        if let Some(thread) = self.current {
            return Ok(thread);
        }
        if self.numbers.contains(&self.number) {
            return Err(place.error(format!("thread {} is already defined", self.number)));
        }
        let [subgroup, workgroup, queue_family] = self.groups;
        let agent = invocation(subgroup, workgroup, queue_family);
        let name = format!("T{}", self.numbers.len());
        self.program.threads.push(Thread { name, agent, code: vec![], registers: vec![] });
        self.numbers.push(self.number);
        self.current = Some(self.program.threads.len() - 1);
        self.used = [true; 3];
        Ok(self.program.threads.len() - 1)
    }

    fn operation(&mut self, tokens: Piece<'_>, rest: Piece<'_>) -> Result<(), Error> {
        let thread = self.open(tokens)?;
        if self.lines.len() >= MAX_EVENTS {
            return Err(tokens.error(format!("there are more operations than the bound of {MAX_EVENTS}")));
        }
        let mut parsed = Tokens::default();
        for token in tokens.split(|c| c == '.') {
            parsed.token(token)?;
        }
        let at = (thread, self.program.threads[thread].code.len());
        let mut line = Line { at, name: String::new(), reads: None, writes: None, place: tokens.place };
        let (operation, value, barrier) = parsed.operation(tokens, rest.trimmed(), self, &mut line)?;
        for rule in operation_defects(&operation) {
            self.warnings.push(tokens.error(format!("{rule}; the program has no executions")));
        }
        let kind = InstructionKind::Execute { operation, destination: None, value, barrier };
        self.program.threads[thread].code.push(Instruction { place: tokens.place, kind });
        self.lines.push(line);
        Ok(())
    }

    /// The index of a reference, which is also its object before `SLOC`.
    fn reference(&mut self, name: &str) -> u32 {
        let references = &mut self.program.references;
        let at = references.iter().position(|known| known == name).unwrap_or_else(|| {
            references.push(name.to_owned());
            self.program.locations.push((name.to_owned(), 0));
            references.len() - 1
        });
        at as u32
    }

    fn question(&mut self, line: Piece<'_>, first: Piece<'_>, words: &[Piece<'_>]) -> Result<(), Error> {
        let no_chains = words.first().is_some_and(|word| word.text == "NOCHAINS");
        let skipped = if no_chains { words[0] } else { first };
        let from = skipped.text.as_ptr() as usize - line.text.as_ptr() as usize + skipped.text.len();
        let predicate = line.after(from).trimmed();
        let mut atoms = Vec::new();
        let mut rest = predicate;
        loop {
            let end = rest.text.find("&&");
            atoms.push(atom(rest.before(end.unwrap_or(rest.text.len())).trimmed())?);
            match end {
                Some(end) => rest = rest.after(end + 2),
                None => break,
            }
        }
        let expected = first.text == "SATISFIABLE";
        let kind = QuestionKind::Satisfiable { expected, no_chains, atoms };
        self.questions.push(Question { place: first.place, text: line.trimmed().text.to_owned(), kind });
        Ok(())
    }

    fn finish(mut self) -> Result<Test, Error> {
        if self.lines.is_empty() {
            return Err(Error::new(Place { line: 1, column: 1 }, "the test has no operations"));
        }
        let thread = |(number, place): Named| {
            let found = self.numbers.iter().position(|known| *known == number);
            found.ok_or_else(|| Error::new(place, format!("there is no thread {number} with operations")))
        };
        let mut known = BTreeSet::new();
        for &(a, b) in &self.system {
            let pair = (thread(a)?, thread(b)?);
            if known.insert(pair) {
                self.program.system.push(pair);
            }
        }
        self.merge_locations()?;
        self.pin()?;
        Ok(Test { program: self.program, questions: self.questions, warnings: self.warnings })
    }

    fn merge_locations(&mut self) -> Result<(), Error> {
        let find = |(name, place): &(String, Place)| {
            let found = self.program.references.iter().position(|known| known == name);
            found.ok_or_else(|| Error::new(*place, format!("no operation uses the name `{}`", shown(name))))
        };
        let mut object: Vec<_> = (0..self.program.references.len()).collect();
        for [a, b] in &self.same {
            let (kept, merged) = (object[find(a)?], object[find(b)?]);
            object.iter_mut().filter(|object| **object == merged).for_each(|object| *object = kept);
        }
        for instruction in self.program.threads.iter_mut().flat_map(|thread| &mut thread.code) {
            if let InstructionKind::Execute { operation, .. } = &mut instruction.kind
                && let Some(access) = operation.access_mut()
            {
                access.location = Location::whole(object[access.reference as usize] as u32);
            }
        }
        Ok(())
    }

    /// Derives sources from equal values.
    fn pin(&mut self) -> Result<(), Error> {
        let access = |line: &Line| match &self.program.threads[line.at.0].code[line.at.1].kind {
            InstructionKind::Execute { operation, .. } => {
                operation.access().map(|access| (access.reads, access.writes))
            }
            _ => None,
        };
        let mut pins = Vec::new();
        for read in self.lines.iter().filter(|line| access(line).is_some_and(|(reads, _)| reads)) {
            let writes = |line: &&Line| access(line).is_some_and(|(_, writes)| writes);
            let equal = self
                .lines
                .iter()
                .filter(writes)
                .filter(|write| write.name == read.name && write.writes.unwrap_or(-1) == read.reads.unwrap_or(-1));
            let before = pins.len();
            // With two sources the read has none.
            pins.extend(equal.take(2).map(|write| Pin { read: read.at, source: PinnedSource::Write(write.at) }));
            let own = pins[before..].iter().any(|pin: &Pin| pin.source == PinnedSource::Write(read.at));
            if read.reads == Some(0) && !own {
                pins.push(Pin { read: read.at, source: PinnedSource::Initial });
            }
            let stated = read.reads.filter(|value| *value != -1);
            match (stated, pins.len() - before) {
                (Some(value), 0) => {
                    let message = format!("no operation writes {value} to `{}`: it cannot be read", shown(&read.name));
                    return Err(Error::new(read.place, message));
                }
                (Some(value), 2..) => {
                    let message = format!("{value} would be read from two sources; the program has no executions");
                    self.warnings.push(Error::new(read.place, message));
                }
                _ => {}
            }
        }
        self.program.pins = pins;
        Ok(())
    }
}

/// Number of bytes of leading white space.
fn leading(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn atom(text: Piece<'_>) -> Result<Atom, Error> {
    let inner = text.text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let atom = inner.map_or(text.text, str::trim);
    if atom == "consistent[X]" {
        return Ok(Atom::Consistent);
    }
    let counted = [("#dr", true), ("#rs", false)]
        .into_iter()
        .find_map(|(name, races)| Some((atom.strip_prefix(name)?.trim_start(), races)));
    let Some((rest, races)) = counted else {
        return Err(text.error(format!("`{}` is not one of consistent[X], #dr and #rs", shown(text.text))));
    };
    let comparisons = [
        (">=", Comparison::GreaterEqual),
        ("=<", Comparison::LessEqual),
        ("!=", Comparison::NotEqual),
        (">", Comparison::Greater),
        ("<", Comparison::Less),
        ("=", Comparison::Equal),
    ];
    let found =
        comparisons.into_iter().find_map(|(name, comparison)| Some((comparison, rest.strip_prefix(name)?.trim())));
    match found.and_then(|(comparison, number)| Some((comparison, number.parse().ok()?))) {
        Some((comparison, number)) if races => Ok(Atom::Races(comparison, number)),
        Some((comparison, number)) => Ok(Atom::ReleaseSequences(comparison, number)),
        None => Err(text.error(format!("`{}` does not compare with a number", shown(text.text)))),
    }
}
