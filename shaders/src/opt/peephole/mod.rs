//! Algebraic simplification of single instructions and their operands: constant folding, replacement by an operand,
//! cheaper operations. All rewrites are bit-exact.
//!
//! Rules are grouped by kind of operation. The constant operand of a commutative operation comes second. All NaNs are
//! one value for these rules, as for the operations.

mod bits;
mod compare;
mod element;
mod field;
mod float;
mod int;
mod logic;
mod minmax;
mod select;
mod shift;

use super::editor::{Editor, Replacement, RewriteRules, edit};
use crate::abi::SUBGROUP_SIZE;
use crate::ir::{BuiltIn, InstData, Kernel, Op, Value};

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    edit(kernel, &mut Algebra);
}

/// The rules of this pass.
struct Algebra;

/// The rules of one group of operations; `None` for other operations and where no rule applies.
type RuleGroup = fn(&mut Editor<'_>, Op, &[Value]) -> Option<Replacement>;

const CHAPTERS: &[RuleGroup] = &[
    int::rewrite,
    minmax::rewrite,
    bits::rewrite,
    shift::rewrite,
    field::rewrite,
    logic::rewrite,
    compare::rewrite,
    float::rewrite,
];

impl RewriteRules for Algebra {
    fn rewrite(&mut self, editor: &mut Editor<'_>, data: &InstData) -> Option<Replacement> {
        match data {
            InstData::Pure { op, args } => pure(editor, *op, args),
            InstData::Select { condition, then, otherwise } => select::rewrite(editor, *condition, *then, *otherwise),
            InstData::BufferOf { number } => match *editor.definition(*number)? {
                InstData::BufferNumber { buffer } => Some(Replacement::Existing(buffer)),
                _ => None,
            },
            InstData::Element { base, index, stride } => element::rewrite(editor, *base, *index, *stride),
            InstData::BuiltIn { builtin, component } => built_in(editor, *builtin, *component),
            InstData::Branch { condition, then, otherwise } => {
                let [condition] = editor.args(*condition, Op::LNot)?;
                let (then, otherwise) = (otherwise.clone(), then.clone());
                Some(Replacement::Inst(InstData::Branch { condition, then, otherwise }))
            }
            _ => None,
        }
    }
}

fn pure(editor: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    if let Some(folded) = editor.fold(op, args) {
        return Some(Replacement::Existing(folded));
    }
    if op.is_commutative() && editor.bits(args[0]).is_some() && editor.bits(args[1]).is_none() {
        let mut args: smallvec::SmallVec<[Value; 4]> = args.into();
        args.swap(0, 1);
        return Some(Replacement::Inst(InstData::Pure { op, args }));
    }
    CHAPTERS.iter().find_map(|chapter| chapter(editor, op, args))
}

/// Built-ins that the workgroup size makes constant or equal to another.
fn built_in(editor: &mut Editor<'_>, builtin: BuiltIn, component: u8) -> Option<Replacement> {
    let size = editor.kernel().workgroup_size;
    let invocations = editor.kernel().invocations();
    let known = match builtin {
        BuiltIn::LocalInvocationId if size.get(usize::from(component)) == Some(&1) => 0,
        // The other components of the size are 1, so this component is the index.
        BuiltIn::LocalInvocationId if size.get(usize::from(component)) == Some(&invocations) => {
            return Some(Replacement::Inst(InstData::BuiltIn { builtin: BuiltIn::LocalInvocationIndex, component: 0 }));
        }
        // With a workgroup size of 1 in this dimension, the invocation's position is that of its workgroup.
        BuiltIn::GlobalInvocationId if size.get(usize::from(component)) == Some(&1) => {
            return Some(Replacement::Inst(InstData::BuiltIn { builtin: BuiltIn::WorkgroupId, component }));
        }
        BuiltIn::LocalInvocationIndex | BuiltIn::SubgroupLocalInvocationId if invocations == 1 => 0,
        BuiltIn::SubgroupId if invocations <= SUBGROUP_SIZE => 0,
        BuiltIn::NumSubgroups => invocations.div_ceil(SUBGROUP_SIZE),
        _ => return None,
    };
    editor.becomes_constant(known)
}
