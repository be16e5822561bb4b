//! A module with subgroup operations of some invocations, which stores the results, and its run on all engines.

use std::fmt::Write;
use std::path::Path;

use spelter_tests::case::Case;
use spelter_tests::check;

use super::number::{Random, Ty};

/// Invocations of a subgroup.
pub(super) const SIZE: usize = 16;

/// Initial contents, which remain where no invocation stores.
const NOTHING: u32 = 0xaaaa_5555;

/// The invocations that execute the operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// Invocations of the workgroup.
    pub(super) invocations: usize,
    /// A bit for each invocation of a subgroup that is active at the operations; without a branch if all are.
    pub(super) mask: u32,
}

impl Setup {
    /// Several different selections.
    pub(super) const ALL: [Self; 6] = [
        Self { invocations: 16, mask: 0xffff },
        Self { invocations: 41, mask: 0xffff },
        Self { invocations: 32, mask: 0x5a3d },
        Self { invocations: 20, mask: 0xfff6 },
        Self { invocations: 16, mask: 0x8000 },
        Self { invocations: 7, mask: 0xffea },
    ];

    /// Whether an invocation of the workgroup executes the operations.
    pub(super) fn is_on(self, index: usize) -> bool {
        index < self.invocations && self.mask >> (index % SIZE) & 1 != 0
    }

    /// The invocations of the same subgroup that execute the operations, with their values.
    pub(super) fn group(self, index: usize, values: &[u64]) -> Vec<(usize, u64)> {
        let first = index / SIZE * SIZE;
        (first..first + SIZE).filter(|&other| self.is_on(other)).map(|other| (other % SIZE, values[other])).collect()
    }
}

/// Operations, and their expected results.
pub(super) struct Test {
    setup: Setup,
    ty: Ty,
    text: String,
    inputs: Vec<[u32; 2]>,
    /// The values of the invocations.
    pub(super) values: Vec<u64>,
    expected: Vec<Vec<[u32; 2]>>,
    ids: usize,
    globals: String,
}

impl Test {
    pub(super) fn new(setup: Setup, ty: Ty, seed: u64) -> Self {
        let mut random = Random(seed);
        let inputs: Vec<[u32; 2]> = (0..setup.invocations).map(|_| random.number(ty)).collect();
        let values = inputs.iter().map(|&words| ty.of_words(words)).collect();
        let (text, globals) = (String::new(), String::new());
        Self { setup, ty, text, inputs, values, expected: Vec::new(), ids: 0, globals }
    }

    /// The word from which an invocation's value is made.
    pub(super) fn low(&self, index: usize) -> u32 {
        self.inputs[index][0]
    }

    /// A constant word's id.
    pub(super) fn constant(&mut self, value: u32) -> String {
        self.ids += 1;
        let id = format!("%k{}", self.ids);
        writeln!(self.globals, "{id} = OpConstant %u32 {value}").expect("strings take everything");
        id
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text += "\n";
    }

    /// An instruction with a result; returns its id.
    pub(super) fn instruction(&mut self, ty: &str, rest: &str) -> String {
        self.ids += 1;
        let id = format!("%t{}", self.ids);
        self.line(&format!(
            "{id} = {} {ty} {}",
            rest.split(' ').next().unwrap_or_default(),
            rest.split_once(' ').map_or("", |r| r.1)
        ));
        id
    }

    /// Stores a result of a type; `expect` gives the expected value of each active invocation, or `None` for any
    /// value.
    pub(super) fn store(&mut self, ty: Ty, id: &str, expect: impl Fn(usize) -> Option<u64>) {
        let row = self.expected.len();
        let words = match ty {
            Ty::Bool => [self.instruction("%u32", &format!("OpSelect {id} %c1 %c0")), "%c0".into()],
            Ty::Int(32) => [id.to_owned(), "%c0".into()],
            Ty::Int(64) | Ty::Float(64) => {
                let pair = self.instruction("%v2u32", &format!("OpBitcast {id}"));
                [0, 1].map(|word| self.instruction("%u32", &format!("OpCompositeExtract {pair} {word}")))
            }
            Ty::Int(_) => [self.instruction("%u32", &format!("OpUConvert {id}")), "%c0".into()],
            Ty::Float(bits) => {
                let wide =
                    if bits == 16 { self.instruction("%f32", &format!("OpFConvert {id}")) } else { id.to_owned() };
                [self.instruction("%u32", &format!("OpBitcast {wide}")), "%c0".into()]
            }
        };
        let first = self.constant((row * self.setup.invocations) as u32);
        let at = self.instruction("%u32", &format!("OpIAdd {first} %i"));
        for (number, word) in words.iter().enumerate() {
            let place = self.instruction("%ptr_word", &format!("OpAccessChain %out %c0 {at} %c{number}"));
            self.line(&format!("OpStore {place} {word}"));
        }
        let setup = self.setup;
        let cell = |index: usize| match (setup.is_on(index), expect(index)) {
            (false, _) => [NOTHING; 2],
            // Excluded from the comparison below.
            (true, None) => [NOTHING, 1],
            (true, Some(bits)) => ty.words(bits),
        };
        self.expected.push((0..setup.invocations).map(cell).collect());
    }

    /// Runs it on all engines.
    pub(super) fn run(self, what: &str) {
        let text = self.module();
        let case = Case::parse(Path::new("subgroups"), text.clone()).expect("the test is well formed");
        if let Err(error) = check::check(&case) {
            panic!("{what}, {:?}, {:?}: {error}\n{text}", self.ty, self.setup);
        }
    }

    fn module(&self) -> String {
        let Setup { invocations, mask } = self.setup;
        let list = |cells: &[[u32; 2]]| {
            let cell = |[low, high]: &[u32; 2]| {
                if [*low, *high] == [NOTHING, 1] { "_ _".to_owned() } else { format!("{low} {high}") }
            };
            cells.iter().map(cell).collect::<Vec<_>>().join(" ")
        };
        let mut head = format!("; bind 0.0: u32 {} {mask} 0\n", list(&self.inputs));
        let rows = self.expected.len();
        writeln!(head, "; bind 0.1: u32 {NOTHING}*{}", rows * invocations * 2).expect("strings take everything");
        for row in &self.expected {
            writeln!(head, "; expect 0.1: u32 {}", list(row)).expect("strings take everything");
        }
        let load = match self.ty {
            Ty::Bool => "%value = OpINotEqual %bool %low %c0".to_owned(),
            Ty::Int(32) => "%value = OpCopyObject %u32 %low".to_owned(),
            Ty::Float(32) => "%value = OpBitcast %f32 %low".to_owned(),
            Ty::Int(64) | Ty::Float(64) => {
                format!("%pair = OpCompositeConstruct %v2u32 %low %high\n%value = OpBitcast {} %pair", self.ty.id())
            }
            Ty::Int(_) => format!("%value = OpUConvert {} %low", self.ty.id()),
            Ty::Float(_) => "%wide = OpBitcast %f32 %low\n%value = OpFConvert %f16 %wide".to_owned(),
        };
        let branch = if mask == 0xffff {
            "OpBranch %then".to_owned()
        } else {
            "%bits = OpShiftRightLogical %u32 %mask %l\n%bit = OpBitwiseAnd %u32 %bits %c1\n\
             %chosen = OpINotEqual %bool %bit %c0\nOpSelectionMerge %end None\nOpBranchConditional %chosen %then %end"
                .to_owned()
        };
        let (text, globals) = (&self.text, &self.globals);
        format!(
            "{head}{CAPABILITIES}OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %index %lane
OpExecutionMode %main LocalSize {invocations} 1 1
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %lane BuiltIn SubgroupLocalInvocationId
{TYPES}%c{invocations}_ = OpConstant %u32 {invocations}
{globals}%main = OpFunction %void None %fn
%entry = OpLabel
%i = OpLoad %u32 %index
%l = OpLoad %u32 %lane
%at_low = OpAccessChain %ptr_word %in %c0 %i %c0
%low = OpLoad %u32 %at_low
%at_high = OpAccessChain %ptr_word %in %c0 %i %c1
%high = OpLoad %u32 %at_high
%at_mask = OpAccessChain %ptr_word %in %c0 %c{invocations}_ %c0
%mask = OpLoad %u32 %at_mask
{load}
{branch}
%then = OpLabel
{text}OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
"
        )
    }
}

const CAPABILITIES: &str = "OpCapability Shader
OpCapability Int8
OpCapability Int16
OpCapability Int64
OpCapability Float16
OpCapability Float64
OpCapability GroupNonUniform
OpCapability GroupNonUniformVote
OpCapability GroupNonUniformBallot
OpCapability GroupNonUniformArithmetic
OpCapability GroupNonUniformShuffle
OpCapability GroupNonUniformShuffleRelative
OpCapability GroupNonUniformClustered
OpCapability GroupNonUniformQuad
OpCapability GroupNonUniformRotateKHR
OpCapability GroupNonUniformPartitionedEXT
OpCapability QuadControlKHR
OpCapability SubgroupBallotKHR
OpCapability SubgroupVoteKHR
OpExtension \"SPV_KHR_subgroup_rotate\"
OpExtension \"SPV_EXT_shader_subgroup_partitioned\"
OpExtension \"SPV_KHR_quad_control\"
OpExtension \"SPV_KHR_shader_ballot\"
OpExtension \"SPV_KHR_subgroup_vote\"
";

const TYPES: &str = "OpDecorate %cells ArrayStride 8
OpDecorate %Cell Block
OpMemberDecorate %Cell 0 Offset 0
OpMemberDecorate %two 0 Offset 0
OpMemberDecorate %two 1 Offset 4
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 1
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%u8 = OpTypeInt 8 0
%u16 = OpTypeInt 16 0
%u32 = OpTypeInt 32 0
%u64 = OpTypeInt 64 0
%f16 = OpTypeFloat 16
%f32 = OpTypeFloat 32
%f64 = OpTypeFloat 64
%v2u32 = OpTypeVector %u32 2
%v4u32 = OpTypeVector %u32 4
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c3 = OpConstant %u32 3
%two = OpTypeStruct %u32 %u32
%cells = OpTypeRuntimeArray %two
%Cell = OpTypeStruct %cells
%ptr_Cell = OpTypePointer StorageBuffer %Cell
%ptr_word = OpTypePointer StorageBuffer %u32
%in = OpVariable %ptr_Cell StorageBuffer
%out = OpVariable %ptr_Cell StorageBuffer
%ptr_input = OpTypePointer Input %u32
%index = OpVariable %ptr_input Input
%lane = OpVariable %ptr_input Input
";
