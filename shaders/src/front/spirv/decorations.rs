//! Decorations and names, collected by target.

use std::sync::Arc;

use foldhash::HashMap;
use spirv::{BuiltIn, Decoration, FPRoundingMode, Op};

use super::words::{Id, Inst, InstResult, operand, text};

/// Decorations of an id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decorations {
    pub(super) set: Option<u32>,
    pub(super) binding: Option<u32>,
    pub(super) builtin: Option<BuiltIn>,
    pub(super) spec_id: Option<u32>,
    pub(super) array_stride: Option<u32>,
    pub(super) buffer_block: bool,
    pub(super) block: bool,
    pub(super) no_contraction: bool,
    /// Other variables may alias the same memory (SPIR-V, 2.18.2).
    pub(super) aliased: bool,
    /// `FPRoundingMode RTZ`.
    pub(super) towards_zero: bool,
    pub(super) memory: MemoryDecorations,
}

/// Decorations of variables and members that describe memory accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MemoryDecorations {
    pub(super) non_writable: bool,
    pub(super) coherent: bool,
    pub(super) volatile: bool,
}

/// Decorations of a structure member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MemberDecorations {
    pub(super) offset: Option<u32>,
    pub(super) matrix_stride: Option<u32>,
    pub(super) row_major: bool,
    pub(super) builtin: Option<BuiltIn>,
    pub(super) memory: MemoryDecorations,
}

/// Bytes of a name that are kept, at most. A block's type names each of its variables, and a string of debug
/// information may do so: what is said of all of them is not to be far larger than the module.
const MAX_NAME: usize = 1 << 10;

/// The name in the words of a string: its first [`MAX_NAME`] bytes, without half a character at their end.
pub(super) fn name_of(words: &[u32]) -> InstResult<Arc<str>> {
    let name = text(words)?;
    Ok(name[..name.floor_char_boundary(MAX_NAME)].into())
}

/// All decorations and names of a module.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    ids: HashMap<Id, Decorations>,
    members: HashMap<(Id, u32), MemberDecorations>,
    /// The member decorations of ids that may turn out to be decoration groups.
    groups: HashMap<Id, MemberDecorations>,
    /// Shared, since one string of debug information may name many variables.
    names: HashMap<Id, Arc<str>>,
    member_names: HashMap<(Id, u32), Arc<str>>,
    /// The union of the memory decorations of all memory that invocations share.
    any_memory: MemoryDecorations,
}

impl Annotations {
    /// Decorations of an id, if it has any.
    pub(super) fn of(&self, id: Id) -> Option<&Decorations> {
        self.ids.get(&id)
    }

    /// Decorations of a member, if it has any.
    pub(super) fn of_member(&self, id: Id, member: u32) -> Option<&MemberDecorations> {
        self.members.get(&(id, member))
    }

    /// `OpName` of an id; empty if it has none.
    pub(super) fn name(&self, id: Id) -> &str {
        self.names.get(&id).map_or("", |name| name)
    }

    /// Names an id that has no name.
    pub(super) fn add_name(&mut self, id: Id, name: &Arc<str>) {
        if self.name(id).is_empty() {
            self.names.insert(id, Arc::clone(name));
        }
    }

    /// `OpMemberName` of a member; empty if it has none.
    pub(super) fn member_name(&self, id: Id, member: u32) -> &str {
        self.member_names.get(&(id, member)).map_or("", |name| name)
    }

    /// The decorations to assume for a pointer to unknown memory.
    pub(super) fn any_memory(&self) -> MemoryDecorations {
        MemoryDecorations { non_writable: false, ..self.any_memory }
    }

    /// The ids with a decoration that `wanted` accepts, in ascending order.
    pub(super) fn ids_with<'a>(&'a self, wanted: impl Fn(&Decorations) -> bool + 'a) -> Vec<Id> {
        let mut ids: Vec<Id> = self.ids.iter().filter(|(_, d)| wanted(d)).map(|(&id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// Handles an annotation or name; `false` for other instructions.
    pub(super) fn take(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<bool> {
        match inst.op {
            Op::Name => {
                self.names.insert(operand(operands, 0)?, name_of(&operands[1..])?);
            }
            Op::Decorate | Op::DecorateId => {
                let (id, decoration) = (operand(operands, 0)?, operand(operands, 1)?);
                let decorations = self.ids.entry(id).or_default();
                decorate(decorations, decoration, &operands[2..])?;
                self.any_memory = self.any_memory.or(decorations.memory);
                if inst.op == Op::Decorate && is_of_members(decoration) {
                    decorate_member(self.groups.entry(id).or_default(), decoration, &operands[2..])?;
                }
            }
            Op::MemberDecorate => {
                let key = (operand(operands, 0)?, operand(operands, 1)?);
                let decorations = self.members.entry(key).or_default();
                decorate_member(decorations, operand(operands, 2)?, &operands[3..])?;
                self.any_memory = self.any_memory.or(decorations.memory);
            }
            Op::GroupDecorate => self.group(operands)?,
            Op::GroupMemberDecorate => self.group_of_members(operands)?,
            Op::MemberName => {
                let key = (operand(operands, 0)?, operand(operands, 1)?);
                // A name without an end is no reason to reject the module.
                if let Ok(name) = name_of(operands.get(2..).unwrap_or_default()) {
                    self.member_names.insert(key, name);
                }
            }
            Op::DecorationGroup | Op::DecorateString | Op::MemberDecorateString => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `OpGroupDecorate`: applies a group's decorations to its targets.
    fn group(&mut self, operands: &[u32]) -> InstResult<()> {
        let group = self.ids.get(&operand(operands, 0)?).cloned().unwrap_or_default();
        for &target in &operands[1..] {
            self.ids.entry(target).or_default().merge(&group);
        }
        Ok(())
    }

    /// `OpGroupMemberDecorate`: the same for structure members.
    fn group_of_members(&mut self, operands: &[u32]) -> InstResult<()> {
        let group = self.groups.get(&operand(operands, 0)?).cloned().unwrap_or_default();
        for target in operands[1..].chunks(2) {
            let key = (operand(target, 0)?, operand(target, 1)?);
            self.members.entry(key).or_default().merge(&group);
        }
        Ok(())
    }
}

/// Whether the decoration is relevant for structure members.
fn is_of_members(decoration: u32) -> bool {
    use Decoration as D;
    let members = [D::Offset, D::MatrixStride, D::RowMajor, D::BuiltIn, D::NonWritable, D::Coherent, D::Volatile];
    members.iter().any(|&known| known as u32 == decoration)
}

impl MemberDecorations {
    fn merge(&mut self, other: &Self) {
        self.offset = self.offset.or(other.offset);
        self.matrix_stride = self.matrix_stride.or(other.matrix_stride);
        self.builtin = self.builtin.or(other.builtin);
        self.row_major |= other.row_major;
        self.memory = self.memory.or(other.memory);
    }
}

impl Decorations {
    fn merge(&mut self, other: &Self) {
        self.set = self.set.or(other.set);
        self.binding = self.binding.or(other.binding);
        self.builtin = self.builtin.or(other.builtin);
        self.spec_id = self.spec_id.or(other.spec_id);
        self.array_stride = self.array_stride.or(other.array_stride);
        self.buffer_block |= other.buffer_block;
        self.block |= other.block;
        self.no_contraction |= other.no_contraction;
        self.aliased |= other.aliased;
        self.towards_zero |= other.towards_zero;
        self.memory = self.memory.or(other.memory);
    }
}

impl MemoryDecorations {
    /// Union of both.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            non_writable: self.non_writable || other.non_writable,
            coherent: self.coherent || other.coherent,
            volatile: self.volatile || other.volatile,
        }
    }

    fn take(&mut self, decoration: Decoration) {
        match decoration {
            Decoration::NonWritable => self.non_writable = true,
            Decoration::Coherent => self.coherent = true,
            Decoration::Volatile => self.volatile = true,
            _ => {}
        }
    }
}

fn decoration(word: u32) -> InstResult<Decoration> {
    Decoration::from_u32(word).ok_or_else(|| format!("unknown decoration {word}"))
}

fn builtin(word: u32) -> InstResult<BuiltIn> {
    BuiltIn::from_u32(word).ok_or_else(|| format!("unknown built-in {word}"))
}

pub(super) fn decorate(to: &mut Decorations, word: u32, literals: &[u32]) -> InstResult<()> {
    let decoration = decoration(word)?;
    match decoration {
        Decoration::DescriptorSet => to.set = Some(operand(literals, 0)?),
        Decoration::Binding => to.binding = Some(operand(literals, 0)?),
        Decoration::BuiltIn => to.builtin = Some(builtin(operand(literals, 0)?)?),
        Decoration::SpecId => to.spec_id = Some(operand(literals, 0)?),
        Decoration::ArrayStride => to.array_stride = Some(operand(literals, 0)?),
        Decoration::BufferBlock => to.buffer_block = true,
        Decoration::Block => to.block = true,
        Decoration::NoContraction => to.no_contraction = true,
        Decoration::Aliased => to.aliased = true,
        // Vulkan allows these two: VUID-StandaloneSpirv-FPRoundingMode-04675.
        Decoration::FPRoundingMode => match FPRoundingMode::from_u32(operand(literals, 0)?) {
            Some(FPRoundingMode::RTE) => {}
            Some(FPRoundingMode::RTZ) => to.towards_zero = true,
            other => return Err(format!("rounding mode {other:?} is not supported")),
        },
        other => to.memory.take(other),
    }
    Ok(())
}

pub(super) fn decorate_member(to: &mut MemberDecorations, word: u32, literals: &[u32]) -> InstResult<()> {
    let decoration = decoration(word)?;
    match decoration {
        Decoration::Offset => to.offset = Some(operand(literals, 0)?),
        Decoration::MatrixStride => to.matrix_stride = Some(operand(literals, 0)?),
        Decoration::RowMajor => to.row_major = true,
        Decoration::BuiltIn => to.builtin = Some(builtin(operand(literals, 0)?)?),
        other => to.memory.take(other),
    }
    Ok(())
}
