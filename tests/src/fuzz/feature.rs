//! Counts of the contents of generated programs, which show if the generator stops producing something.

macro_rules! features {
    ($($variant:ident $name:literal;)*) => {
        /// Something that a program may contain.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Feature {
            $(#[doc = $name] $variant,)*
        }

        impl Feature {
            /// Every feature.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

features! {
    LoopUniform "loop: uniform";
    LoopSubgroup "loop: uniform in the subgroup only";
    LoopDivergent "loop: divergent trip count";
    LoopNested "loop: in a loop";
    LoopTestedLast "loop: tested in the continue block";
    LoopOneBlock "loop: one block";
    LoopEndless "loop: left from the body only";
    LoopInSwitch "loop: in a switch";
    LoopLong "loop: more iterations than lanes";
    Break "break";
    BreakDeep "break: out of selections";
    BreakInSwitch "break: of a loop, from a switch";
    BreakSwitch "break: of a switch, from a selection";
    Continue "continue";
    ContinueDeep "continue: out of selections";
    ContinueInSwitch "continue: from a switch";
    ContinueUnreachable "continue block that is unreachable";
    JumpDivergent "break or continue: divergent";
    BranchUniform "selection: uniform";
    BranchDivergent "selection: divergent";
    BranchOneArm "selection: without else";
    BranchConstant "selection: on a constant";
    SwitchUniform "switch: uniform";
    SwitchDivergent "switch: divergent";
    SwitchFallthrough "switch: falls through";
    SwitchSharedTarget "switch: literals that share a case";
    SwitchExit "switch: a case that leaves the loop";
    Return "return: early";
    ReturnInLoop "return: in a loop";
    ReturnDivergent "return: divergent";
    Unreachable "unreachable";
    PhiBuffer "phi of buffers";
    PhiBool "phi of bools";
    PhiFloat "phi of floats";
    LiveOut "value of a loop used after it";
    MaskedLiveOut "value of an arm used after the merge";
    SelectBuffer "select of buffers";
    BarrierWorkgroup "barrier: workgroup";
    BarrierInLoop "barrier: in a uniform loop";
    BarrierInBranch "barrier: in a uniform selection";
    BarrierAfterReturn "barrier: after some have returned";
    BarrierSubgroup "barrier: subgroup";
    SubgroupExchange "exchange over a subgroup barrier";
    Exchange "exchange over a workgroup barrier";
    ExchangeStorage "exchange in a storage buffer";
    ReadUniformShared "shared memory: a uniform read";
    PhaseInLoop "shared memory: read-only over a loop";
    Ballot "subgroup: ballot";
    Shuffle "subgroup: shuffle";
    Reduce "subgroup: reduction";
    Scan "subgroup: scan";
    ReductionSum "subgroup: sum of reductions";
    TogetherInLoop "subgroup: operation in a loop";
    TogetherDivergent "subgroup: operation of some";
    Fence "fence";
    AtomicOwn "atomic: result used";
    AtomicCounter "atomic: storage counter";
    AtomicShared "atomic: shared counter";
    AtomicSharedRead "atomic: shared counter read after a barrier";
    AtomicTicket "atomic: tickets";
    LeaderStore "store by one invocation";
    UniformStore "store of a uniform value";
    LoadUniform "load: uniform address";
    LoadContiguous "load: consecutive";
    LoadStrided "load: strided";
    LoadReversed "load: reversed";
    LoadRandom "load: random";
    LoadSaturating "load: index beyond 2^32 bytes";
    LoadWrapping "load: offset wraps around 2^32";
    LoadNearEnd "load: at the end of the buffer";
    LookUp "load: indices that were loaded, in a loop";
    LoadVector "load: vector element";
    LoadUniformBuffer "load: uniform buffer";
    LoadPush "load: push constants";
    LoadUnaligned "access: unaligned";
    StoreContiguous "store: consecutive";
    StoreStrided "store: strided";
    StoreReversed "store: reversed";
    StoreVector "store: vector element";
    StoreOutOfBounds "store: made out of bounds";
    StorePartial "store: buffer too short";
    DescriptorUniform "descriptor index: uniform";
    DescriptorDivergent "descriptor index: divergent";
    DescriptorOutOfRange "descriptor index: out of range";
    BufferEmpty "buffer of 0 bytes";
    BufferOdd "buffer of odd size";
    LoadNarrow "load: sub-word";
    StoreNarrow "store: sub-word";
    StorePacked "store: sub-word of a shared word";
    AtomicWide "atomic: 64 bits, shared";
    AtomicOwnWide "atomic: 64 bits, own";
    AtomicOwnHalf "atomic: halves, own";
    PointerNumber "buffer by its number";
    PointerAddress "buffer by an address";
    PrivateConstant "private array: constant index";
    PrivateDynamic "private array: dynamic index";
    ImageRead "image: texels by numbers";
    ImageSample "image: sample or gather";
    ImageUniform "image: coordinates that all share";
    ImageAffine "image: coordinates next to each other";
    ImageDivergent "image: descriptors by invocation";
    ImageOwn "image: own texel read";
    ImageWrite "image: own texel written";
    ImageAtomic "image: atomic on any texel";
    FloatChain "floats in a chain, NaN and all";
    Transcendental "operation without exact result";
    Groups "several workgroups";
    Base "dispatch base";
}

impl Feature {
    /// Whether the feature has a place in the program that control may reach, so that marks count it.
    pub fn is_at_a_place(self) -> bool {
        use Feature::*;
        !matches!(
            self,
            ContinueUnreachable
                | PhiBuffer
                | PhiBool
                | PhiFloat
                | StorePartial
                | BufferEmpty
                | BufferOdd
                | Groups
                | Base
        )
    }
}

/// How many programs had each feature, and in how many of those with marks control reached it.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Programs.
    pub programs: u64,
    /// Programs that ran with marks.
    pub looked_at: u64,
    /// By feature: programs that contain it.
    pub contained: Vec<u64>,
    /// By feature: programs with marks that contain it.
    pub marked: Vec<u64>,
    /// By feature: programs with marks in which it was reached.
    pub reached: Vec<u64>,
}

impl Default for Coverage {
    fn default() -> Self {
        let zeros = vec![0; Feature::ALL.len()];
        Self { programs: 0, looked_at: 0, contained: zeros.clone(), marked: zeros.clone(), reached: zeros }
    }
}

impl Coverage {
    /// Adds a program that contains these.
    pub fn add(&mut self, features: &Features) {
        self.programs += 1;
        features.iter().for_each(|feature| self.contained[feature as usize] += 1);
    }

    /// Adds a run with marks.
    pub fn add_reached(&mut self, features: &Features, reached: &Features) {
        self.looked_at += 1;
        features.iter().for_each(|feature| self.marked[feature as usize] += 1);
        reached.iter().for_each(|feature| self.reached[feature as usize] += 1);
    }

    /// Adds the counts of another shard.
    pub fn merge(&mut self, other: &Self) {
        self.programs += other.programs;
        self.looked_at += other.looked_at;
        let lists = [
            (&mut self.contained, &other.contained),
            (&mut self.marked, &other.marked),
            (&mut self.reached, &other.reached),
        ];
        for (into, from) in lists {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
        }
    }

    /// Percent of programs that contain a feature, and percent of those with marks that reach it.
    pub fn percent(&self, feature: Feature) -> (f64, f64) {
        let of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
        let at = feature as usize;
        (of(self.contained[at], self.programs), of(self.reached[at], self.marked[at]))
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u128);

impl Features {
    /// Adds a feature.
    pub fn insert(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u32;
    }

    /// Whether the set contains a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.0 >> feature as u32 & 1 != 0
    }

    /// The features in the set.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&feature| self.has(feature))
    }
}
