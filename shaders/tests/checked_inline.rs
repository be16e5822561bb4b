//! Checks that machine code settles itself find what the detector finds by calls, in random kernels with and without
//! data races.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome, SUBGROUP_SIZE};
use spelter_shaders::back::x86::Isa;
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Lanes, Observer, Target};
use spelter_shaders::check::{Detector, InlineChecks, InlineMemory, Launch, Limits, Profile};
use spelter_shaders::compile::{Backend, Checked, Checks, Module, compile_checked};
use spelter_shaders::front::spvasm;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{InstData, Kernel, MemoryModel, Place, Scope, Site, VariableSpace, Width};

pub(crate) const PROGRAMS: u64 = 150;

/// Words of each buffer.
const WORDS: u64 = 200;

const GROUPS: u32 = 3;

/// A stream of random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % most
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u32) as usize]
    }
}

/// A kernel whose invocations access two buffers, an input and workgroup memory, at places of their own and others.
pub(crate) fn kernel(seed: u64) -> (String, u32) {
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let size = [16, 40, 64][random.below(3) as usize];
    let own = random.below(3) > 0;
    let mut body = String::new();
    for _ in 0..6 + random.below(10) {
        let index = match random.below(if own { 6 } else { 12 }) {
            0..=2 => "g * SIZE + i",
            3 => "i",
            4 => "g",
            5 => "3u",
            6 => "(g * SIZE + i + 16u) % 180u",
            7 => "(i + 1u) % SIZE",
            8 => "i / 2u",
            9 => "i * 2u",
            10 => "i + 150u",
            _ => "g * SIZE + k",
        };
        let memory = random.of(&["a", "b", "tile", "tile", "input"]);
        let condition =
            random.of(&["true", "true", "true", "i < 20u", "(i & 1u) == 0u", "i == 5u", "i == 0u", "g == 1u"]);
        let write = memory != "input" && random.below(2) == 0;
        let index = if write && own { if memory == "tile" { "i" } else { "g * SIZE + i" } } else { index };
        let action = if write { format!("{memory}[{index}] = sum;") } else { format!("sum += {memory}[{index}];") };
        match random.below(6) {
            0 => writeln!(body, "workgroupBarrier();"),
            1 => writeln!(body, "storageBarrier();"),
            2 => writeln!(body, "for (k = 0u; k < 3u; k++) {{ if {condition} {{ {action} }} }}"),
            _ => writeln!(body, "if {condition} {{ {action} }}"),
        }
        .unwrap();
        if memory == "tile" && own && random.below(2) == 0 {
            body.push_str("workgroupBarrier();\n");
        }
    }
    let text = format!(
        "const SIZE = {size}u;
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @group(0) @binding(2) var<storage, read> input: array<u32>;
        var<workgroup> tile: array<u32, 200>;
        @compute @workgroup_size({size})
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) id: vec3<u32>) {{
            let g = id.x;
            var k = 1u;
            var sum = i;
            {body}
            a[g * SIZE + i] = sum;
        }}"
    );
    (text, size)
}

/// Invocations exchange a word by private accesses to workgroup memory, which no barrier orders.
const PRIVATE: &str = "OpCapability Shader
OpCapability VulkanMemoryModel
OpExtension \"SPV_KHR_vulkan_memory_model\"
OpMemoryModel Logical Vulkan
OpEntryPoint GLCompute %main \"main\" %index %tile %out
OpExecutionMode %main LocalSize 40 1 1
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%in = OpTypePointer Input %u32
%c0 = OpConstant %u32 0
%c2 = OpConstant %u32 2
%c40 = OpConstant %u32 40
%barrier = OpConstant %u32 0x108
%words = OpTypeRuntimeArray %u32
%block = OpTypeStruct %words
%pb = OpTypePointer StorageBuffer %block
%p = OpTypePointer StorageBuffer %u32
%array = OpTypeArray %u32 %c40
%pa = OpTypePointer Workgroup %array
%pw = OpTypePointer Workgroup %u32
%out = OpVariable %pb StorageBuffer
%tile = OpVariable %pa Workgroup
%index = OpVariable %in Input
%main = OpFunction %void None %fn
%entry = OpLabel
%i = OpLoad %u32 %index
%mine = OpAccessChain %pw %tile %i
OpStore %mine %i
OpControlBarrier %c2 %c2 %barrier
%last = OpISub %u32 %c40 %i
%other = OpUMod %u32 %last %c40
%theirs = OpAccessChain %pw %tile %other
%got = OpLoad %u32 %theirs ACCESS
%to = OpAccessChain %p %out %c0 %i
OpStore %to %got
OpReturn
OpFunctionEnd
";

/// What the detector offers to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Nothing,
    /// The memory is as if machine code settled accesses, which makes calls.
    Unused,
    All,
}

/// A detector that counts what is reported to it.
struct Counting {
    detector: Detector,
    offer: Offer,
    calls: u64,
}

impl Observer for Counting {
    fn inline(&mut self, checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory> {
        match self.offer {
            Offer::Nothing => None,
            Offer::Unused => self.detector.inline(checks, buffers).and(None),
            Offer::All => self.detector.inline(checks, buffers),
        }
    }

    fn begin(&mut self, workgroup: u64) {
        self.detector.begin(workgroup);
    }

    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.calls += 1;
        self.detector.access(by, site, target);
    }

    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        self.calls += 1;
        self.detector.accesses(by, site, target, offsets);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.detector.atomic(by, site, target, wrote);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.detector.fence(by, site);
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.detector.arrive(by, site);
    }

    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        self.detector.divergent_barrier(barrier);
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.detector.release(workgroup, execution, subgroup);
    }

    fn end(&mut self, by: Invocation) {
        self.detector.end(by);
    }

    fn meet(&mut self, workgroup: u64, site: Site, invocations: u32) {
        self.calls += 1;
        self.detector.meet(workgroup, site, invocations);
    }

    fn ends(&mut self, workgroup: u64, invocations: u32) {
        self.detector.ends(workgroup, invocations);
    }
}

/// By calls, and by machine code.
pub(crate) const BOTH: [Offer; 2] = [Offer::Nothing, Offer::All];

/// Where buffers begin that have no memory in common.
pub(crate) const APART: [u64; 3] = [0, 1024, 2048];

/// What two dispatches in a row find, the contents of the buffers afterwards, and the calls. The buffers begin at these
/// bytes of the memory.
pub(crate) fn run(
    checked: &Checked,
    kernel: &Kernel,
    (memory, starts): (GuestSlice, [u64; 3]),
    profile: Profile,
    offer: Offer,
) -> (String, u64) {
    let start = memory.address() as u64;
    let buffers = starts.map(|start| memory.slice(start, 4 * WORDS));
    memory.fill(0, memory.len(), 1);
    let launch = Launch {
        workgroup_size: kernel.invocations(),
        subgroup_size: SUBGROUP_SIZE,
        vulkan_model: kernel.memory_model == MemoryModel::Vulkan,
    };
    let sites = &checked.kernel.sites;
    let detector = Detector::new(sites, launch, profile, Limits::default());
    let mut counting = Counting { detector, offer, calls: 0 };
    counting.detector.reserve(start..start + memory.len()).unwrap();
    let mut found = String::new();
    for dispatch in 0..2 {
        if dispatch > 0 {
            counting.detector.restart(sites, launch);
        }
        let stop = AtomicU32::new(0);
        let args = DispatchArgs {
            buffers: &buffers,
            images: &[],
            push: &[0; MAX_PUSH_BYTES],
            num_workgroups: [GROUPS, 1, 1],
            stop: &stop,
        };
        let all = Workgroups::new(0..GROUPS.into(), args.num_workgroups, [0; 3]);
        let outcome = checked.code.run_observed(&args, all, &mut Scratch::default(), &mut counting);
        assert_eq!(outcome, Outcome::Done);
        let detector = &counting.detector;
        write!(found, "{:#?}\n{:#?}\n", detector.candidates(), detector.notes()).unwrap();
    }
    let words: Vec<u32> = (0..memory.len() / 4).map(|word| memory.load_u32(4 * word)).collect();
    write!(found, "{words:?}").unwrap();
    (found, counting.calls)
}

#[test]
fn accesses_that_machine_code_settles_race_as_they_do_by_calls() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    for isa in Isa::available() {
        let (mut racy, mut calls) = (0, [0; 2]);
        for seed in 0..PROGRAMS {
            let (text, _) = kernel(seed);
            let kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
            for checks in [Checks::Needed, Checks::NeededMarked] {
                let checked = compile_checked(&kernel, Backend::X86(isa), checks);
                for profile in [Profile::Common, Profile::Spec] {
                    let [by_calls, inline] = BOTH.map(|offer| run(&checked, &kernel, (memory, APART), profile, offer));
                    assert_eq!(inline.0, by_calls.0, "seed {seed}, {}, {profile:?}, {checks:?}\n{text}", isa.name());
                    racy += u64::from(by_calls.0.contains("Kind {"));
                    calls[0] += by_calls.1;
                    calls[1] += inline.1;
                }
            }
        }
        let executions = 4 * PROGRAMS;
        assert!((executions / 8..executions * 7 / 8).contains(&racy), "{racy} of {executions} executions race");
        assert!(calls[1] < calls[0] / 2, "{calls:?}: most are settled without a call");
    }
}

#[test]
fn accesses_to_what_several_descriptors_have_are_left_to_calls() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    // The buffers begin at the same byte, one begins within another one, the input is part of an output, and all meet.
    let overlapping = [[0, 0, 2048], [0, 256, 2048], [0, 1024, 1028], [1024, 0, 1536], [0, 400, 1196]];
    for isa in Isa::available() {
        let (mut racy, mut calls) = (0, [0; 2]);
        for seed in 0..PROGRAMS {
            let (text, _) = kernel(seed);
            let kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
            let checked = compile_checked(&kernel, Backend::X86(isa), Checks::Needed);
            let starts = overlapping[seed as usize % overlapping.len()];
            // An output that a kernel only reads is another case: see above.
            let offers = [Offer::Unused, Offer::All];
            let [by_calls, inline] = offers.map(|offer| run(&checked, &kernel, (memory, starts), Profile::Spec, offer));
            assert_eq!(inline.0, by_calls.0, "seed {seed}, {}, {starts:?}\n{text}", isa.name());
            racy += u64::from(by_calls.0.contains("Kind {"));
            calls[0] += by_calls.1;
            calls[1] += inline.1;
        }
        assert!(racy > PROGRAMS / 8, "{racy} executions race");
        assert!(calls[1] < calls[0] * 9 / 10, "{calls:?}: those to other memory are settled without a call");
    }
}

/// The last workgroup writes what atomics of the second one wrote, of which only those of the first one are calls.
const ATOMICS_AND_WRITES: &str = "
@group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> apart: array<u32>;
@compute @workgroup_size(16) fn main(@builtin(workgroup_id) group: vec3u, @builtin(global_invocation_id) id: vec3u) {
    apart[id.x] = 1u;
    if group.x < 2u { atomicAdd(&counts[id.x], 1u); } else { words[id.x - 16u] = 7u; }
}";

#[test]
fn atomics_on_what_several_descriptors_have_race_with_plain_accesses() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    let kernel = Module::from_wgsl(ATOMICS_AND_WRITES).unwrap().kernel("main", &Default::default()).unwrap();
    for isa in Isa::available() {
        let checked = compile_checked(&kernel, Backend::X86(isa), Checks::Needed);
        let [by_calls, inline] =
            BOTH.map(|offer| run(&checked, &kernel, (memory, [0, 0, 2048]), Profile::Spec, offer).0);
        assert_eq!(inline, by_calls, "{}", isa.name());
        assert!(inline.contains("Kind {"), "{}: {inline}", isa.name());
    }
}

#[test]
fn private_accesses_race_whether_the_detector_offers_memory_or_not() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    // With a non-private read accesses are not alike, and the detector offers nothing.
    for access in ["None", "NonPrivatePointer"] {
        let words = spvasm::assemble(&PRIVATE.replace("ACCESS", access)).unwrap();
        let kernel = Module::from_spirv(&words).unwrap().kernel("main", &Default::default()).unwrap();
        for (isa, offer) in Isa::available().flat_map(|isa| BOTH.map(|offer| (isa, offer))) {
            let checked = compile_checked(&kernel, Backend::X86(isa), Checks::Needed);
            let (found, _) = run(&checked, &kernel, (memory, APART), Profile::Common, offer);
            assert!(found.contains("Kind {"), "{access}, {}, {offer:?}: {found}", isa.name());
        }
    }
}

/// Which plain accesses of a kernel are private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrivateAccesses {
    /// Those to the input, which nothing writes.
    ToInput,
    /// Those to the first buffer, which is written.
    ToFirst,
    /// Some, to any memory but that of the workgroup.
    Some,
}

fn make_private(kernel: &mut Kernel, which: PrivateAccesses, random: &mut Random) {
    kernel.memory_model = MemoryModel::Vulkan;
    let buffers = kernel.insts.iter().filter_map(|(inst, data)| match data {
        InstData::Buffer { binding, .. } => Some((kernel.results[inst]?, kernel.bindings[*binding].binding)),
        _ => None,
    });
    let bindings: HashMap<_, _> = buffers.collect();
    for data in kernel.insts.values_mut() {
        let (InstData::Load { place, access, .. } | InstData::Store { place, access, .. }) = data else { continue };
        let private = match (*place, which) {
            (Place::Buffer { buffer, .. }, PrivateAccesses::ToInput) => bindings[&buffer] == 2,
            (Place::Buffer { buffer, .. }, PrivateAccesses::ToFirst) => bindings[&buffer] == 0,
            (Place::Buffer { .. }, PrivateAccesses::Some) => random.below(4) == 0,
            _ => false,
        };
        access.non_private = !private;
    }
}

#[test]
fn private_accesses_to_one_buffer_leave_those_to_others_to_machine_code() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    for isa in Isa::available() {
        for which in [PrivateAccesses::ToInput, PrivateAccesses::ToFirst, PrivateAccesses::Some] {
            let (mut racy, mut calls) = (0, [0; 2]);
            for seed in 0..PROGRAMS / 2 {
                let (text, _) = kernel(seed);
                let mut kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
                make_private(&mut kernel, which, &mut Random(seed));
                let checked = compile_checked(&kernel, Backend::X86(isa), Checks::Needed);
                let [by_calls, inline] =
                    BOTH.map(|offer| run(&checked, &kernel, (memory, APART), Profile::Spec, offer));
                assert_eq!(inline.0, by_calls.0, "seed {seed}, {which:?}, {}\n{text}", isa.name());
                racy += u64::from(by_calls.0.contains("Kind {"));
                calls[0] += by_calls.1;
                calls[1] += inline.1;
            }
            assert!(racy > PROGRAMS / 8, "{racy} executions race");
            // A buffer with accesses of both kinds is left to calls.
            let max = if which == PrivateAccesses::Some { calls[0] * 9 / 10 } else { calls[0] / 2 };
            assert!(calls[1] < max, "{which:?}, {calls:?}");
        }
    }
}

/// How the accesses of a kernel to words become smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Narrow {
    /// To arrays of such elements.
    To(Width),
    /// Some of them, to a part of the word.
    Some,
}

fn narrow(kernel: &mut Kernel, how: Narrow, random: &mut Random) {
    let Kernel { insts, variables, .. } = kernel;
    let is_shared = |place: &Place| match *place {
        Place::Variable { variable, .. } => variables[variable].space == VariableSpace::Workgroup,
        place => matches!(place, Place::Buffer { .. }),
    };
    for data in insts.values_mut() {
        match data {
            InstData::Element { stride, .. } => {
                if let (Narrow::To(width), 4) = (how, *stride) {
                    *stride = width.bytes();
                }
            }
            InstData::Load { place, width, .. } | InstData::Store { place, width, .. } if is_shared(place) => {
                *width = match how {
                    Narrow::To(width) => width,
                    Narrow::Some => [Width::Word, Width::Half, Width::Byte][random.below(3) as usize],
                };
            }
            _ => {}
        }
    }
}

/// The kinds of candidates of both dispatches.
fn kinds(found: &str) -> BTreeSet<String> {
    let mut lines = found.lines().map(str::trim);
    let mut kinds = BTreeSet::new();
    while let Some(line) = lines.next() {
        if line.starts_with("kind: Kind {") {
            kinds.insert(lines.by_ref().take_while(|line| *line != "},").collect());
        }
    }
    kinds
}

#[test]
fn accesses_of_less_than_a_word_race_in_machine_code_as_they_do_by_calls() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    for isa in Isa::available() {
        let (mut racy, mut calls) = (0, [0; 2]);
        for seed in 0..PROGRAMS {
            let (text, _) = kernel(seed);
            let mut kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
            let how = [Narrow::To(Width::Half), Narrow::To(Width::Byte), Narrow::Some][seed as usize % 3];
            narrow(&mut kernel, how, &mut Random(seed));
            for checks in [Checks::Needed, Checks::NeededMarked] {
                let checked = compile_checked(&kernel, Backend::X86(isa), checks);
                assert_eq!(checked.fallback, None);
                let [by_history, by_calls, inline] = [Offer::Nothing, Offer::Unused, Offer::All]
                    .map(|offer| run(&checked, &kernel, (memory, APART), Profile::Spec, offer));
                let context = || format!("seed {seed}, {how:?}, {}, {checks:?}\n{text}", isa.name());
                if how != Narrow::Some {
                    assert_eq!(inline.0, by_calls.0, "{}", context());
                }
                assert_eq!(kinds(&inline.0), kinds(&by_calls.0), "{}", context());
                // Histories tell earlier accesses apart that a cell joins: the memory and whether anything races are
                // the same.
                let found =
                    |(found, _): &(String, u64)| (kinds(found).is_empty(), found.lines().last().map(str::to_owned));
                assert_eq!(found(&inline), found(&by_history), "{}", context());
                racy += u64::from(by_calls.0.contains("Kind {"));
                calls[0] += by_calls.1;
                calls[1] += inline.1;
            }
        }
        assert!((PROGRAMS / 4..PROGRAMS * 7 / 4).contains(&racy), "{racy} executions race");
        assert!(calls[1] < calls[0] / 2, "{calls:?}: most are settled without a call");
    }
}
