//! Reads kernels from text, as the printer writes it. `docs/ir.md` describes the form.
//!
//! Names stay: `v7` of the text is value 7 of the kernel. What was parsed is not yet known to make sense; that is for
//! [`verify`](super::verify()) to say.

use cranelift_entity::{EntityRef, EntitySet};

use super::inst_parse::instruction;
use super::{
    Binding, BindingData, BindingKind, Block, BlockData, InstData, Kernel, Merge, Type, Value, ValueDef, Variable,
    VariableData, VariableSpace,
};
use crate::host::{Message, Operand};
use crate::image::DeclaredImage;
use crate::text::{Line, ParseError, id, id_limit, named};

type Result<T> = std::result::Result<T, ParseError>;

impl Kernel {
    /// Reads the text form.
    ///
    /// # Errors
    ///
    /// The first place that does not follow the form, or uses a value that is defined nowhere.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = (1..).zip(text.lines()).map(|(number, text)| Line::new(number, text));
        let missing = || ParseError { line: 1, column: 1, message: "expected `kernel`".into() };
        let head = lines.find(|line| line.as_ref().map_or(true, |line| !line.is_done())).ok_or_else(missing)??;
        let mut parser = Parser {
            kernel: kernel(head)?,
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
}

/// `kernel "main" 64, 1, 1`
fn kernel(mut line: Line<'_>) -> Result<Kernel> {
    line.word("`kernel`", |word| (word == "kernel").then_some(()))?;
    let name = line.text()?;
    let x = line.unsigned()?;
    line.expect(',')?;
    let y = line.unsigned()?;
    line.expect(',')?;
    let z = line.unsigned()?;
    line.finish()?;
    Ok(Kernel::new(name, [x, y, z]))
}

/// The kernel so far.
pub(super) struct Parser {
    kernel: Kernel,
    current: Option<Block>,
    /// Values that have a definition.
    defined: EntitySet<Value>,
    /// Blocks that have a place in the layout.
    placed: EntitySet<Block>,
    /// Every use with its line and column.
    uses: Vec<(Value, (u32, u32))>,
    /// Ids of values and blocks stay below.
    limit: usize,
}

impl Parser {
    fn line(&mut self, line: &mut Line<'_>) -> Result<()> {
        match line.peek_word() {
            Some(word) if id::<Block>("block", word).is_some() => self.label(line),
            _ => match self.current {
                None => self.declaration(line),
                Some(block) => self.statement(line, block),
            },
        }
    }

    fn declaration(&mut self, line: &mut Line<'_>) -> Result<()> {
        if line.eat_word("push") {
            self.kernel.push_bytes = line.unsigned()?;
            return Ok(());
        }
        let next_binding = self.kernel.bindings.next_key();
        if line.peek_word().and_then(|word| id("binding", word)) == Some(next_binding) {
            return self.binding(line);
        }
        let next_variable = self.kernel.variables.next_key();
        if line.peek_word().and_then(|word| id("var", word)) == Some(next_variable) {
            return self.variable(line);
        }
        let next_message = format!("message{}", self.kernel.messages.len());
        if line.eat_word(&next_message) {
            line.expect('=')?;
            let mut message = Message { text: line.text()?, operands: Vec::new() };
            while line.peek_word().is_some() {
                message.operands.push(line.word("the type of an operand", Operand::from_name)?);
            }
            self.kernel.messages.push(message);
            return Ok(());
        }
        Err(line.error(format!("expected `push`, `{next_binding}`, `{next_variable}`, `{next_message}` or a block")))
    }

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
        self.kernel.bindings.push(BindingData {
            set,
            binding,
            kind,
            count,
            min_bytes,
            element_bytes: 0,
            read_only,
            image,
        });
        Ok(())
    }

    /// `var0 = workgroup 256 "tile"`, `var1 = constant 8 "primes" [2, 3]`
    fn variable(&mut self, line: &mut Line<'_>) -> Result<()> {
        line.word("a variable", Some)?;
        line.expect('=')?;
        let space = line.word("`workgroup`, `private` or `constant`", VariableSpace::from_name)?;
        let bytes = line.unsigned()?;
        let name = line.text()?;
        let mut words = Vec::new();
        if line.eat('[') {
            words.push(line.unsigned()?);
            while line.eat(',') {
                words.push(line.unsigned()?);
            }
            line.expect(']')?;
        }
        self.kernel.variables.push(VariableData { space, bytes, name, words });
        Ok(())
    }

    /// `block1(v3: i32, v4: f32):`
    fn label(&mut self, line: &mut Line<'_>) -> Result<()> {
        let error = line.error("the block is there already");
        let block = self.block(line)?;
        if !self.placed.insert(block) {
            return Err(error);
        }
        self.kernel.layout.push(block);
        self.current = Some(block);
        if line.eat('(') {
            loop {
                let (value, position) = (self.definition(line)?, self.kernel.blocks[block].params.len());
                line.expect(':')?;
                let ty = line.word("a type", Type::from_name)?;
                self.kernel.values[value] = ValueDef::Param { block, index: position as u32, ty };
                self.kernel.blocks[block].params.push(value);
                if !line.eat(',') {
                    break;
                }
            }
            line.expect(')')?;
        }
        line.expect(':')
    }

    fn statement(&mut self, line: &mut Line<'_>, block: Block) -> Result<()> {
        let position = line.error("the block opens two constructs");
        let merge = if line.eat_word("selection") {
            Merge::Selection { merge: self.block(line)? }
        } else if line.eat_word("loop") {
            let merge = self.block(line)?;
            line.expect(',')?;
            Merge::Loop { merge, continuing: self.block(line)? }
        } else {
            return self.inst(line, block);
        };
        match self.kernel.blocks[block].merge.replace(merge) {
            None => Ok(()),
            Some(_) => Err(position),
        }
    }

    fn inst(&mut self, line: &mut Line<'_>, block: Block) -> Result<()> {
        let result = if line.second_is('=') {
            let value = self.definition(line)?;
            line.expect('=')?;
            Some(value)
        } else {
            None
        };
        let without = line.error("the instruction has no result");
        let (data, ty) = instruction(self, line)?;
        let precise = matches!(data, InstData::Pure { .. }) && line.eat_word("no_contraction");
        let inst = self.kernel.insts.push(data);
        if precise {
            self.kernel.no_contraction.insert(inst);
        }
        self.kernel.blocks[block].insts.push(inst);
        if let Some(value) = result {
            let ty = ty.ok_or(without)?;
            self.kernel.values[value] = ValueDef::Result { inst, ty };
            self.kernel.results[inst] = Some(value);
        }
        Ok(())
    }

    /// A value that is defined here.
    fn definition(&mut self, line: &mut Line<'_>) -> Result<Value> {
        let twice = line.error("the value is defined twice");
        let value = self.value_id(line)?;
        if self.defined.insert(value) { Ok(value) } else { Err(twice) }
    }

    fn value_id(&mut self, line: &mut Line<'_>) -> Result<Value> {
        let unused = ValueDef::Param { block: Block::new(0), index: u32::MAX, ty: Type::I32 };
        named(line, "a value", "v", &mut self.kernel.values, self.limit, || unused)
    }

    /// A value that is used here.
    pub(super) fn value(&mut self, line: &mut Line<'_>) -> Result<Value> {
        let position = line.position();
        let value = self.value_id(line)?;
        self.uses.push((value, position));
        Ok(value)
    }

    /// A block, there already or not.
    pub(super) fn block(&mut self, line: &mut Line<'_>) -> Result<Block> {
        named(line, "a block", "block", &mut self.kernel.blocks, self.limit, BlockData::default)
    }

    /// A binding that is declared.
    pub(super) fn declared_binding(&self, line: &mut Line<'_>) -> Result<Binding> {
        let known = |binding: &Binding| self.kernel.bindings.is_valid(*binding);
        line.word("a binding declared above", |word| id("binding", word).filter(known))
    }

    /// A variable that is declared.
    pub(super) fn declared_variable(&self, line: &mut Line<'_>) -> Result<Variable> {
        let known = |variable: &Variable| self.kernel.variables.is_valid(*variable);
        line.word("a place in memory", |word| id("var", word).filter(known))
    }

    fn finish(self) -> Result<Kernel> {
        match self.uses.iter().find(|(value, _)| !self.defined.contains(*value)) {
            None => Ok(self.kernel),
            Some(&(value, (line, column))) => {
                Err(ParseError { line, column, message: format!("{value} is defined nowhere") })
            }
        }
    }
}
