//! Reads kernels from text, as the printer writes it. `docs/simd.md` describes the form.
//!
//! A value's definition stands above its uses, so the types of operands are known when an instruction is read. Whether
//! the kernel makes sense is for [`verify`](super::verify()) to say.

use std::fmt::{self, Formatter};

use super::inst_parse::instruction;
use super::{Block, Inst, InstData, Kernel, Type};
use crate::ssa::{self, Syntax, Types};
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
    fn declaration(&mut self, line: &mut Line<'_>) -> Result<()> {
        let kernel = self;
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
            "`descriptors`, `shared`, `private`, `frames`, `calls`, `merged_workgroups`, `releases`, `tables` or a block",
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

    fn type_from_name(name: &str) -> Option<Type> {
        Type::from_name(name)
    }

    /// `exec v2`, or `begin v2` where a subgroup enters a parallel region. Of all uses only these may precede the
    /// definition.
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

    fn instruction(parser: &mut Parser, line: &mut Line<'_>) -> Result<(InstData, Types<Self>)> {
        let data = instruction(parser, line)?;
        let types = data.result_types(|value| parser.kernel.ty(value));
        Ok((data, types))
    }

    fn print_inst(&self, f: &mut Formatter<'_>, _inst: Inst, data: &InstData) -> fmt::Result {
        write!(f, "{data}")
    }
}
