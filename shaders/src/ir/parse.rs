//! Reads kernels from text, as the printer writes it. `docs/ir.md` describes the form.
//!
//! The parser checks syntax only; [`verify`](super::verify()) checks the kernel.

use std::fmt::{self, Formatter};

use super::inst_parse::instruction;
use super::print::{print_annotation, print_inst};
use super::site_text::site_data;
use super::{
    Binding, BindingData, BindingKind, Block, Inst, InstData, Kernel, MemoryModel, Merge, Site, Type, Variable,
    VariableData, VariableSpace,
};
use crate::host::{Message, MessageOperand};
use crate::image::DeclaredImage;
use crate::ssa::{self, ResultTypes, Syntax};
use crate::text::{Line, ParseError, id, numbers};

type Result<T> = std::result::Result<T, ParseError>;
pub(super) type Parser = ssa::Parser<Kernel>;

impl Syntax for Kernel {
    const HEAD: &'static str = "kernel";
    const USES_PRECEDE_DEFINITIONS: bool = true;
    const UNDEFINED: Type = Type::I32;

    /// `"main" 64, 1, 1`
    fn head(line: &mut Line<'_>) -> Result<Self> {
        let name = line.text()?;
        let x = line.unsigned()?;
        line.expect(',')?;
        let y = line.unsigned()?;
        line.expect(',')?;
        let z = line.unsigned()?;
        Ok(Self::new(name, [x, y, z]))
    }

    fn declaration(parser: &mut Parser, line: &mut Line<'_>) -> Result<()> {
        let kernel = &mut parser.kernel;
        if line.eat_word("push") {
            kernel.push_bytes = line.unsigned()?;
            return Ok(());
        }
        if line.eat_word("memory_model") {
            kernel.memory_model = line.word("a memory model", MemoryModel::from_name)?;
            return Ok(());
        }
        let next_site = kernel.sites.next_key();
        if line.peek_word().and_then(|word| id("site", word)) == Some(next_site) {
            line.word("a site", Some)?;
            line.expect('=')?;
            kernel.sites.push(site_data(line)?);
            return Ok(());
        }
        let next_binding = kernel.bindings.next_key();
        if line.peek_word().and_then(|word| id("binding", word)) == Some(next_binding) {
            return kernel.binding(line);
        }
        let next_variable = kernel.variables.next_key();
        if line.peek_word().and_then(|word| id("var", word)) == Some(next_variable) {
            return kernel.variable(line);
        }
        let next_message = format!("message{}", kernel.messages.len());
        if line.eat_word(&next_message) {
            line.expect('=')?;
            let mut message = Message { text: line.text()?, operands: Vec::new() };
            while line.peek_word().is_some() {
                message.operands.push(line.word("the type of an operand", MessageOperand::from_name)?);
            }
            kernel.messages.push(message);
            return Ok(());
        }
        Err(line.error(format!(
            "expected `push`, `memory_model`, `{next_binding}`, `{next_variable}`, `{next_message}`, `{next_site}` or a \
             block"
        )))
    }

    fn type_from_name(name: &str) -> Option<Type> {
        Type::from_name(name)
    }

    /// `selection block1`, `loop block1, block2`
    fn annotation(parser: &mut Parser, line: &mut Line<'_>, block: Block) -> Result<bool> {
        let twice = line.error("the block opens two constructs");
        let merge = if line.eat_word("selection") {
            Merge::Selection { merge: parser.block(line)? }
        } else if line.eat_word("loop") {
            let merge = parser.block(line)?;
            line.expect(',')?;
            Merge::Loop { merge, continuing: parser.block(line)? }
        } else {
            return Ok(false);
        };
        match parser.kernel.blocks[block].merge.replace(merge) {
            None => Ok(true),
            Some(_) => Err(twice),
        }
    }

    fn print_annotation(&self, f: &mut Formatter<'_>, block: Block) -> fmt::Result {
        print_annotation(f, self.blocks[block].merge)
    }

    fn instruction(parser: &mut Parser, line: &mut Line<'_>) -> Result<(InstData, ResultTypes<Self>)> {
        let (data, ty) = instruction(parser, line)?;
        Ok((data, ty.into_iter().collect()))
    }

    fn suffix(&mut self, line: &mut Line<'_>, inst: Inst) {
        if matches!(self.insts[inst], InstData::Pure { .. }) && line.eat_word("no_contraction") {
            self.no_contraction.insert(inst);
        }
    }

    fn print_inst(&self, f: &mut Formatter<'_>, inst: Inst, data: &InstData) -> fmt::Result {
        print_inst(self, f, inst, data)
    }
}

impl Kernel {
    /// `binding0 = storage 0.1[1] 16 read_only`
    fn binding(&mut self, line: &mut Line<'_>) -> Result<()> {
        line.word("a binding", Some)?;
        line.expect('=')?;
        let kind = line.word("a kind of descriptor", BindingKind::from_name)?;
        let (set, binding) = line.number_as("set.binding", |text| {
            let (set, binding) = text.split_once('.')?;
            Some((set.parse().ok()?, binding.parse().ok()?))
        })?;
        line.expect('[')?;
        let count = line.unsigned()?;
        line.expect(']')?;
        let min_bytes = line.unsigned()?;
        let image = line.peek_word().and_then(DeclaredImage::from_name);
        if image.is_some() {
            line.word("an image", Some)?;
        }
        let read_only = line.eat_word("read_only");
        self.bindings.push(BindingData { set, binding, kind, count, min_bytes, element_bytes: 0, read_only, image });
        Ok(())
    }

    /// `var0 = workgroup 256 "tile"`, `var1 = constant 8 "primes" [2, 3]`
    fn variable(&mut self, line: &mut Line<'_>) -> Result<()> {
        line.word("a variable", Some)?;
        line.expect('=')?;
        let space = line.word("`workgroup`, `private` or `constant`", VariableSpace::from_name)?;
        let bytes = line.unsigned()?;
        let name = line.text()?;
        let words = if line.eat('[') { numbers(line)? } else { Vec::new() };
        self.variables.push(VariableData { space, bytes, name, words });
        Ok(())
    }
}

/// A declared binding.
pub(super) fn declared_binding(parser: &Parser, line: &mut Line<'_>) -> Result<Binding> {
    let known = |binding: &Binding| parser.kernel.bindings.is_valid(*binding);
    line.word("a binding declared above", |word| id("binding", word).filter(known))
}

/// A declared site.
pub(super) fn declared_site(parser: &Parser, line: &mut Line<'_>) -> Result<Site> {
    let known = |site: &Site| parser.kernel.sites.is_valid(*site);
    line.word("a site declared above", |word| id("site", word).filter(known))
}

/// A declared variable.
pub(super) fn declared_variable(parser: &Parser, line: &mut Line<'_>) -> Result<Variable> {
    let known = |variable: &Variable| parser.kernel.variables.is_valid(*variable);
    line.word("a place in memory", |word| id("var", word).filter(known))
}
