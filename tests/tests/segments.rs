//! Words at `y * width + x`, accessed by workgroups with several rows, with a width that only the dispatch knows:
//! random sizes, widths and guards, loads and stores, compared with their semantics in Rust.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::x86::Isa;
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::compile::{Backend, Module, compile};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::vectorize::{self, AccessCosts};
use spelter_tests::words::{self, Allowed, source};

/// Words of each buffer.
const WORDS: u32 = 4001;

const SIZES: [[u32; 3]; 12] = [
    [8, 8, 1],
    [4, 4, 1],
    [8, 4, 1],
    [4, 2, 2],
    [2, 8, 1],
    [2, 2, 4],
    [4, 4, 4],
    [8, 3, 1],
    [1, 16, 1],
    [16, 2, 1],
    [5, 7, 1],
    [32, 2, 1],
];

/// An index in the grid, from the ids of an invocation and the widths in the push constants.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// `(y + down) * width + x + right`
    Grid { down: u32, right: u32 },
    /// `y * width + right`: the same word for a row of the workgroup.
    Column { right: u32 },
    /// `down * width + x`: the same row for all of them.
    Line { down: u32 },
    /// `(z * height + y) * width + x`
    Volume,
    /// `y * width * 3 + x`
    Far,
}

impl Place {
    fn of(self, [x, y, z]: [u32; 3], [width, height]: [u32; 2]) -> u32 {
        match self {
            Self::Grid { down, right } => y.wrapping_add(down).wrapping_mul(width).wrapping_add(x.wrapping_add(right)),
            Self::Column { right } => y.wrapping_mul(width).wrapping_add(right),
            Self::Line { down } => down.wrapping_mul(width).wrapping_add(x),
            Self::Volume => z.wrapping_mul(height).wrapping_add(y).wrapping_mul(width).wrapping_add(x),
            Self::Far => y.wrapping_mul(width).wrapping_mul(3).wrapping_add(x),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Grid { down, right } => format!("(id.y + {down}u) * p.x + (id.x + {right}u)"),
            Self::Column { right } => format!("id.y * p.x + {right}u"),
            Self::Line { down } => format!("{down}u * p.x + id.x"),
            Self::Volume => "(id.z * p.y + id.y) * p.x + id.x".into(),
            Self::Far => "id.y * p.x * 3u + id.x".into(),
        }
    }
}

fn place() -> impl Strategy<Value = Place> {
    let more = || prop_oneof![Just(0), Just(1), Just(7), Just(u32::MAX), Just(u32::MAX - 7), 0..50u32];
    prop_oneof![
        (more(), more()).prop_map(|(down, right)| Place::Grid { down, right }),
        more().prop_map(|right| Place::Column { right }),
        more().prop_map(|down| Place::Line { down }),
        Just(Place::Volume),
        Just(Place::Far),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    size: [u32; 3],
    load: Place,
    store: Place,
    widths: [u32; 2],
    /// Only invocations below these are active.
    guard: Option<[u32; 2]>,
    /// Workgroups in x; two in y.
    groups: u32,
    /// Whether a barrier prevents workgroup merging.
    barrier: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let width = || prop_oneof![0..70u32, Just(16), Just(u32::MAX), Just(1 << 31), any::<u32>()];
    let guard = prop::option::of([0..20u32, 0..20u32]);
    let widths = [width(), width()];
    let rest = (widths, guard, 1..=9u32, any::<bool>());
    (prop::sample::select(SIZES.to_vec()), place(), place(), rest).prop_map(
        |(size, load, store, (widths, guard, groups, barrier))| Case {
            size,
            load,
            store,
            widths,
            guard,
            groups,
            barrier,
        },
    )
}

impl Case {
    fn text(&self) -> String {
        let [x, y, z] = self.size;
        let guard = match self.guard {
            Some([x, y]) => format!("if id.x >= {x}u || id.y >= {y}u {{ return; }}"),
            None => String::new(),
        };
        let barrier = if self.barrier { "storageBarrier();" } else { "" };
        format!(
            "var<immediate> p: vec2<u32>;
             @group(0) @binding(0) var<storage, read> source: array<u32>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             @compute @workgroup_size({x}, {y}, {z}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 {barrier}
                 {guard}
                 result[{}] = source[{}] + 1u;
             }}",
            self.store.text(),
            self.load.text()
        )
    }

    /// Allowed contents of the second buffer.
    fn allowed(&self) -> Allowed {
        let mut allowed = Allowed::default();
        let [width, height, depth] = [self.size[0] * self.groups, self.size[1] * 2, self.size[2]];
        for number in 0..width * height * depth {
            let id = [number % width, number / width % height, number / width / height];
            if self.guard.is_some_and(|[x, y]| id[0] >= x || id[1] >= y) {
                continue;
            }
            let (at, to) = (self.load.of(id, self.widths), self.store.of(id, self.widths));
            if to < WORDS {
                allowed.store(to, if at < WORDS { source(at) + 1 } else { 1 });
            }
        }
        allowed
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_of_a_grid_go_where_they_should(case in cases()) {
        let mut push = [0; MAX_PUSH_BYTES];
        push[..4].copy_from_slice(&case.widths[0].to_le_bytes());
        push[4..8].copy_from_slice(&case.widths[1].to_le_bytes());
        prop_assert_eq!(words::run(&case.text(), WORDS, &push, [case.groups, 2, 1], &case.allowed()), Ok(()));
    }
}

/// A dispatch may be divided anywhere, also within a run of workgroups: each workgroup runs once.
#[test]
fn every_workgroup_runs_once_however_they_are_shared_out() {
    const GROUPS: [u32; 3] = [7, 3, 1];
    for (x, y) in [(8, 8), (4, 2), (1, 1), (16, 1), (64, 1)] {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> result: array<u32>;
             @compute @workgroup_size({x}, {y}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 result[id.y * {width}u + id.x] += 1u;
             }}",
            width = GROUPS[0] * x
        );
        let module = Module::from_wgsl(&text).unwrap();
        let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
        let words = GROUPS[0] * x * GROUPS[1] * y;
        let stop = AtomicU32::new(0);
        for backend in Backend::available() {
            let code = compile(&kernel, backend).code;
            let result = GuestSlice::leak(words as usize * 4);
            let push = [0; MAX_PUSH_BYTES];
            let args =
                DispatchArgs { buffers: &[result], push: &push, images: &[], num_workgroups: GROUPS, stop: &stop };
            let mut scratch = Scratch::default();
            let all = u64::from(GROUPS[0] * GROUPS[1]);
            for cut in 0..=all {
                for range in [0..cut, cut..all] {
                    let outcome = code.run_all(&args, Workgroups::new(range, GROUPS, [0; 3]), &mut scratch);
                    assert_eq!(outcome, Outcome::Done);
                }
            }
            for word in 0..words {
                assert_eq!(u64::from(result.load_u32(u64::from(word) * 4)), all + 1, "{backend}: word {word}\n{text}");
            }
        }
    }
}

/// A kernel that must stop does so between workgroups, and reports it unless it was done.
#[test]
fn rows_of_workgroups_stop() {
    let text = "@group(0) @binding(0) var<storage, read_write> result: array<u32>;
        @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) { result[id.x] += 1u; }";
    let kernel = Module::from_wgsl(text).unwrap().kernel("main", &BTreeMap::new()).unwrap();
    let stop = AtomicU32::new(1);
    for isa in Isa::available() {
        let code = compile(&kernel, Backend::X86(isa)).code;
        for groups in [1, 2, 100] {
            let result = GuestSlice::leak(groups as usize * 64);
            let push = [0; MAX_PUSH_BYTES];
            let num_workgroups = [groups, 1, 1];
            let args = DispatchArgs { buffers: &[result], push: &push, images: &[], num_workgroups, stop: &stop };
            let workgroups = Workgroups::new(0..groups.into(), num_workgroups, [0; 3]);
            let outcome = code.run_all(&args, workgroups, &mut Scratch::default());
            assert_eq!(outcome, if groups == 1 { Outcome::Done } else { Outcome::Stopped });
            let ran = (0..groups).filter(|&group| result.load_u32(u64::from(group) * 64) == 1).count();
            assert_eq!(ran, 1, "{}", isa.name());
        }
    }
}

/// The most frequent access forms of two-dimensional workgroups have no gathers and scatters.
#[test]
fn grids_are_rows() {
    let text = |x: u32, y: u32, barrier: bool| {
        let case = Case {
            size: [x, y, 1],
            load: Place::Grid { down: 1, right: 2 },
            store: Place::Grid { down: 0, right: 0 },
            widths: [64; 2],
            guard: Some([60, 60]),
            groups: 1,
            barrier,
        };
        case.text()
    };
    let cases = [
        (8, 8, false, "row"),
        (4, 4, false, "row"),
        (16, 16, false, "row"),
        (8, 8, true, "elements"),
        (4, 4, true, "elements"),
        (16, 16, true, "row"),
    ];
    for (x, y, barrier, what) in cases {
        let module = Module::from_wgsl(&text(x, y, barrier)).unwrap();
        let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
        let lowered = spelter_shaders::compile::lower(&kernel, spelter_shaders::compile::Floats::FAST, |_, _| {});
        let simd = vectorize::widen(&lowered, &AccessCosts::AVX512).unwrap().to_string();
        let count = |what: &str| simd.matches(what).count();
        assert_eq!([count(&format!("load_{what}")), count(&format!("store_{what}"))], [1; 2], "{simd}");
        assert_eq!(count("gather") + count("scatter"), 0, "{simd}");
        assert_eq!(count("merged_workgroups"), usize::from(x < 16 && !barrier), "{simd}");
    }
}
