//! Checked mode: checks that machine code settles itself. The cells of an access's words are loaded, compared and
//! replaced as the detector would do (`check/rows.rs`). An access that these tests do not settle calls the observer.
//!
//! Three stages follow each other, each in blocks of its own. The first one knows the cases that are frequent and cost
//! little: of device memory that no access of the dispatch has touched, of workgroup memory what barriers order, and
//! reads that change no cell. The second one also knows accesses of the invocation itself. The third one calls
//! the observer.

use cranelift_entity::EntitySet;

use super::access::bounds::{lane_index, uniform_part};
use super::access::pattern::AccessPattern;
use super::access::plan::AccessPlan;
use super::{LANES, Type, Value, Widen};
use crate::check::inline::state;
use crate::check::{self, InlineChecks, MAX_SITES};
use crate::ir::{
    AccessSite, Binding, Inst, InstData as Scalar, Kernel, Observed, ObservedKind, ObservedVariable, Op, Place, Scope,
    Site, SiteAction, StorageClass, Variable, VariableSpace, Width,
};
use crate::simd::{Address, InstData, LaneAddress, Row, WideOp};

/// The largest workgroup whose groups fit the bits of a cell.
const MAX_INVOCATIONS: u32 = 1 << 16;

/// Whether checks of a kernel may be settled by its machine code.
pub(super) fn is_inline(kernel: &Kernel) -> bool {
    let looks_up = |inst: &Scalar| matches!(inst, Scalar::BufferAt { .. } | Scalar::BufferNear { .. });
    kernel.inline_checks
        && kernel.sites.len() <= MAX_SITES
        && kernel.invocations() <= MAX_INVOCATIONS
        && !kernel.insts.values().any(looks_up)
        && !kernel.sites.values().any(|site| matches!(site.action, SiteAction::Fence { .. }))
}

/// What an access does.
#[derive(Clone, Copy, Debug)]
struct Checked {
    site: Site,
    writes: bool,
    private: bool,
    /// Whether the memory is that of the workgroup.
    shared: bool,
    /// Whether no check of the kernel reads this memory: then its cells of reads need no test.
    unread: bool,
}

/// The words of an access: the addresses of their cells and marks.
#[derive(Clone, Copy, Debug)]
struct Words {
    written: Value,
    read: Value,
    /// Where instructions are noted, a byte for each word.
    marks: Option<Value>,
    /// The index of the word, of the first lane's, or of each lane's.
    index: Value,
    /// Which of the lanes' words there are.
    which: Which,
}

/// Which words the lanes have, and what is in bounds.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// All the same; the number of words in bounds.
    One(Value),
    /// Consecutive ones; the number of words in bounds.
    Row(Value),
    /// Any, perhaps one of several lanes; the lanes that are active and in bounds.
    Any(Value),
}

/// The numbers that cells are compared with, `s32`.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Cells below are settled. 0 if the access makes its call in any case, or nothing is settled.
    base: Value,
    first: Value,
    /// Accesses of this workgroup below this number are ordered by a barrier, if they are not private.
    known: Value,
    /// The same bound whatever the privacy: accesses from there on are ordered by no barrier of the workgroup.
    unknown: Value,
    /// The present number.
    number: Value,
    /// The cells of reads by the subgroup, the workgroup and several workgroups.
    covering: [Value; 3],
    /// Of the cells of this workgroup: the bits of the group, the least group that is a subgroup, and the subgroup's.
    groups: [Value; 3],
}

/// Index of the first of a descriptor's slices of planes, which follow the kernel's descriptors.
pub(super) fn first_slice(checks: &InlineChecks, descriptors: u32, descriptor: u32) -> Option<u32> {
    let at = checks.descriptors.iter().position(|&known| known == descriptor)?;
    Some(descriptors + 4 * at as u32)
}

/// The memory that the checks of a kernel concern.
pub(super) fn inline_checks(
    kernel: &Kernel,
    dropped: &EntitySet<Inst>,
    mutual: &EntitySet<Binding>,
    descriptors: &impl Fn(Binding) -> u32,
) -> InlineChecks {
    let mut checks = InlineChecks::default();
    if !is_inline(kernel) {
        return checks;
    }
    let mut shared = 0;
    let mut firsts = Vec::new();
    for data in kernel.variables.values() {
        firsts.push(shared);
        if data.space == VariableSpace::Workgroup {
            shared += data.bytes.next_multiple_of(16);
        }
    }
    let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    for &inst in insts.filter(|&&inst| !dropped.contains(inst)) {
        let (site, place) = match kernel.insts[inst] {
            Scalar::Check { site, ref place, width: Width::Word } => (site, place),
            Scalar::Sync { site, place: Some(ref place), .. } if is_marked_atomic(kernel, mutual, place) => {
                (site, place)
            }
            _ => continue,
        };
        match (place, descriptor_of(kernel, place, descriptors)) {
            (_, Some(number)) => {
                if !checks.descriptors.contains(&number) {
                    checks.descriptors.push(number);
                }
                if !checks.sites.contains(&(site, number)) {
                    checks.sites.push((site, number));
                }
            }
            (&Place::Variable { variable, .. }, None) => {
                let variable = ObservedVariable::new(kernel, variable, firsts[variable.as_u32() as usize]);
                if !checks.variables.contains(&variable) {
                    checks.variables.push(variable);
                }
            }
            _ => {}
        }
    }
    checks
}

/// The descriptor of a place, if it is a buffer whose number is known.
fn descriptor_of(kernel: &Kernel, place: &Place, first: &impl Fn(Binding) -> u32) -> Option<u32> {
    let Place::Buffer { buffer, .. } = *place else { return None };
    let Some(&Scalar::Buffer { binding, index }) = kernel.definition(buffer) else { return None };
    let data = &kernel.bindings[binding];
    let index = kernel.constant(index).filter(|&index| index < u64::from(data.count))?;
    (!data.kind.is_image()).then(|| first(binding) + index as u32)
}

/// Whether no binding that the kernel writes has a part of the place's memory.
fn is_input(kernel: &Kernel, place: &Place) -> bool {
    let Place::Buffer { buffer, .. } = *place else { return false };
    let Some(&Scalar::Buffer { binding, .. }) = kernel.definition(buffer) else { return false };
    kernel.inputs_apart.contains(binding)
}

/// The bindings whose memory the kernel accesses by relaxed atomics of whole words at device scope only. In memory that
/// is no other's they are mutually ordered, and order nothing else.
pub(super) fn mutual_bindings(kernel: &Kernel) -> EntitySet<Binding> {
    let (mut mutual, mut others): (EntitySet<Binding>, EntitySet<Binding>) = Default::default();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let (site, place, bytes) = match kernel.insts[inst] {
            Scalar::Check { site, ref place, .. } => (site, place, 0),
            Scalar::Sync { site, place: Some(ref place), bytes, .. } => (site, place, bytes),
            _ => continue,
        };
        let Place::Buffer { buffer, .. } = *place else { continue };
        let Some(&Scalar::Buffer { binding, .. }) = kernel.definition(buffer) else { return EntitySet::new() };
        let action = &kernel.sites[site].action;
        let fits = bytes == 4 && check::is_relaxed(action) && check::is_atomic_of(action, Scope::Device);
        if fits {
            mutual.insert(binding)
        } else {
            others.insert(binding)
        };
    }
    let is_image = |binding: Binding| kernel.bindings[binding].kind.is_image();
    let mut all = EntitySet::new();
    all.extend(mutual.iter().filter(|&binding| !others.contains(binding) && !is_image(binding)));
    all
}

/// Whether machine code only marks what the atomics of a place access.
fn is_marked_atomic(kernel: &Kernel, mutual: &EntitySet<Binding>, place: &Place) -> bool {
    let Place::Buffer { buffer, .. } = *place else { return false };
    matches!(kernel.definition(buffer), Some(Scalar::Buffer { binding, .. }) if mutual.contains(*binding))
}

/// A site of plain accesses whose class is that of the place.
fn plain(kernel: &Kernel, site: Site, shared: bool) -> Option<Checked> {
    let (access, writes) = match kernel.sites[site].action {
        SiteAction::Read(access) => (access, false),
        SiteAction::Write(access) => (access, true),
        _ => return None,
    };
    let AccessSite { class, non_private, scope, .. } = access;
    let expected = if shared { StorageClass::Workgroup } else { StorageClass::Uniform };
    // As the detector has it.
    let private = !non_private && scope.is_none();
    (class == expected).then_some(Checked { site, writes, private, shared, unread: false })
}

/// The memory that a kernel reads as far as that is reported.
#[derive(Debug, Default)]
pub(super) struct CheckedReads {
    bindings: EntitySet<Binding>,
    variables: EntitySet<Variable>,
    /// Whether it may be that of any binding.
    anywhere: bool,
}

impl CheckedReads {
    /// Of a kernel without these checks.
    pub(super) fn new(kernel: &Kernel, dropped: &EntitySet<Inst>) -> Self {
        let mut all = Self::default();
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        for &inst in insts.filter(|&&inst| !dropped.contains(inst)) {
            let (site, place) = match kernel.insts[inst] {
                Scalar::Check { site, place, .. } | Scalar::Sync { site, place: Some(place), .. } => (site, place),
                _ => continue,
            };
            if matches!(kernel.sites[site].action, SiteAction::Write(_)) {
                continue;
            }
            match place {
                Place::Variable { variable, .. } => _ = all.variables.insert(variable),
                Place::Buffer { buffer, .. } => match kernel.definition(buffer) {
                    Some(&Scalar::Buffer { binding, .. }) => _ = all.bindings.insert(binding),
                    _ => all.anywhere = true,
                },
                Place::Push { .. } => {}
            }
        }
        all
    }

    fn have(&self, kernel: &Kernel, place: &Place) -> bool {
        match *place {
            Place::Variable { variable, .. } => self.variables.contains(variable),
            Place::Push { .. } => false,
            Place::Buffer { buffer, .. } => match kernel.definition(buffer) {
                Some(&Scalar::Buffer { binding, .. }) => self.anywhere || self.bindings.contains(binding),
                _ => true,
            },
        }
    }
}

impl Widen<'_> {
    /// A check that machine code settles if it can; false if this check is a call only.
    pub(super) fn inline_check(&mut self, site: Site, place: &Place, width: Width, plan: Option<&AccessPlan>) -> bool {
        let Some(plan) = plan.filter(|plan| width == Width::Word && plan.offset.is_aligned()) else { return false };
        let Some(checked) = plain(self.kernel, site, matches!(place, Place::Variable { .. })) else { return false };
        // `offer.rs` refuses aliased descriptors, and atomics give a word a history: no other binding hides a read.
        let checked = Checked { unread: !self.plans.checked_reads.have(self.kernel, place), ..checked };
        let Some(mut words) = self.checked_words(checked, place, plan) else { return false };
        if let Some(marks) = words.marks {
            self.mark(site, &words, marks);
        }
        // Of several lanes that write one word none is settled, but often there is only one.
        if let (Which::One(limit), true) = (words.which, checked.writes) {
            words = self.as_lanes(&words, limit);
        }
        // Operands are read here, since their values must dominate all later blocks.
        self.prepare_call(place);
        if !checked.writes && is_input(self.kernel, place) {
            self.first_call(Observed::access(site, Width::Word), place);
            return true;
        }
        match words.which {
            Which::One(limit) => self.check_word(checked, (&words, limit), place),
            Which::Row(_) | Which::Any(_) => self.check_lanes(checked, &words, place),
        }
        true
    }

    /// The sync of an atomic that needs marks only; false if it is a call.
    pub(super) fn inline_atomic(&mut self, what: Observed, place: &Place, plan: Option<&AccessPlan>) -> bool {
        let Some(plan) = plan.filter(|plan| plan.offset.is_aligned()) else { return false };
        let (reads, writes) = match what.kind {
            ObservedKind::AtomicRead => (true, false),
            ObservedKind::AtomicWrite => {
                (!matches!(self.kernel.sites[what.site].action, SiteAction::Atomic { op, .. } if op.is_store()), true)
            }
            // It writes in some lanes.
            _ => return false,
        };
        if !is_marked_atomic(self.kernel, &self.plans.mutual_bindings, place) {
            return false;
        }
        for writes in [false, true].into_iter().filter(|&mark| if mark { writes } else { reads }) {
            let checked = Checked { site: what.site, writes, private: false, shared: false, unread: false };
            let Some(words) = self.checked_words(checked, place, plan) else { return false };
            let Some(marks) = words.marks else { return false };
            self.mark(what.site, &words, marks);
        }
        self.prepare_call(place);
        self.first_call(what, place);
        true
    }

    /// Where the cells of an access are.
    fn checked_words(&mut self, checked: Checked, place: &Place, plan: &AccessPlan) -> Option<Words> {
        let (kernel, plans) = (self.kernel, self.plans);
        let (checks, layout) = (&plans.inline, &plans.layout);
        if checks.is_empty() {
            return None;
        }
        let descriptors = layout.descriptor_count;
        let (first, before, bytes, marks) = match *place {
            Place::Variable { variable, .. } => {
                let first = descriptors + 4 * checks.descriptors.len() as u32;
                let before = layout.variable_offsets[variable];
                (first, before, Some(kernel.variables[variable].bytes), None)
            }
            _ => {
                let number = descriptor_of(kernel, place, &|binding| layout.descriptors[binding])?;
                let first = first_slice(checks, descriptors, number)?;
                (first, 0, None, Some(first + if checked.writes { 2 } else { 3 }))
            }
        };
        let builder = &mut self.builder;
        let skip = builder.s64(before.into());
        let mut base = |slice: u32| {
            let buffer = builder.s32(slice);
            let base = builder.emit_one(InstData::BufferBase { buffer });
            builder.wide(WideOp::Add, &[base, skip])
        };
        let [mut written, mut read] = [base(first), base(first + 1)];
        let mut marks = marks.map(base);
        let buffer = builder.s32(first);
        let len = builder.emit_one(InstData::BufferLen { buffer });
        let mut len = builder.wide(WideOp::SubSat, &[len, skip]);
        if let Some(bytes) = bytes {
            let bytes = builder.s64(bytes.into());
            len = builder.wide(WideOp::Min, &[len, bytes]);
        }
        let two = builder.s64(2);
        let skip = uniform_part(self, &plan.offset);
        let builder = &mut self.builder;
        let words = builder.wide(WideOp::Shr, &[skip, two]);
        if !matches!(plan.pattern, AccessPattern::Uniform) {
            len = builder.wide(WideOp::SubSat, &[len, skip]);
            for base in [&mut written, &mut read] {
                *base = builder.wide(WideOp::Add, &[*base, skip]);
            }
            marks = marks.map(|marks| builder.wide(WideOp::Add, &[marks, words]));
            if let AccessPattern::Contiguous { index } = plan.pattern {
                let limit = builder.wide(WideOp::Shr, &[len, two]);
                let limit = builder.wide(WideOp::Truncate, &[limit]);
                let index = self.get(index);
                return Some(Words { written, read, marks, index, which: Which::Row(limit) });
            }
            // Whole words: the unit of the index is one or two of them.
            let (index, unit, inside) = lane_index(self, &plan.offset.lanes, len);
            let index = self.builder.times(index, u32::from(unit) / 4);
            let lanes = self.builder.and(self.exec, inside);
            return Some(Words { written, read, marks, index, which: Which::Any(lanes) });
        }
        // An index above all words stays above.
        let most = builder.s64(u32::MAX.into());
        let index = builder.wide(WideOp::Min, &[words, most]);
        let index = builder.wide(WideOp::Truncate, &[index]);
        let limit = builder.wide(WideOp::Shr, &[len, two]);
        let limit = builder.wide(WideOp::Truncate, &[limit]);
        Some(Words { written, read, marks, index, which: Which::One(limit) })
    }

    /// The one word of all lanes as a word of each.
    fn as_lanes(&mut self, words: &Words, limit: Value) -> Words {
        let builder = &mut self.builder;
        let inside = builder.pure(Op::ULt, &[words.index, limit]);
        let inside = builder.splat(inside);
        let lanes = builder.and(self.exec, inside);
        let four = builder.s64(4);
        let skip = builder.wide(WideOp::Extend, &[words.index]);
        let skip = builder.wide(WideOp::Mul, &[skip, four]);
        let [written, read] = [words.written, words.read].map(|base| builder.wide(WideOp::Add, &[base, skip]));
        let index = builder.constant(Type::V32, 0);
        Words { written, read, index, which: Which::Any(lanes), ..*words }
    }

    /// Notes the instruction for the words that it accesses.
    fn mark(&mut self, site: Site, words: &Words, marks: Value) {
        let number = site.as_u32() + 1;
        let value = self.builder.constant(Type::V32, number.into());
        let (index, limit) = match words.which {
            Which::Any(mask) => {
                let lanes = LaneAddress { base: marks, index: words.index, scale: 1, disp: 0 };
                self.builder.emit(InstData::Scatter { width: Width::Byte, lanes, value, mask });
                return;
            }
            Which::Row(limit) => (words.index, limit),
            Which::One(limit) => {
                let address = Address { base: marks, index: Some((words.index, limit)), scale: 1, disp: 0 };
                let value = self.builder.s32(number);
                self.builder.emit(InstData::Store { width: Width::Byte, address, value, mask: self.exec });
                return;
            }
        };
        let row = Row { base: marks, index, limit, width: Width::Byte };
        self.builder.emit(InstData::StoreRow { row, value, mask: self.exec });
    }

    fn state(&mut self, word: u32) -> Value {
        let slice = self.plans.layout.descriptor_count + self.plans.inline.slices() - 1;
        let buffer = self.builder.s32(slice);
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let address = Address { base, index: None, scale: 1, disp: 4 * word.cast_signed() };
        self.builder.emit_value(InstData::Load { ty: Type::S32, address })
    }

    /// Calls the observer if the instruction has made no call in this dispatch.
    fn first_call(&mut self, what: Observed, place: &Place) {
        let base = self.state(state::SITES + what.site.as_u32());
        let known = self.is_not_zero(base);
        let [first, end] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(known, end, first);
        self.enter_block(first);
        self.observe_place(what, place, None);
        self.builder.jump(end);
        self.enter_block(end);
    }

    fn is_not_zero(&mut self, value: Value) -> Value {
        let zero = self.builder.s32(0);
        self.op(Op::INe, &[value, zero])
    }

    /// The number of the subgroup, times a constant.
    fn scaled_number(&mut self, factor: u32) -> Value {
        let factor = self.builder.s32(factor);
        self.builder.pure(Op::IMul, &[self.subgroup.number, factor])
    }

    /// The cell of the workgroup at a number.
    fn workgroup_cell(&mut self, number: Value) -> Value {
        let rounded = self.kernel.invocations().next_power_of_two();
        self.builder.plus(number, 2 * (2 * rounded - 1))
    }

    fn bounds(&mut self, checked: Checked) -> Bounds {
        let class = if checked.shared { StorageClass::Workgroup } else { StorageClass::Uniform };
        let first = self.state(state::FIRST);
        // Cells of earlier workgroups in workgroup memory are settled.
        let base = if checked.shared { state::PRIVATE } else { state::SITES + checked.site.as_u32() };
        let base = self.state(base);
        let unknown = self.state(state::KNOWN + class as u32);
        // No barrier orders private accesses.
        let known = match (checked.private, checked.shared) {
            (false, _) => unknown,
            (true, false) => first,
            (true, true) => base,
        };
        let number = self.state(state::NUMBER);
        let several = self.state(state::SEVERAL);
        let rounded = self.kernel.invocations().next_power_of_two();
        let of_subgroup = self.scaled_number(2);
        let of_subgroup = self.builder.plus(of_subgroup, 2 * rounded);
        let subgroup = self.builder.pure(Op::IAdd, &[number, of_subgroup]);
        let workgroup = self.workgroup_cell(number);
        let bits = self.builder.s32(4 * rounded - 1);
        let least = self.builder.s32(2 * rounded);
        let groups = [bits, least, of_subgroup];
        Bounds { base, first, known, unknown, number, covering: [subgroup, workgroup, several], groups }
    }

    /// An operation on scalars or vectors that is not shared with other blocks.
    fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.builder.pure(op, args)
    }

    /// One word, which the active lanes read.
    fn check_word(&mut self, checked: Checked, (words, limit): (&Words, Value), place: &Place) {
        let bounds = &self.bounds(checked);
        let load = |widen: &mut Self, base: Value| {
            let address = Address { base, index: Some((words.index, limit)), scale: 4, disp: 0 };
            widen.builder.emit_value(InstData::Load { ty: Type::S32, address })
        };
        let [written, read] = [words.written, words.read].map(|base| load(self, base));
        let fine = self.is_ordered(written, checked, bounds);
        let covered = self.is_covered(read, bounds);
        let [second, third, record, end] = std::array::from_fn(|_| self.builder.create_block());
        let may_settle = self.is_not_zero(bounds.base);
        let fine = self.op(Op::LAnd, &[fine, may_settle]);
        let done = self.op(Op::LAnd, &[fine, covered]);
        self.builder.branch(done, end, second);
        self.enter_block(second);
        // Several lanes read: the word is the subgroup's, or that of the group of earlier reads, too.
        let ordered = self.is_ordered(read, checked, bounds);
        let joined = self.joined(read, bounds);
        let new = self.builder.select(ordered, bounds.covering[0], joined);
        let joins = self.joins();
        let apart = self.is_apart(read, bounds);
        let joins = self.op(Op::LAnd, &[joins, apart]);
        let either = self.op(Op::LOr, &[ordered, joins]);
        let bits = self.builder.mask_bits(self.exec);
        let below = self.builder.plus(bits, u32::MAX);
        let rest = self.op(Op::And, &[bits, below]);
        let zero = self.builder.s32(0);
        let several = self.op(Op::INe, &[rest, zero]);
        let all = self.op(Op::LAnd, &[fine, either]);
        let all = self.op(Op::LAnd, &[all, several]);
        self.builder.branch(all, record, third);
        self.enter_block(record);
        let address = Address { base: words.read, index: Some((words.index, limit)), scale: 4, disp: 0 };
        self.builder.emit(InstData::Store { width: Width::Word, address, value: new, mask: self.exec });
        self.builder.jump(end);
        self.enter_block(third);
        self.observe_place(Observed::access(checked.site, Width::Word), place, None);
        self.builder.jump(end);
        self.enter_block(end);
    }

    /// A word for each lane.
    fn check_lanes(&mut self, checked: Checked, words: &Words, place: &Place) {
        let written = self.load_cells(words, words.written);
        let read = match checked.unread {
            true => self.builder.constant(Type::V32, 0),
            false => self.load_cells(words, words.read),
        };
        let lanes = Box::new(std::array::from_fn(|lane| 2 * lane as u32));
        let lanes = self.builder.emit_one(InstData::Lanes { values: lanes });
        let number = self.state(state::NUMBER);
        let first = self.scaled_number(2 * LANES);
        let first = self.builder.pure(Op::IAdd, &[number, first]);
        let first = self.builder.splat(first);
        let mine = self.op(Op::IAdd, &[first, lanes]);
        let [second, third, record, record_all, end] = std::array::from_fn(|_| self.builder.create_block());
        // Of device memory most words were not accessed before, of workgroup memory before the last barrier.
        let below = match (checked.shared, checked.private) {
            (false, _) => state::SITES + checked.site.as_u32(),
            (true, false) => state::KNOWN + StorageClass::Workgroup as u32,
            (true, true) => state::PRIVATE,
        };
        let below = self.state(below);
        let below = self.builder.splat(below);
        let (fine, new) = if checked.writes || !checked.shared {
            let latest = if checked.unread { written } else { self.op(Op::UMax, &[written, read]) };
            (self.op(Op::ULt, &[latest, below]), mine)
        } else {
            let fine = self.op(Op::ULt, &[written, below]);
            let ordered = self.op(Op::ULt, &[read, below]);
            let workgroup = self.workgroup_cell(number);
            let workgroup = self.builder.splat(workgroup);
            let covered = self.op(Op::IEq, &[read, workgroup]);
            let either = self.op(Op::LOr, &[ordered, covered]);
            (self.op(Op::LAnd, &[fine, either]), self.builder.select(covered, read, mine))
        };
        let open = self.builder.and_not(self.exec, fine);
        let open = self.builder.any(open);
        self.builder.branch(open, second, record);
        self.enter_block(record);
        let old = if checked.writes { written } else { read };
        self.record(checked, words, (old, new), !checked.shared || checked.unread, [third, end]);
        self.enter_block(second);
        let bounds = self.bounds(checked);
        let wide = Bounds {
            base: self.builder.splat(bounds.base),
            first: self.builder.splat(bounds.first),
            known: self.builder.splat(bounds.known),
            unknown: self.builder.splat(bounds.unknown),
            number: self.builder.splat(bounds.number),
            covering: bounds.covering.map(|cell| self.builder.splat(cell)),
            groups: bounds.groups.map(|value| self.builder.splat(value)),
        };
        let group = self.builder.constant(Type::V32, u64::from(4 * self.kernel.invocations().next_power_of_two() - 1));
        let settled = |widen: &mut Self, cell: Value| {
            let ordered = widen.is_ordered(cell, checked, &wide);
            let differs = widen.op(Op::Xor, &[cell, mine]);
            let differs = widen.op(Op::And, &[differs, group]);
            let zero = widen.builder.constant(Type::V32, 0);
            let own = widen.op(Op::IEq, &[differs, zero]);
            let present = widen.op(Op::ULe, &[wide.first, cell]);
            let own = widen.op(Op::LAnd, &[own, present]);
            widen.op(Op::LOr, &[ordered, own])
        };
        let of_writes = settled(self, written);
        let of_reads = settled(self, read);
        let (of_reads, new) = if checked.writes {
            (of_reads, mine)
        } else {
            // The cell becomes that of the smallest group that has the earlier reads, too, as if joined one by one.
            let joined = self.joined(read, &wide);
            let new = self.builder.select(of_reads, mine, joined);
            let covered = self.is_covered(read, &wide);
            let joins = self.joins();
            let joins = self.builder.splat(joins);
            let apart = self.is_apart(read, &wide);
            let joins = self.op(Op::LAnd, &[joins, apart]);
            let either = self.op(Op::LOr, &[covered, joins]);
            (self.op(Op::LOr, &[of_reads, either]), self.builder.select(covered, read, new))
        };
        let mut fine = self.op(Op::LAnd, &[of_writes, of_reads]);
        if !checked.shared {
            let zero = self.builder.constant(Type::V32, 0);
            let may_settle = self.op(Op::INe, &[wide.base, zero]);
            fine = self.op(Op::LAnd, &[fine, may_settle]);
        }
        let open = self.builder.and_not(self.exec, fine);
        let open = self.builder.any(open);
        self.builder.branch(open, third, record_all);
        self.enter_block(record_all);
        self.record(checked, words, (old, new), checked.unread, [third, end]);
        self.enter_block(third);
        self.observe_place(Observed::access(checked.site, Width::Word), place, None);
        self.builder.jump(end);
        self.enter_block(end);
    }

    /// The cells of the lanes' words; 0 out of bounds.
    fn load_cells(&mut self, words: &Words, base: Value) -> Value {
        let load = match words.which {
            Which::One(limit) | Which::Row(limit) => {
                InstData::LoadRow { row: Row { base, index: words.index, limit, width: Width::Word } }
            }
            Which::Any(mask) => {
                InstData::Gather { lanes: LaneAddress { base, index: words.index, scale: 4, disp: 0 }, mask }
            }
        };
        self.builder.emit_value(load)
    }

    fn store_cells(&mut self, words: &Words, base: Value, value: Value) {
        let store = match words.which {
            Which::One(limit) | Which::Row(limit) => {
                let row = Row { base, index: words.index, limit, width: Width::Word };
                InstData::StoreRow { row, value, mask: self.exec }
            }
            Which::Any(mask) => {
                let lanes = LaneAddress { base, index: words.index, scale: 4, disp: 0 };
                InstData::Scatter { width: Width::Word, lanes, value, mask }
            }
        };
        self.builder.emit(store);
    }

    /// Replaces the cells, and goes on to the second block. After a write no read counts; `unread` if there are none,
    /// or the API settled all. If several lanes have one word, the cells stay as they were, and the first block is
    /// next.
    fn record(
        &mut self,
        checked: Checked,
        words: &Words,
        (old, new): (Value, Value),
        unread: bool,
        [call, end]: [super::Block; 2],
    ) {
        let base = if checked.writes { words.written } else { words.read };
        self.store_cells(words, base, new);
        if let Which::Any(lanes) = words.which {
            // Of lanes with one word only one finds its own cell there.
            let found = self.load_cells(words, base);
            let differ = self.op(Op::INe, &[found, new]);
            let differ = self.builder.and(lanes, differ);
            let differ = self.builder.any(differ);
            let [restore, apart] = std::array::from_fn(|_| self.builder.create_block());
            self.builder.branch(differ, restore, apart);
            self.enter_block(restore);
            self.store_cells(words, base, old);
            self.builder.jump(call);
            self.enter_block(apart);
        }
        if checked.writes && !unread {
            let none = self.builder.constant(Type::V32, 0);
            self.store_cells(words, words.read, none);
        }
        self.builder.jump(end);
    }

    /// Whether the cell's access is ordered before the next access of every invocation of the workgroup.
    fn is_ordered(&mut self, cell: Value, checked: Checked, bounds: &Bounds) -> Value {
        if checked.shared {
            return self.op(Op::ULt, &[cell, bounds.known]);
        }
        let before = self.op(Op::ULt, &[cell, bounds.base]);
        let since = self.op(Op::ISub, &[cell, bounds.first]);
        let known = self.op(Op::ISub, &[bounds.known, bounds.first]);
        let known = self.op(Op::ULt, &[since, known]);
        self.op(Op::LOr, &[before, known])
    }

    /// Whether a cell of reads stands for a read of any lane, too.
    fn is_covered(&mut self, read: Value, bounds: &Bounds) -> Value {
        let [subgroup, workgroup, several] = bounds.covering.map(|cell| self.op(Op::IEq, &[read, cell]));
        let either = self.op(Op::LOr, &[subgroup, workgroup]);
        self.op(Op::LOr, &[either, several])
    }

    /// Whether no invocation has acquired anything, so that only barriers of the workgroup order reads.
    fn joins(&mut self) -> Value {
        let joins = self.state(state::JOINS);
        self.is_not_zero(joins)
    }

    /// Whether the cell's reads are later than the last barrier: then a new read joins them and does not replace them.
    fn is_apart(&mut self, read: Value, bounds: &Bounds) -> Value {
        let since = self.op(Op::ISub, &[read, bounds.first]);
        let known = self.op(Op::ISub, &[bounds.unknown, bounds.first]);
        self.op(Op::ULe, &[known, since])
    }

    /// The cell of reads of this subgroup and of those that a cell stands for, which are not ordered.
    fn joined(&mut self, read: Value, bounds: &Bounds) -> Value {
        let [bits, least, own] = bounds.groups;
        let group = self.op(Op::And, &[read, bits]);
        // The subgroup of an invocation, as the group of it.
        let five = self.like(read, 5);
        let one = self.like(read, 1);
        let subgroup = self.op(Op::LShr, &[group, five]);
        let subgroup = self.op(Op::Shl, &[subgroup, one]);
        let subgroup = self.op(Op::IAdd, &[subgroup, least]);
        let is_invocation = self.op(Op::ULt, &[group, least]);
        let subgroup = self.builder.select(is_invocation, subgroup, group);
        let same = self.op(Op::IEq, &[subgroup, own]);
        let near = self.builder.select(same, bounds.covering[0], bounds.covering[1]);
        let is_near = self.op(Op::ULe, &[bounds.first, read]);
        self.builder.select(is_near, near, bounds.covering[2])
    }

    /// A constant of the type of another value.
    fn like(&mut self, value: Value, bits: u32) -> Value {
        let ty = self.builder.ty(value);
        self.builder.constant(ty, bits.into())
    }

    fn enter_block(&mut self, block: super::Block) {
        self.builder.switch_to(block);
        self.builder.seal(block);
        self.record_exec();
    }

    /// Reads the operands of the call in the block before those that may make it.
    fn prepare_call(&mut self, place: &Place) {
        if let Place::Buffer { buffer, .. } = *place {
            self.get(buffer);
        }
        self.get(place.offset());
    }
}
