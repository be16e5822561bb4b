//! An assembler for the SPIR-V text form, so that kernels can be written by hand.
//!
//! It accepts what `spirv-as` accepts and emits the same words, with ids numbered in order of appearance. The grammar
//! is rspirv's, so it knows every core instruction. A comment `; Version: 1.5` sets the module's version; the default
//! is 1.3. Validation is left to the SPIR-V front end.

mod enums;
mod lexer;
mod number;
mod operands;
mod positions;

use std::collections::{BTreeMap, HashMap};

use rspirv::grammar::{ExtInstOp, INSTRUCTION_TABLE, Instruction, InstructionTable, OperandKind};

use self::lexer::SpvasmToken;
use self::number::NumberType;
pub use self::positions::Positions;
use super::Error;

/// Assembles SPIR-V text. Errors have line and column, and no word offset.
pub fn assemble(text: &str) -> Result<Vec<u32>, Error> {
    assemble_with_positions(text).map(|(words, _)| words)
}

/// As [`assemble`], with the positions that convert errors of the words to errors of the text.
pub fn assemble_with_positions(text: &str) -> Result<(Vec<u32>, Positions), Error> {
    let tokens = lexer::tokens(text)?;
    let mut assembler = TextAssembler { rest: &tokens, end: lexer::end(text), ..TextAssembler::default() };
    let (mut words, mut lines) = (vec![spirv::MAGIC_NUMBER, lexer::version(text), 0, 0, 0], BTreeMap::new());
    while let Some(first) = assembler.rest.first() {
        lines.insert(words.len(), first.line());
        assembler.instruction(&mut words)?;
    }
    words[3] = assembler.ids.len() as u32 + 1;
    let ids = assembler.ids.into_iter().map(|(name, id)| (id, name.to_owned())).collect();
    Ok((words, Positions { lines, ids }))
}

/// State that is kept from one instruction to the next.
#[derive(Default)]
struct TextAssembler<'t> {
    rest: &'t [SpvasmToken<'t>],
    /// The end of the text, for messages.
    end: lexer::Position,
    ids: HashMap<&'t str, u32>,
    /// Numeric types, for typed literals.
    numbers: HashMap<u32, NumberType>,
    /// Value → its type.
    types: HashMap<u32, u32>,
    /// `OpExtInstImport` → its instructions; `None` for a set that rspirv does not know.
    sets: HashMap<u32, Option<&'static InstructionTable<ExtInstOp>>>,
}

/// An instruction whose words are being collected.
struct Draft<'t> {
    words: Vec<u32>,
    result: Option<SpvasmToken<'t>>,
    /// Type of the literals, once the operand that determines it has been parsed.
    literal: Option<NumberType>,
}

impl<'t> TextAssembler<'t> {
    fn instruction(&mut self, words: &mut Vec<u32>) -> Result<(), Error> {
        let (result, name) = self.head()?;
        let grammar = opcode(name)?;
        let has_result = grammar.operands.iter().any(|operand| operand.kind == OperandKind::IdResult);
        match result {
            Some(id) if !has_result => return Err(id.error(format!("{} has no result", name.text))),
            None if has_result => return Err(name.error(format!("{} needs a result: `%id =`", name.text))),
            _ => {}
        }
        let mut draft = Draft { words: vec![grammar.opcode as u32], result, literal: None };
        self.operands(grammar.operands, &mut draft)?;
        if !self.at_boundary() {
            let extra = self.next("an instruction")?;
            return Err(extra.error(format!("{} takes no operand `{}` here", name.text, extra.text)));
        }
        self.remember(grammar, &draft);
        let length = draft.words.len();
        if length > usize::from(u16::MAX) {
            return Err(name.error(format!("{} has {length} words, more than 65535", name.text)));
        }
        draft.words[0] |= (length as u32) << 16;
        words.append(&mut draft.words);
        Ok(())
    }

    /// `%id = OpName` or `OpName`.
    fn head(&mut self) -> Result<(Option<SpvasmToken<'t>>, SpvasmToken<'t>), Error> {
        let first = self.next("an instruction")?;
        if !first.is_id() {
            return Ok((None, first));
        }
        let equals = self.next("`=`")?;
        if equals.text != "=" {
            return Err(equals.error(format!("expected `=` after {}, found `{}`", first.text, equals.text)));
        }
        Ok((Some(first), self.next("an instruction")?))
    }

    /// Records numeric types, types of values, and extended instruction sets for later instructions.
    fn remember(&mut self, grammar: &Instruction<'_>, draft: &Draft<'t>) {
        let words = &draft.words;
        let number = match grammar.opcode {
            spirv::Op::TypeInt => NumberType::Int { bits: words[2], signed: words[3] != 0 },
            spirv::Op::TypeFloat => NumberType::Float { bits: words[2] },
            spirv::Op::ExtInstImport => {
                let set = lexer::unpack(&words[2..]);
                // The name of a set may have a version, as `NonSemantic.ClspvReflection.5`; the table has none.
                let unversioned = set.strip_prefix("NonSemantic.").and(set.rsplit_once('.')).map(|(name, _)| name);
                let table = |name| rspirv::grammar::ext_inst_table(name);
                self.sets.insert(words[1], table(&set).or_else(|| table(unversioned?)));
                return;
            }
            _ => {
                if matches!(grammar.operands, [ty, id, ..] if ty.kind == OperandKind::IdResultType && id.kind == OperandKind::IdResult)
                {
                    self.types.insert(words[2], words[1]);
                }
                return;
            }
        };
        self.numbers.insert(words[1], number);
    }

    /// Whether the next token starts an instruction, or there is none.
    fn at_boundary(&self) -> bool {
        match self.rest {
            [] => true,
            [token, equals, ..] if token.is_id() => equals.text == "=",
            [token, ..] => token.is_opcode(),
        }
    }

    fn next(&mut self, wanted: &str) -> Result<SpvasmToken<'t>, Error> {
        let (token, rest) =
            self.rest.split_first().ok_or_else(|| self.end.error(format!("expected {wanted}, found the end")))?;
        self.rest = rest;
        Ok(*token)
    }

    /// The number of an id, assigned at its first appearance.
    fn id(&mut self, token: SpvasmToken<'t>) -> Result<u32, Error> {
        if !token.is_id() {
            return Err(token.error(format!("expected an id such as %x, found `{}`", token.text)));
        }
        let fresh = self.ids.len() as u32 + 1;
        Ok(*self.ids.entry(token.text).or_insert(fresh))
    }
}

/// The grammar of `OpName`.
fn opcode(token: SpvasmToken<'_>) -> Result<&'static Instruction<'static>, Error> {
    let name = token
        .text
        .strip_prefix("Op")
        .ok_or_else(|| token.error(format!("expected an instruction, found `{}`", token.text)))?;
    by_name(name).ok_or_else(|| token.error(format!("no instruction is called {}", token.text)))
}

/// The grammar of an instruction by its name without `Op`; the old suffix of instructions that became core is accepted,
/// too.
fn by_name(name: &str) -> Option<&'static Instruction<'static>> {
    let find = |name: &str| INSTRUCTION_TABLE.iter().find(|inst| inst.opname == name);
    find(name).or_else(|| ["KHR", "EXT", "GOOGLE"].iter().find_map(|suffix| find(name.strip_suffix(suffix)?)))
}

#[cfg(test)]
mod tests;
