//! Reads kernels from text, as the printer writes it. `docs/simd.md` describes the form.
//!
//! Definitions precede uses in the text, so the types of operands are known when an instruction is read. The parser
//! checks syntax only; [`verify`](super::verify()) checks the kernel.

use std::fmt::{self, Formatter};

use super::inst_parse::instruction;
use super::{Block, Inst, InstData, Kernel, SubgroupLoop, Type};
use crate::ssa::{self, ResultTypes, Syntax};
use crate::text::{Line, ParseError, numbers};

type Result<T> = std::result::Result<T, ParseError>;
pub(crate) type Parser = ssa::Parser<Kernel>;

impl Syntax for Kernel {
    const HEAD: &'static str = "simd kernel";
    const USES_PRECEDE_DEFINITIONS: bool = false;
    const UNDEFINED: Type = Type::V32;

    /// `"main"`
    fn head(line: &mut Line<'_>) -> Result<Self> {
        Ok(Self::new(line.text()?))
    }

    /// `descriptors 2`, `tables [2, 3]`
    fn declaration(parser: &mut Parser, line: &mut Line<'_>) -> Result<()> {
        if line.eat_word("subgroup_loop") {
            let subgroup_loop = subgroup_loop(parser, line)?;
            parser.kernel.subgroup_loops.push(subgroup_loop);
            return Ok(());
        }
        let kernel = &mut parser.kernel;
        if line.eat_word("tables") {
            line.expect('[')?;
            kernel.tables.extend(numbers(line)?);
            return Ok(());
        }
        if line.eat_word("releases") {
            kernel.releases = true;
            return Ok(());
        }
        let number = line.word(
            "`descriptors`, `shared`, `private`, `frames`, `calls`, `subgroup_order`, `merged_workgroups`, `releases`, \
             `tables`, `subgroup_loop` or a block",
            |word| match word {
                "descriptors" => Some(&mut kernel.descriptors),
                "shared" => Some(&mut kernel.shared_bytes),
                "private" => Some(&mut kernel.private_bytes),
                "frames" => Some(&mut kernel.frame_bytes),
                "calls" => Some(&mut kernel.call_bytes),
                "subgroup_order" => Some(&mut kernel.subgroup_order),
                "merged_workgroups" => Some(&mut kernel.merged_workgroups),
                _ => None,
            },
        )?;
        *number = line.unsigned()?;
        Ok(())
    }

    fn type_from_name(name: &str) -> Option<Type> {
        Type::from_name(name)
    }

    /// `exec v2`, or `begin v2` where a subgroup enters a parallel region. These uses, and those of the head, may
    /// precede the definition.
    fn label(parser: &mut Parser, line: &mut Line<'_>, block: Block) -> Result<()> {
        let is_region_entry = line.eat_word("begin");
        if is_region_entry || line.eat_word("exec") {
            let exec = parser.value_defined_anywhere(line)?;
            parser.kernel.blocks[block].exec = Some(exec);
        }
        parser.kernel.blocks[block].is_region_entry = is_region_entry;
        Ok(())
    }

    fn print_label(&self, f: &mut Formatter<'_>, block: Block) -> fmt::Result {
        let data = &self.blocks[block];
        let word = if data.is_region_entry { "begin" } else { "exec" };
        data.exec.map_or(Ok(()), |exec| write!(f, " {word} {exec}"))
    }

    fn instruction(parser: &mut Parser, line: &mut Line<'_>) -> Result<(InstData, ResultTypes<Self>)> {
        let data = instruction(parser, line)?;
        let types = data.result_types(|value| parser.kernel.ty(value));
        Ok((data, types))
    }

    fn print_inst(&self, f: &mut Formatter<'_>, _inst: Inst, data: &InstData) -> fmt::Result {
        write!(f, "{data}")
    }
}

/// `block1, block2, block5, index v7, step 1, count v3`: preheader, header and latch first.
fn subgroup_loop(parser: &mut Parser, line: &mut Line<'_>) -> Result<SubgroupLoop> {
    let mut block = |line: &mut Line<'_>| -> Result<Block> {
        let block = parser.block(line)?;
        line.expect(',')?;
        Ok(block)
    };
    let (preheader, header, latch) = (block(line)?, block(line)?, block(line)?);
    line.keyword("index")?;
    let index = parser.value_defined_anywhere(line)?;
    line.expect(',')?;
    line.keyword("step")?;
    let step = line.unsigned()?;
    line.expect(',')?;
    line.keyword("count")?;
    let count = parser.value_defined_anywhere(line)?;
    Ok(SubgroupLoop { preheader, header, latch, index, step, count })
}
