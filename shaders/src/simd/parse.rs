//! Reads kernels from text, as the printer writes it. `docs/simd.md` describes the form.
//!
//! Names stay: `v7` of the text is value 7 of the kernel. A value's definition stands above its uses, so the types of
//! operands are known when an instruction is read. Whether the kernel makes sense is for [`verify`](super::verify()) to say.

use cranelift_entity::{EntityRef, EntitySet};
use smallvec::SmallVec;

use super::inst_parse::instruction;
use super::{Block, BlockData, Kernel, SubgroupLoop, Type, Value, ValueDef};
use crate::text::{Line, ParseError, id, id_limit, named};

type Result<T> = std::result::Result<T, ParseError>;

impl Kernel {
    /// Reads the text form.
    ///
    /// # Errors
    ///
    /// The first place that does not follow the form, or uses a value that is not defined.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = (1..).zip(text.lines()).map(|(number, text)| Line::new(number, text));
        let missing = || ParseError { line: 1, column: 1, message: "expected `simd kernel`".into() };
        let head = lines.find(|line| line.as_ref().map_or(true, |line| !line.is_done())).ok_or_else(missing)??;
        let mut parser = Parser {
            kernel: kernel(head)?,
            current: None,
            defined: EntitySet::new(),
            placed: EntitySet::new(),
            uses_before_definition: Vec::new(),
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

/// `simd kernel "main"`
fn kernel(mut line: Line<'_>) -> Result<Kernel> {
    let missing = line.error("expected `simd kernel`");
    if !(line.eat_word("simd") && line.eat_word("kernel")) {
        return Err(missing);
    }
    let name = line.text()?;
    line.finish()?;
    Ok(Kernel::new(name))
}

/// The kernel so far.
pub(crate) struct Parser {
    kernel: Kernel,
    current: Option<Block>,
    /// Values that have a definition.
    defined: EntitySet<Value>,
    /// Blocks that have a place in the layout.
    placed: EntitySet<Block>,
    /// Values of the head and execution masks with their places: the only values that may be defined below.
    uses_before_definition: Vec<(Value, (u32, u32))>,
    /// Ids of values and blocks stay below.
    limit: usize,
}

impl Parser {
    fn line(&mut self, line: &mut Line<'_>) -> Result<()> {
        match line.peek_word() {
            Some(word) if id::<Block>("block", word).is_some() => self.label(line),
            _ => match self.current {
                None => self.declaration(line),
                Some(block) => self.inst(line, block),
            },
        }
    }

    /// `descriptors 2`, `tables [2, 3]`
    fn declaration(&mut self, line: &mut Line<'_>) -> Result<()> {
        if line.eat_word("subgroup_loop") {
            let subgroup_loop = self.subgroup_loop(line)?;
            self.kernel.subgroup_loops.push(subgroup_loop);
            return Ok(());
        }
        let kernel = &mut self.kernel;
        if line.eat_word("tables") {
            line.expect('[')?;
            kernel.tables.push(line.unsigned()?);
            while line.eat(',') {
                kernel.tables.push(line.unsigned()?);
            }
            return line.expect(']');
        }
        if line.eat_word("releases") {
            kernel.releases = true;
            return Ok(());
        }
        let number = line.word(
            "`descriptors`, `shared`, `private`, `frames`, `calls`, `merged_workgroups`, `releases`, `tables`, \
             `subgroup_loop` or a block",
            |word| match word {
                "descriptors" => Some(&mut kernel.descriptors),
                "shared" => Some(&mut kernel.shared_bytes),
                "private" => Some(&mut kernel.private_bytes),
                "frames" => Some(&mut kernel.frame_bytes),
                "calls" => Some(&mut kernel.call_bytes),
                "merged_workgroups" => Some(&mut kernel.merged_workgroups),
                _ => None,
            },
        )?;
        *number = line.unsigned()?;
        Ok(())
    }

    /// `block1, block2, block5, index v7, step 1, count v3`: preheader, header and latch first.
    fn subgroup_loop(&mut self, line: &mut Line<'_>) -> Result<SubgroupLoop> {
        let mut block = |line: &mut Line<'_>| -> Result<Block> {
            let block = self.block(line)?;
            line.expect(',')?;
            Ok(block)
        };
        let (preheader, header, latch) = (block(line)?, block(line)?, block(line)?);
        line.keyword("index")?;
        let index = self.forward_value(line)?;
        line.expect(',')?;
        line.keyword("step")?;
        let step = line.unsigned()?;
        line.expect(',')?;
        line.keyword("count")?;
        let count = self.forward_value(line)?;
        Ok(SubgroupLoop { preheader, header, latch, index, step, count })
    }

    /// A value that may be used before its definition.
    fn forward_value(&mut self, line: &mut Line<'_>) -> Result<Value> {
        let position = line.position();
        let value = self.value_id(line)?;
        self.uses_before_definition.push((value, position));
        Ok(value)
    }

    /// `block1(v3: s32, v4: v32) exec v2:`, with `begin` for `exec` at the entry of a parallel region.
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
                let (twice, value) = self.result(line)?;
                self.define(value, twice)?;
                let position = self.kernel.blocks[block].params.len();
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
        let begins = line.eat_word("begin");
        self.kernel.blocks[block].is_region_entry = begins;
        if begins || line.eat_word("exec") {
            self.kernel.blocks[block].exec = Some(self.forward_value(line)?);
        }
        line.expect(':')
    }

    /// `v5, v6 = load_elements …`
    fn inst(&mut self, line: &mut Line<'_>, block: Block) -> Result<()> {
        let mut results: SmallVec<[(ParseError, Value); 1]> = SmallVec::new();
        if line.second_is('=') || line.second_is(',') {
            results.push(self.result(line)?);
            while line.eat(',') {
                results.push(self.result(line)?);
            }
            line.expect('=')?;
        }
        let position = line.position();
        let data = instruction(self, line)?;
        let types = data.result_types(|value| self.kernel.ty(value));
        if !results.is_empty() && results.len() != types.len() {
            let message = match types.len() {
                0 => "the instruction has no result".into(),
                1 => "the instruction has one result".into(),
                count => format!("the instruction has {count} results"),
            };
            return Err(ParseError { line: position.0, column: position.1, message });
        }
        let inst = self.kernel.insts.push(data);
        self.kernel.blocks[block].insts.push(inst);
        for (index, ((twice, value), ty)) in results.into_iter().zip(types).enumerate() {
            self.define(value, twice)?;
            self.kernel.values[value] = ValueDef::Result { inst, index: index as u32, ty };
            self.kernel.results[inst].push(value);
        }
        Ok(())
    }

    /// A value that is to be defined, with the error if it is already.
    fn result(&mut self, line: &mut Line<'_>) -> Result<(ParseError, Value)> {
        Ok((line.error("the value is defined twice"), self.value_id(line)?))
    }

    fn define(&mut self, value: Value, twice: ParseError) -> Result<()> {
        if self.defined.insert(value) { Ok(()) } else { Err(twice) }
    }

    fn value_id(&mut self, line: &mut Line<'_>) -> Result<Value> {
        let unused = ValueDef::Param { block: Block::new(0), index: u32::MAX, ty: Type::V32 };
        named(line, "a value", "v", &mut self.kernel.values, self.limit, || unused)
    }

    /// A value that is used here and defined above.
    pub(crate) fn value(&mut self, line: &mut Line<'_>) -> Result<Value> {
        let (number, column) = line.position();
        let value = self.value_id(line)?;
        if self.defined.contains(value) {
            return Ok(value);
        }
        Err(ParseError { line: number, column, message: format!("{value} is not defined above") })
    }

    /// A block, there already or not.
    pub(crate) fn block(&mut self, line: &mut Line<'_>) -> Result<Block> {
        named(line, "a block", "block", &mut self.kernel.blocks, self.limit, BlockData::default)
    }

    fn finish(self) -> Result<Kernel> {
        match self.uses_before_definition.iter().find(|(value, _)| !self.defined.contains(*value)) {
            None => Ok(self.kernel),
            Some(&(value, (line, column))) => {
                Err(ParseError { line, column, message: format!("{value} is defined nowhere") })
            }
        }
    }
}
