//! The printer of both text forms: blocks, labels and instructions with their results.

use std::fmt::{self, Display, Formatter};

use super::{BlockCall, Function, Syntax};
use crate::text::list;

/// Gives the source position of an instruction: file, line, and column or 0.
pub(crate) type LineOf<'a, Inst> = &'a dyn Fn(Inst) -> Option<(&'a str, u32, u32)>;

/// The blocks of a kernel in layout order. With `line_of`, a comment precedes each instruction that comes from another
/// source line than the one before it.
pub(crate) fn print_blocks<K: Syntax>(
    f: &mut Formatter<'_>,
    kernel: &K,
    line_of: Option<LineOf<'_, K::Inst>>,
) -> fmt::Result {
    kernel.layout().iter().try_for_each(|&block| print_block(f, kernel, block, line_of))
}

fn print_block<K: Syntax>(
    f: &mut Formatter<'_>,
    kernel: &K,
    block: K::Block,
    line_of: Option<LineOf<'_, K::Inst>>,
) -> fmt::Result {
    let Some((params, insts)) = kernel.block(block) else { return writeln!(f, "\n{block}:") };
    write!(f, "\n{block}")?;
    list(f, "(", params.iter().map(|&param| ParamText { kernel, param }), ")")?;
    kernel.print_label(f, block)?;
    writeln!(f, ":")?;
    let mut last = None;
    for (position, &inst) in insts.iter().enumerate() {
        if let Some((file, line, column)) = line_of.and_then(|line_of| line_of(inst))
            && last.replace((file, line)) != Some((file, line))
        {
            write!(f, "    ; {file}:{line}")?;
            if column != 0 { writeln!(f, ":{column}") } else { writeln!(f) }?;
        }
        if position + 1 == insts.len() {
            kernel.print_annotation(f, block)?;
        }
        writeln!(f, "    {}", InstText { kernel, inst })?;
    }
    Ok(())
}

/// `v3: i32`
struct ParamText<'a, K: Function> {
    kernel: &'a K,
    param: K::Value,
}

impl<K: Function> Display for ParamText<'_, K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kernel.value(self.param) {
            Some(def) => write!(f, "{}: {}", self.param, def.ty()),
            None => write!(f, "{}: ?", self.param),
        }
    }
}

/// An instruction with its results: `v2 = iadd v0, v1`.
pub(crate) struct InstText<'a, K: Function> {
    pub(crate) kernel: &'a K,
    pub(crate) inst: K::Inst,
}

impl<K: Syntax> Display for InstText<'_, K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(data) = self.kernel.inst(self.inst) else { return write!(f, "{}", self.inst) };
        list(f, "", self.kernel.results(self.inst), " = ")?;
        self.kernel.print_inst(f, self.inst, data)
    }
}

impl<Block: Display, Value: Display> Display for BlockCall<Block, Value> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.block)?;
        list(f, "(", &self.args, ")")
    }
}

/// `, v1, v2`: operand and comparator of an atomic operation; with 64 bits, each low word is followed by its high word.
pub(crate) fn print_atomic_operands<Value: Copy + Display>(
    f: &mut Formatter<'_>,
    value: Option<Value>,
    comparator: Option<Value>,
    wide: Option<[Option<Value>; 2]>,
) -> fmt::Result {
    let [value_high, comparator_high] = wide.unwrap_or([None, None]);
    let operands = [value, value_high, comparator, comparator_high].into_iter().flatten();
    operands.into_iter().try_for_each(|operand| write!(f, ", {operand}"))
}
