//! Mutants of synchronization: copies of a module, each with one instruction that orders less than the original.
//!
//! A mutant lacks one barrier, one storage class in one semantics operand, the availability or visibility operation of
//! one instruction, or the `Coherent` of one variable; or one scope operand is the next smaller one.

use std::collections::HashMap;
use std::fmt;

use spirv::Op;

/// What a mutant lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// An `OpControlBarrier`.
    ControlBarrier,
    /// An `OpMemoryBarrier`.
    MemoryBarrier,
    /// A storage class of memory semantics: the bit.
    Class(u32),
    /// `MakeAvailable` of memory semantics.
    MakeAvailable,
    /// `MakeVisible` of memory semantics.
    MakeVisible,
    /// The execution scope is smaller.
    Execution,
    /// The memory scope is smaller.
    Scope,
    /// `MakePointerAvailable` or `MakeTexelAvailable` of an access.
    PointerAvailable,
    /// `MakePointerVisible` or `MakeTexelVisible` of an access.
    PointerVisible,
    /// The scope of an availability or visibility operation of an access is smaller.
    PointerScope,
    /// The decoration `Coherent`.
    Coherent,
}

impl Change {
    /// A word for the kind of change.
    pub fn name(self) -> &'static str {
        match self {
            Self::ControlBarrier => "control-barrier",
            Self::MemoryBarrier => "memory-barrier",
            Self::Class(UNIFORM) => "class-uniform",
            Self::Class(WORKGROUP) => "class-workgroup",
            Self::Class(_) => "class-image",
            Self::MakeAvailable => "make-available",
            Self::MakeVisible => "make-visible",
            Self::Execution => "execution-scope",
            Self::Scope => "memory-scope",
            Self::PointerAvailable => "pointer-available",
            Self::PointerVisible => "pointer-visible",
            Self::PointerScope => "pointer-scope",
            Self::Coherent => "coherent",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A copy of a module that orders less.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What it lacks.
    pub change: Change,
    /// The word of the original at which the instruction begins.
    pub word: usize,
    /// The module.
    pub words: Vec<u32>,
}

const UNIFORM: u32 = 0x40;
const WORKGROUP: u32 = 0x100;
const IMAGE: u32 = 0x800;
const CLASSES: [u32; 3] = [UNIFORM, WORKGROUP, IMAGE];
const ORDERS: u32 = 0x2 | 0x4 | 0x8 | 0x10;
const MAKE_AVAILABLE: u32 = 0x2000;
const MAKE_VISIBLE: u32 = 0x4000;

/// Words of the header.
const HEADER: usize = 5;

const COHERENT: u32 = spirv::Decoration::Coherent as u32;

/// All mutants of a module, in its order. Invalid words give none.
pub fn mutants(words: &[u32]) -> Vec<Mutant> {
    let Some(module) = Instructions::read(words) else { return Vec::new() };
    let mut mutants = Vec::new();
    for (index, &(word, inst)) in module.list.iter().enumerate() {
        let mut add = |change, words| mutants.push(Mutant { change, word, words });
        for (change, edit) in module.edits(inst) {
            add(change, module.with(index, edit));
        }
    }
    mutants
}

/// What becomes of an instruction.
enum Edit {
    /// It is removed.
    Remove,
    /// A word, counted from the first of the instruction, becomes another constant with the type of the old one.
    Constant { at: usize, value: u32 },
    /// It becomes these words.
    Replace(Vec<u32>),
}

/// A module as instructions.
struct Instructions<'a> {
    header: &'a [u32],
    list: Vec<(usize, &'a [u32])>,
    /// The type and the low word of each constant.
    constants: HashMap<u32, (u32, u32)>,
}

impl<'a> Instructions<'a> {
    fn read(words: &'a [u32]) -> Option<Self> {
        let header = words.get(..HEADER)?;
        let mut list = Vec::new();
        let mut constants = HashMap::new();
        let mut at = HEADER;
        while at < words.len() {
            let length = (words[at] >> 16) as usize;
            let inst = words.get(at..at + length).filter(|inst| !inst.is_empty())?;
            if let (Some(Op::Constant), &[_, ty, id, value, ..]) = (op(inst), inst) {
                constants.insert(id, (ty, value));
            }
            list.push((at, inst));
            at += length;
        }
        Some(Self { header, list, constants })
    }

    fn value(&self, id: u32) -> Option<u32> {
        self.constants.get(&id).map(|constant| constant.1)
    }

    /// The changes of an instruction.
    fn edits(&self, inst: &[u32]) -> Vec<(Change, Edit)> {
        let mut edits = Vec::new();
        match op(inst) {
            Some(Op::ControlBarrier) if inst.len() == 4 => {
                edits.push((Change::ControlBarrier, Edit::Remove));
                self.narrower(inst, 1, Change::Execution, true, &mut edits);
                let ordered = self.semantics(inst, 3, true, &mut edits);
                if ordered {
                    self.narrower(inst, 2, Change::Scope, false, &mut edits);
                }
            }
            Some(Op::MemoryBarrier) if inst.len() == 3 => {
                edits.push((Change::MemoryBarrier, Edit::Remove));
                if self.semantics(inst, 2, false, &mut edits) {
                    self.narrower(inst, 1, Change::Scope, false, &mut edits);
                }
            }
            Some(Op::AtomicStore) if inst.len() == 5 => self.atomic(inst, 2, &[3], &mut edits),
            Some(Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak) if inst.len() == 9 => {
                self.atomic(inst, 4, &[5, 6], &mut edits);
            }
            Some(op) if is_atomic(op) && inst.len() >= 6 => self.atomic(inst, 4, &[5], &mut edits),
            Some(Op::Load) => self.access(inst, 4, 0x8, &mut edits),
            Some(Op::Store | Op::CopyMemory) => self.access(inst, 3, 0x8, &mut edits),
            Some(Op::ImageRead) => self.access(inst, 5, 0x100, &mut edits),
            Some(Op::ImageWrite) => self.access(inst, 4, 0x100, &mut edits),
            Some(Op::Decorate) if inst.get(2) == Some(&COHERENT) => edits.push((Change::Coherent, Edit::Remove)),
            Some(Op::MemberDecorate) if inst.get(3) == Some(&COHERENT) => edits.push((Change::Coherent, Edit::Remove)),
            _ => {}
        }
        edits
    }

    fn atomic(&self, inst: &[u32], scope: usize, semantics: &[usize], edits: &mut Vec<(Change, Edit)>) {
        let mut ordered = false;
        for &at in semantics {
            ordered |= self.semantics(inst, at, true, edits);
        }
        self.narrower(inst, scope, Change::Scope, !ordered, edits);
    }

    /// Smaller semantics; whether they order anything. Without a class nothing is ordered: with `relaxed` the
    /// semantics may be 0.
    fn semantics(&self, inst: &[u32], at: usize, relaxed: bool, edits: &mut Vec<(Change, Edit)>) -> bool {
        let Some(bits) = self.value(inst[at]) else { return false };
        let classes: Vec<u32> = CLASSES.into_iter().filter(|class| bits & class != 0).collect();
        if bits & ORDERS == 0 || classes.is_empty() {
            return false;
        }
        for &class in &classes {
            let value = if classes.len() > 1 { bits & !class } else { 0 };
            if value != 0 || relaxed {
                edits.push((Change::Class(class), Edit::Constant { at, value }));
            }
        }
        for (change, bit) in [(Change::MakeAvailable, MAKE_AVAILABLE), (Change::MakeVisible, MAKE_VISIBLE)] {
            if bits & bit != 0 {
                edits.push((change, Edit::Constant { at, value: bits & !bit }));
            }
        }
        true
    }

    /// A smaller scope. Only what orders nothing may have the scope of an invocation.
    fn narrower(&self, inst: &[u32], at: usize, change: Change, any: bool, edits: &mut Vec<(Change, Edit)>) {
        let narrow = self.value(inst[at]).and_then(narrower);
        // Vulkan has no control barrier of an invocation.
        let smallest = if any && change != Change::Execution { 4 } else { 3 };
        if let Some(value) = narrow.filter(|&value| value <= smallest) {
            edits.push((change, Edit::Constant { at, value }));
        }
    }

    /// The availability and visibility operations of an access with memory or image operands at `mask`. `available` is
    /// the bit of the first one, and twice that the bit of the second one.
    fn access(&self, inst: &[u32], mask: usize, available: u32, edits: &mut Vec<(Change, Edit)>) {
        let Some(&bits) = inst.get(mask) else { return };
        let visible = available << 1;
        // `Grad` is the only operand with two words.
        let words = |bit: u32| if available == 0x100 && bit == 0x4 { 2 } else { 1 };
        let with_operand = if available == 0x100 { 0x1_03ff } else { 0x3_001a };
        let mut at = mask + 1;
        for bit in (0..32).map(|shift| 1 << shift).filter(|bit| bits & bit & with_operand != 0) {
            if bit == available || bit == visible {
                let mut shorter = inst.to_vec();
                shorter[mask] &= !bit;
                if at < shorter.len() {
                    shorter.remove(at);
                }
                shorter[0] = (shorter.len() as u32) << 16 | shorter[0] & 0xffff;
                let change = if bit == available { Change::PointerAvailable } else { Change::PointerVisible };
                edits.push((change, Edit::Replace(shorter)));
                if at < inst.len() {
                    self.narrower(inst, at, Change::PointerScope, true, edits);
                }
            }
            at += words(bit);
        }
    }

    /// The module with one instruction edited.
    fn with(&self, edited: usize, edit: Edit) -> Vec<u32> {
        let mut words = self.header.to_vec();
        let fresh = words[3];
        let constant = match edit {
            Edit::Constant { at, value } => {
                words[3] = fresh.saturating_add(1);
                let ty = self.constants.get(&self.list[edited].1[at]).map_or(0, |constant| constant.0);
                Some([4 << 16 | Op::Constant as u32, ty, fresh, value])
            }
            _ => None,
        };
        let first_function = self.list.iter().position(|(_, inst)| op(inst) == Some(Op::Function));
        for (index, (_, inst)) in self.list.iter().enumerate() {
            if Some(index) == first_function {
                words.extend(constant.into_iter().flatten());
            }
            let start = words.len();
            match &edit {
                Edit::Remove if index == edited => {}
                Edit::Replace(new) if index == edited => words.extend(new),
                Edit::Constant { at, .. } if index == edited => {
                    words.extend(*inst);
                    words[start + at] = fresh;
                }
                _ => words.extend(*inst),
            }
        }
        words
    }
}

fn op(inst: &[u32]) -> Option<Op> {
    Op::from_u32(inst.first()? & 0xffff)
}

/// Atomics with a result, a pointer, a scope and one semantics operand.
fn is_atomic(op: Op) -> bool {
    let number = op as u32;
    (Op::AtomicLoad as u32..=Op::AtomicXor as u32).contains(&number)
        || matches!(op, Op::AtomicFAddEXT | Op::AtomicFMinEXT | Op::AtomicFMaxEXT)
}

/// The next smaller scope of Vulkan.
fn narrower(scope: u32) -> Option<u32> {
    match scope {
        0 | 1 | 5 => Some(2),
        2 => Some(3),
        3 => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spelter_shaders::front::spvasm;

    const HEAD: &str = "
        OpCapability Shader
        OpCapability VulkanMemoryModel
        OpMemoryModel Logical Vulkan
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 32 1 1
        %void = OpTypeVoid
        %function = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %device = OpConstant %uint 1
        %workgroup = OpConstant %uint 2
        %subgroup = OpConstant %uint 3
        %full = OpConstant %uint 0x6148
        %acquire = OpConstant %uint 0x4102
        %none = OpConstant %uint 0
        %ptr = OpTypePointer Workgroup %uint
        %x = OpVariable %ptr Workgroup
        %main = OpFunction %void None %function
        %entry = OpLabel
        BODY
        OpReturn
        OpFunctionEnd";

    fn changes(body: &str) -> Vec<(Change, Vec<u32>)> {
        let words = spvasm::assemble(&HEAD.replace("BODY", body)).unwrap();
        let made = mutants(&words);
        // Each differs from the original in the instruction, and, where that has another operand, in a constant.
        let all = |words: &[u32]| Instructions::read(words).map(|read| read.list.len()).unwrap();
        for mutant in &made {
            assert!(all(&words).abs_diff(all(&mutant.words)) <= 1);
            spelter_shaders::compile::Module::from_spirv(&mutant.words).unwrap();
        }
        let value = |mutant: &Mutant| {
            let read = Instructions::read(&mutant.words).unwrap();
            let fresh = words[3];
            read.value(fresh).into_iter().collect()
        };
        made.iter().map(|mutant| (mutant.change, value(mutant))).collect()
    }

    #[test]
    fn a_barrier_loses_each_part_of_what_it_orders() {
        let found = changes("OpControlBarrier %workgroup %workgroup %full");
        let expected = [
            (Change::ControlBarrier, vec![]),
            (Change::Execution, vec![3]),
            (Change::Class(UNIFORM), vec![0x6108]),
            (Change::Class(WORKGROUP), vec![0x6048]),
            (Change::MakeAvailable, vec![0x4148]),
            (Change::MakeVisible, vec![0x2148]),
            (Change::Scope, vec![3]),
        ];
        assert_eq!(found, expected);
        let found = changes("OpControlBarrier %subgroup %subgroup %none");
        assert_eq!(found, [(Change::ControlBarrier, vec![])]);
    }

    #[test]
    fn an_atomic_loses_its_class_and_its_scope() {
        let found = changes("%a = OpAtomicLoad %uint %x %device %acquire");
        let expected =
            [(Change::Class(WORKGROUP), vec![0]), (Change::MakeVisible, vec![0x102]), (Change::Scope, vec![2])];
        assert_eq!(found, expected);
        let found = changes("OpAtomicStore %x %subgroup %none %device");
        assert_eq!(found, [(Change::Scope, vec![4])], "what orders nothing may have any scope");
    }

    #[test]
    fn an_access_loses_its_availability_operation_and_keeps_its_other_operands() {
        let found = changes("OpStore %x %device Aligned|MakePointerAvailable|NonPrivatePointer 4 %workgroup");
        assert_eq!(found, [(Change::PointerAvailable, vec![]), (Change::PointerScope, vec![3])]);
        let words = spvasm::assemble(
            &HEAD.replace("BODY", "OpStore %x %device Aligned|MakePointerAvailable|NonPrivatePointer 4 %workgroup"),
        );
        let mutant = &mutants(&words.unwrap())[0].words;
        let read = Instructions::read(mutant).unwrap();
        let store = read.list.iter().find(|(_, inst)| op(inst) == Some(Op::Store)).unwrap().1;
        assert_eq!((store.len(), &store[3..]), (5, &[0x22, 4][..]));
    }
}
