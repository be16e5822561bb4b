//! The parser of both text forms: head, declarations, labels of blocks and instructions with their results.
//!
//! Ids are preserved: `v7` in the text is value 7 of the kernel. The parser checks syntax only; the verifier checks the
//! kernel.

use std::fmt::{self, Formatter};

use cranelift_entity::{EntityRef, EntitySet};
use smallvec::SmallVec;

use super::{Function, ValueDef};
use crate::text::{Line, ParseError, id, id_limit, named};

type Result<T> = std::result::Result<T, ParseError>;

/// The IR-specific part of a text form.
pub(crate) trait Syntax: Function + Sized {
    /// The words at the start of a kernel.
    const HEAD: &'static str;

    /// Whether a value may be used above its definition. Otherwise the types of operands are known when an instruction
    /// is read.
    const USES_PRECEDE_DEFINITIONS: bool;

    /// The type of a value until its definition is read.
    const UNDEFINED: Self::Type;

    /// Reads the first line.
    fn head(line: &mut Line<'_>) -> Result<Self>;

    /// Reads a line between the head and the first block.
    fn declaration(parser: &mut Parser<Self>, line: &mut Line<'_>) -> Result<()>;

    /// The type with this name.
    fn type_from_name(name: &str) -> Option<Self::Type>;

    /// Reads the part of a label after the parameters.
    fn label(_parser: &mut Parser<Self>, _line: &mut Line<'_>, _block: Self::Block) -> Result<()> {
        Ok(())
    }

    /// Prints the part of a label after the parameters.
    fn print_label(&self, _f: &mut Formatter<'_>, _block: Self::Block) -> fmt::Result {
        Ok(())
    }

    /// Reads a line of a block that is not an instruction; `false` if it is one.
    fn annotation(_parser: &mut Parser<Self>, _line: &mut Line<'_>, _block: Self::Block) -> Result<bool> {
        Ok(false)
    }

    /// Prints the lines before the terminator.
    fn print_annotation(&self, _f: &mut Formatter<'_>, _block: Self::Block) -> fmt::Result {
        Ok(())
    }

    /// Reads an instruction, and returns the types of its results.
    fn instruction(parser: &mut Parser<Self>, line: &mut Line<'_>) -> Result<(Self::InstData, ResultTypes<Self>)>;

    /// Reads the optional suffix of an instruction.
    fn suffix(&mut self, _line: &mut Line<'_>, _inst: Self::Inst) {}

    /// Prints an instruction without its results.
    fn print_inst(&self, f: &mut Formatter<'_>, inst: Self::Inst, data: &Self::InstData) -> fmt::Result;
}

/// Types of an instruction's results.
pub(crate) type ResultTypes<K> = SmallVec<[<K as Function>::Type; 4]>;

/// Reads a kernel.
pub(crate) fn parse<K: Syntax>(text: &str) -> Result<K> {
    let mut lines = (1..).zip(text.lines()).map(|(number, text)| Line::new(number, text));
    let missing = || ParseError { line: 1, column: 1, message: format!("expected `{}`", K::HEAD) };
    let mut head = lines.find(|line| line.as_ref().map_or(true, |line| !line.is_done())).ok_or_else(missing)??;
    let unexpected = head.error(format!("expected `{}`", K::HEAD));
    if !K::HEAD.split(' ').all(|word| head.eat_word(word)) {
        return Err(unexpected);
    }
    let kernel = K::head(&mut head)?;
    head.finish()?;
    let mut parser = Parser {
        kernel,
        current: None,
        defined: EntitySet::new(),
        placed: EntitySet::new(),
        uses: Vec::new(),
        limit: id_limit(text.len()),
    };
    for line in lines {
        let mut line = line?;
        if !line.is_done() {
            parser.line(&mut line)?;
            line.finish()?;
        }
    }
    parser.finish()
}

/// State of the parser: the kernel so far.
pub(crate) struct Parser<K: Function> {
    pub(crate) kernel: K,
    current: Option<K::Block>,
    /// Values that are defined.
    defined: EntitySet<K::Value>,
    /// Blocks that are in the layout.
    placed: EntitySet<K::Block>,
    /// Uses that may precede the definition, with line and column.
    uses: Vec<(K::Value, (u32, u32))>,
    /// Exclusive upper bound of the ids of values and blocks.
    limit: usize,
}

impl<K: Syntax> Parser<K> {
    fn line(&mut self, line: &mut Line<'_>) -> Result<()> {
        match line.peek_word() {
            Some(word) if id::<K::Block>("block", word).is_some() => self.label(line),
            _ => match self.current {
                None => K::declaration(self, line),
                Some(block) => {
                    if K::annotation(self, line, block)? {
                        Ok(())
                    } else {
                        self.inst(line, block)
                    }
                }
            },
        }
    }

    /// `block1(v3: i32, v4: f32):`
    fn label(&mut self, line: &mut Line<'_>) -> Result<()> {
        let error = line.error("the block is there already");
        let block = self.block(line)?;
        if !self.placed.insert(block) {
            return Err(error);
        }
        self.kernel.append_block(block);
        self.current = Some(block);
        if line.eat('(') {
            for index in 0.. {
                let (twice, param) = self.result(line)?;
                self.define(param, twice)?;
                line.expect(':')?;
                let ty = line.word("a type", K::type_from_name)?;
                self.kernel.values_mut()[param] = ValueDef::Param { block, index, ty };
                self.kernel.append_param(block, param);
                if !line.eat(',') {
                    break;
                }
            }
            line.expect(')')?;
        }
        K::label(self, line, block)?;
        line.expect(':')
    }

    /// `v5, v6 = load_elements …`
    fn inst(&mut self, line: &mut Line<'_>, block: K::Block) -> Result<()> {
        let mut results: SmallVec<[(ParseError, K::Value); 1]> = SmallVec::new();
        if line.second_is('=') || line.second_is(',') {
            results.push(self.result(line)?);
            while line.eat(',') {
                results.push(self.result(line)?);
            }
            line.expect('=')?;
        }
        let (number, column) = line.position();
        let (data, types) = K::instruction(self, line)?;
        if !results.is_empty() && results.len() != types.len() {
            let message = match types.len() {
                0 => "the instruction has no result".into(),
                1 => "the instruction has one result".into(),
                count => format!("the instruction has {count} results"),
            };
            return Err(ParseError { line: number, column, message });
        }
        let inst = self.kernel.append_inst(block, data);
        self.kernel.suffix(line, inst);
        for (index, ((twice, value), ty)) in (0..).zip(results.into_iter().zip(types)) {
            self.define(value, twice)?;
            self.kernel.values_mut()[value] = ValueDef::Result { inst, index, ty };
            self.kernel.append_result(inst, value);
        }
        Ok(())
    }

    /// A value to be defined, with the error to report if it is defined already.
    fn result(&mut self, line: &mut Line<'_>) -> Result<(ParseError, K::Value)> {
        Ok((line.error("the value is defined twice"), self.value_id(line)?))
    }

    fn define(&mut self, value: K::Value, twice: ParseError) -> Result<()> {
        if self.defined.insert(value) { Ok(()) } else { Err(twice) }
    }

    fn value_id(&mut self, line: &mut Line<'_>) -> Result<K::Value> {
        let unused = || ValueDef::Param { block: K::Block::new(0), index: u32::MAX, ty: K::UNDEFINED };
        named(line, "a value", "v", self.kernel.values_mut(), self.limit, unused)
    }

    /// A value used here, which must be defined above.
    pub(crate) fn value(&mut self, line: &mut Line<'_>) -> Result<K::Value> {
        if K::USES_PRECEDE_DEFINITIONS {
            return self.value_defined_anywhere(line);
        }
        let (number, column) = line.position();
        let value = self.value_id(line)?;
        if self.defined.contains(value) {
            return Ok(value);
        }
        Err(ParseError { line: number, column, message: format!("{value} is not defined above") })
    }

    /// A value used here, which may be defined below.
    pub(crate) fn value_defined_anywhere(&mut self, line: &mut Line<'_>) -> Result<K::Value> {
        let position = line.position();
        let value = self.value_id(line)?;
        self.uses.push((value, position));
        Ok(value)
    }

    /// A block; created if it does not exist yet.
    pub(crate) fn block(&mut self, line: &mut Line<'_>) -> Result<K::Block> {
        named(line, "a block", "block", self.kernel.blocks_mut(), self.limit, K::BlockData::default)
    }

    fn finish(self) -> Result<K> {
        match self.uses.iter().find(|(value, _)| !self.defined.contains(*value)) {
            None => Ok(self.kernel),
            Some(&(value, (line, column))) => {
                Err(ParseError { line, column, message: format!("{value} is defined nowhere") })
            }
        }
    }
}
