//! The `.litmus` format of Dat3M, for Vulkan.
//!
//! ```text
//! VULKAN name
//! "a comment"
//! { x=0; P1:r0=0; y aliases x; }
//! { ssw P0 P1; }
//!  P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;
//!  st.av.dv.sc0 x, 1   | ld.vis.dv.sc0 r0, x ;
//! exists (P1:r0 == 1)
//! ```
//!
//! 1. Numbers of subgroups and workgroups are relative to the enclosing group.
//! 2. A location exists if the text initialises it or an instruction names it. Without an initial value it holds 0,
//!    with a warning. A register exists if the text initialises it or its thread sets it: on a path where it was not
//!    set, it holds 0.
//! 3. `x aliases y` gives a location a second reference.
//! 4. A thread is named `P0`, or by its number alone: `ssw 0 1`, `0:r0`.
//! 5. `exists`, `forall`, `~exists`, and `filter` before one of them; a `filter` alone asks whether any execution
//!    passes.

mod question;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::instruction::{SymbolTable, instruction};
use super::lex::shown;
use super::tokens::{Cursor, TokenKind, tokens};
use super::{Error, Test, invocation};
use crate::program::{InstructionKind, Place, Program, Register, Thread};

/// Maximum number of threads: an execution has at most this many events.
const MAX_THREADS: usize = 128;

/// A register that a test gives a first value.
struct InitialRegister {
    /// The name of its thread.
    thread: String,
    place: Place,
    register: Register,
    value: i64,
}

/// A register that an instruction reads.
struct RegisterUse {
    thread: usize,
    register: Register,
    place: Place,
}

/// A branch to a label that may come after it.
#[derive(Clone)]
struct Jump {
    /// The instruction's index in its thread's code.
    at: usize,
    label: String,
    place: Place,
}

struct DartagnanReader<'a> {
    cursor: Cursor<'a>,
    program: Program,
    names: SymbolTable,
    registers: Vec<InitialRegister>,
    /// The registers that are read.
    read: Vec<RegisterUse>,
    warnings: Vec<Error>,
}

/// Reads a test.
pub(super) fn read(name: &str, text: &str) -> Result<Test, Error> {
    let cursor = Cursor { text, tokens: tokens(text)?, at: 0 };
    let program = Program { name: name.to_owned(), ..Program::default() };
    let mut reader = DartagnanReader {
        cursor,
        program,
        names: SymbolTable::default(),
        registers: vec![],
        read: vec![],
        warnings: vec![],
    };
    let (language, token) = reader.cursor.name("VULKAN")?;
    if !language.eq_ignore_ascii_case("vulkan") {
        return Err(token.error(format!("the test is for {}, not for VULKAN", token.shown())));
    }
    reader.initial()?;
    let system = reader.system()?;
    reader.threads()?;
    let mut known = BTreeSet::new();
    for (a, b) in system {
        let pair = (reader.thread(&a.0, a.1)?, reader.thread(&b.0, b.1)?);
        if known.insert(pair) {
            reader.program.system.push(pair);
        }
    }
    reader.code()?;
    reader.registers()?;
    let questions = reader.questions()?;
    if reader.program.threads.iter().all(|thread| thread.code.is_empty()) {
        return Err(Error::new(Place { line: 1, column: 1 }, "the test has no operations"));
    }
    Ok(Test { program: reader.program, questions, warnings: reader.warnings })
}

type NamedThread<'a> = (Cow<'a, str>, Place);

impl<'a> DartagnanReader<'a> {
    /// `{ x=0; P1:r0=0; y aliases x; }`
    fn initial(&mut self) -> Result<(), Error> {
        self.cursor.sign("{")?;
        while !self.cursor.takes("}") {
            if self.cursor.takes(";") {
                continue;
            }
            if self.at_register() {
                let (thread, place) = self.thread_name()?;
                self.cursor.sign(":")?;
                let (register, _) = self.cursor.name("a register")?;
                self.cursor.sign("=")?;
                let value = self.cursor.number("a number")?;
                let (thread, register) = (thread.into_owned(), Register(Arc::from(register)));
                self.registers.push(InitialRegister { thread, place, register, value });
                self.end_of_declaration()?;
                continue;
            }
            let (name, token) = self.cursor.name("a location or a thread")?;
            if self.cursor.takes_name("aliases") {
                let of = self.cursor.name("a location")?;
                self.names.alias(&mut self.program, (name, token), of)?;
            } else {
                self.cursor.sign("=")?;
                let value = self.cursor.number("a number")?;
                self.names.initialise(&mut self.program, name, value).map_err(|message| token.error(message))?;
            }
            self.end_of_declaration()?;
        }
        self.cursor.takes(";");
        Ok(())
    }

    fn end_of_declaration(&self) -> Result<(), Error> {
        let token = self.cursor.peek();
        if matches!(token.kind, TokenKind::Sign(";" | "}")) {
            return Ok(());
        }
        Err(token.error(format!("`;` is expected here, not {}", token.shown())))
    }

    /// Whether a register of a thread is next: `P0:r0`, or `0:r0`.
    fn at_register(&self) -> bool {
        matches!(self.cursor.peek().kind, TokenKind::Name(_) | TokenKind::Number(_)) && self.is_colon_after()
    }

    /// A thread's name; a number identifies the thread that has it in its name.
    fn thread_name(&mut self) -> Result<(Cow<'a, str>, Place), Error> {
        let token = self.cursor.next();
        let name = match token.kind {
            TokenKind::Name(name) => Cow::Borrowed(name),
            TokenKind::Number(number) => Cow::Owned(format!("P{number}")),
            TokenKind::Sign(_) | TokenKind::End => {
                return Err(token.error(format!("a thread is expected here, not {}", token.shown())));
            }
        };
        Ok((name, token.place))
    }

    /// `{ ssw P0 P1; }`
    fn system(&mut self) -> Result<Vec<(NamedThread<'a>, NamedThread<'a>)>, Error> {
        let mut pairs = Vec::new();
        if !self.cursor.takes("{") {
            return Ok(pairs);
        }
        while !self.cursor.takes("}") {
            if self.cursor.takes(";") {
                continue;
            }
            let (keyword, token) = self.cursor.name("ssw")?;
            if keyword != "ssw" {
                return Err(token.error(format!("`ssw` is expected here, not {}", token.shown())));
            }
            pairs.push((self.thread_name()?, self.thread_name()?));
        }
        self.cursor.takes(";");
        Ok(pairs)
    }

    /// `P0@sg 0, wg 0, qf 0 | … ;`
    fn threads(&mut self) -> Result<(), Error> {
        let mut groups: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut number = |path: Vec<u32>| {
            let next = groups.len() as u32;
            *groups.entry(path).or_insert(next)
        };
        loop {
            let (name, place) = self.thread_name()?;
            if self.program.threads.iter().any(|thread| thread.name == name) {
                return Err(Error::new(place, format!("thread `{}` is already defined", shown(&name))));
            }
            if self.program.threads.len() == MAX_THREADS {
                return Err(Error::new(place, format!("there are more threads than the bound of {MAX_THREADS}")));
            }
            self.cursor.sign("@")?;
            let mut ids = [0; 3];
            for (at, level) in ["sg", "wg", "qf"].into_iter().enumerate() {
                if at > 0 {
                    self.cursor.sign(",")?;
                }
                let (found, token) = self.cursor.name(level)?;
                if found != level {
                    return Err(token.error(format!("`{level}` is expected here, not {}", token.shown())));
                }
                ids[at] = self.cursor.id("the number of a group")?;
            }
            let [subgroup, workgroup, family] = ids;
            let agent = invocation(
                number(vec![family, workgroup, subgroup]),
                number(vec![family, workgroup]),
                number(vec![family]),
            );
            self.program.threads.push(Thread { name: name.into_owned(), agent, code: vec![], registers: vec![] });
            if !self.cursor.takes("|") {
                break;
            }
        }
        self.cursor.sign(";")?;
        Ok(())
    }

    /// The rows of instructions, up to the first word of a question.
    fn code(&mut self) -> Result<(), Error> {
        let threads = self.program.threads.len();
        let mut labels: Vec<BTreeMap<String, usize>> = vec![BTreeMap::new(); threads];
        let mut jumps: Vec<Vec<Jump>> = vec![vec![]; threads];
        while !self.at_question() {
            for thread in 0..threads {
                let token = self.cursor.peek();
                if thread > 0 && token.kind == TokenKind::Sign(";") {
                    return Err(token.error(format!("the row has {thread} of {threads} columns")));
                }
                if thread > 0 {
                    self.cursor.sign("|")?;
                }
                self.cell(thread, &mut labels[thread], &mut jumps[thread])?;
            }
            self.cursor.sign(";")?;
        }
        for (thread, jumps) in jumps.into_iter().enumerate() {
            for Jump { at, label, place } in jumps {
                let Some(&to) = labels[thread].get(&label) else {
                    return Err(Error::new(place, format!("thread {thread} has no label `{}`", shown(&label))));
                };
                if let InstructionKind::Branch { target, .. } = &mut self.program.threads[thread].code[at].kind {
                    *target = to;
                }
            }
        }
        Ok(())
    }

    fn cell(
        &mut self,
        thread: usize,
        labels: &mut BTreeMap<String, usize>,
        jumps: &mut Vec<Jump>,
    ) -> Result<(), Error> {
        let TokenKind::Name(first) = self.cursor.peek().kind else { return Ok(()) };
        let token = self.cursor.next();
        let here = self.program.threads[thread].code.len();
        if self.cursor.takes(":") {
            if labels.insert(first.to_owned(), here).is_some() {
                return Err(token.error(format!("label `{}` is already defined", shown(first))));
            }
            return Ok(());
        }
        let read = instruction(&mut self.cursor, &mut self.names, first, token)?;
        self.read.extend(self.names.read.drain(..).map(|(register, place)| RegisterUse { thread, register, place }));
        for (name, place) in self.names.implicit.drain(..) {
            let message = format!("nothing initialises the location `{}`; it holds 0", shown(&name));
            self.warnings.push(Error::new(place, message));
            self.program.references.push(name.clone());
            self.program.locations.push((name, 0));
        }
        if let Some((label, place)) = read.label {
            jumps.push(Jump { at: here, label, place });
        }
        if let InstructionKind::Execute { operation, .. } = &read.instruction.kind {
            for rule in crate::wellformed::operation_defects(operation) {
                self.warnings.push(token.error(format!("{rule}; the program has no executions")));
            }
        }
        self.program.threads[thread].code.push(read.instruction);
        Ok(())
    }

    fn thread(&self, name: &str, place: Place) -> Result<usize, Error> {
        let found = self.program.threads.iter().position(|thread| thread.name == name);
        found.ok_or_else(|| Error::new(place, format!("there is no thread `{}`", shown(name))))
    }

    fn registers(&mut self) -> Result<(), Error> {
        for InitialRegister { thread, place, register, value } in std::mem::take(&mut self.registers) {
            let thread = self.thread(&thread, place)?;
            self.program.threads[thread].registers.push((register, value));
        }
        for RegisterUse { thread, register, place } in &self.read {
            self.is_set(*thread, register, *place)?;
        }
        Ok(())
    }

    /// Checks that a thread has a register: initialised, or set by an instruction.
    fn is_set(&self, thread: usize, register: &Register, place: Place) -> Result<(), Error> {
        let thread = &self.program.threads[thread];
        let sets = |kind: &InstructionKind| match kind {
            InstructionKind::Execute { destination, .. } => destination.as_ref() == Some(register),
            InstructionKind::Compute { destination, .. } => destination == register,
            InstructionKind::Branch { .. } => false,
        };
        let initialised = thread.registers.iter().any(|known| known.0 == *register);
        if initialised || thread.code.iter().any(|instruction| sets(&instruction.kind)) {
            return Ok(());
        }
        let name = shown(&register.0);
        Err(Error::new(place, format!("nothing sets register `{name}` of thread {}", shown(&thread.name))))
    }
}
