//! Compilation has a bound: work grows with the size of what is compiled, also for shaders that were made to be hard.
//!
//! Each shape (`shapes.rs`) is compiled in a size and in twice that. Work is counted in blocks, instructions, block
//! arguments and live values that passes look at, so the ratio is the same on every machine.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod shapes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::compile::{self, Backend, Module};
use spelter_shaders::ir::Kernel;
use spelter_shaders::{simd, work};

use shapes::{
    Shape, Text, barriers, breaks, calls, cases, chains, chosen, conjunctions, counted, fan, ifs, live,
    live_over_loops, loops, members, phis, put, ring, row, row_of_loops, switches, taken, variables,
};

/// What was counted from the kernel as it was read to machine code, and how much of it after the SIMD form.
fn work_to_machine_code(text: &Text, isa: Isa) -> [u64; 2] {
    let lowered = compile::lower_for(&text.kernel(), isa, |_, _| {}).unwrap();
    let wide = compile::widen(&lowered, isa).unwrap();
    simd::verify(&wide).unwrap();
    let before = wide.work.done();
    x86::compile(&wide, isa).unwrap();
    [wide.work.done(), wide.work.done() - before]
}

/// What was counted from the kernel as it was read to the SIMD form that is proven.
fn work_of(text: &Text) -> u64 {
    work_and_size_of(text)[0]
}

/// The work, and how many instructions and values the SIMD form has.
fn work_and_size_of(text: &Text) -> [u64; 2] {
    let lowered = compile::lower_for(&text.kernel(), Isa::Avx512, |_, _| {}).unwrap();
    let wide = compile::widen(&lowered, Isa::Avx512).unwrap();
    simd::verify(&wide).unwrap();
    [wide.work.done(), (wide.insts.len() + wide.values.len()) as u64]
}

#[test]
fn twice_the_size_is_about_twice_the_work() {
    let shapes: [(&str, Shape, usize); 18] = [
        ("ifs", ifs, 256),
        ("row", row, 256),
        ("row of loops", row_of_loops, 128),
        ("row of counted loops", counted, 128),
        ("conjunctions with shared operands", conjunctions, 128),
        ("cases", cases, 256),
        ("chosen", chosen, 512),
        ("switches", switches, 128),
        ("phis", phis, 512),
        ("calls", calls, 128),
        ("fan", fan, 128),
        ("members", members, 256),
        ("chains", chains, 256),
        ("variables", variables, 128),
        ("barriers", barriers, 128),
        ("breaks", breaks, 256),
        ("values that one exit takes", |count| taken(count, 1), 256),
        ("values that two exits take", |count| taken(count, 2), 256),
    ];
    let mut report = String::new();
    let mut grows = false;
    for (name, shape, size) in shapes {
        let [once, twice] = [size, 2 * size].map(|size| work_and_size_of(&shape(size)));
        for (what, once, twice) in [("steps", once[0], twice[0]), ("instructions and values", once[1], twice[1])] {
            let ratio = twice as f64 / once as f64;
            grows |= ratio > 2.2;
            put!(report, "{name}: {once} {what} for {size}, {twice} for twice that: {ratio:.2}");
        }
    }
    assert!(!grows, "{report}");
}

/// The lists of blocks that loops have grow with the square of the nest: no faster, and a nest as deep as SPIR-V allows
/// is compiled.
#[test]
fn a_nest_twice_as_deep_is_at_most_four_times_the_work() {
    let [once, twice] = [64, 128].map(|size| work_of(&loops(size)));
    assert!(twice < 4 * once, "{once}, {twice}");
    let deepest = work_of(&loops(1023));
    assert!(deepest < work::MAX_WORK / 4, "{deepest}");
}

#[test]
fn a_switch_of_ten_thousand_cases_into_one_phi_is_taken() {
    let kernel = chosen(10_000).kernel();
    assert!(compile::lower_for(&kernel, Isa::Avx2, |_, _| {}).is_ok());
}

/// A loop's arguments are looked at one by one, and not all again whenever one of them changes.
#[test]
fn a_ring_of_phis_twice_as_long_is_twice_the_work() {
    for isa in Isa::ALL {
        let [once, twice] = [256, 512].map(|count| work_to_machine_code(&ring(count), isa)[0]);
        assert!(10 * twice < 22 * once, "{}: {once}, {twice}", isa.name());
    }
    let long = compile::compile(&ring(2000).kernel(), Backend::best());
    assert_eq!(long.fallback, None);
}

/// Register allocation looks at each live value in each block: work counts that.
#[test]
fn values_that_are_live_over_many_blocks_are_work() {
    let shapes: [(&str, Shape); 2] = [("selections", live), ("loops", live_over_loops)];
    for (name, shape) in shapes {
        for isa in Isa::ALL {
            let [once, twice] = [128, 256].map(|count| work_to_machine_code(&shape(count), isa));
            let at = format!("{name}, {}: {once:?}, {twice:?}", isa.name());
            // At least two blocks for each selection or loop, with all values live.
            assert!(once[1] > 2 * 128 * 128 && twice[1] > 2 * 256 * 256, "{at}");
            assert!(twice[0] < 4 * once[0], "{at}");
        }
    }
}

#[test]
fn what_takes_too_long_is_interpreted_with_a_note() {
    let compiled = compile::compile(&live(6000).kernel(), Backend::best());
    assert_eq!(compiled.backend, Backend::Interpreter);
    let reason = compiled.fallback.unwrap();
    assert_eq!(reason, format!("compiling it takes more than {} steps", work::MAX_WORK));
}

/// Wherever it is cancelled, compilation ends with the interpreter.
#[test]
fn what_is_cancelled_is_interpreted() {
    let questions = |limit: usize| {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let mut kernel = breaks(40).kernel();
        kernel.work = work::Work::cancelled_by(move || counter.fetch_add(1, Ordering::Relaxed) >= limit);
        (compile::compile(&kernel, Backend::best()), asked.load(Ordering::Relaxed))
    };
    let (compiled, all) = questions(usize::MAX);
    assert_eq!((compiled.backend, compiled.fallback), (Backend::best(), None));
    assert!(all > 8, "{all}");
    for limit in 0..all {
        let (compiled, _) = questions(limit);
        assert_eq!(compiled.fallback.as_deref(), Some("compiling it was cancelled"), "after {limit} of {all}");
        assert_eq!(compiled.backend, Backend::Interpreter);
    }
}

#[test]
fn passes_stop_with_a_spent_budget_and_other_compilations_have_their_own() {
    let kernel = loops(8).kernel();
    let lowered = compile::lower_for(&kernel, Isa::Avx2, |_, _| {}).unwrap();
    lowered.work.visit(work::MAX_WORK as usize);
    let error = compile::widen(&lowered, Isa::Avx2).unwrap_err();
    assert!(error.to_string().contains("takes more than"), "{error}");
    assert!(compile::lower_for(&kernel, Isa::Avx2, |_, _| {}).is_ok());
    assert!(compile::compile(&kernel, Backend::best()).fallback.is_none());
}

#[test]
fn the_host_is_asked_for_memory_before_it_is_needed() {
    let Backend::X86(isa) = Backend::best() else { panic!("no machine code on this machine") };
    let asked = |kernel: &Kernel| {
        let asked = std::cell::RefCell::new(Vec::new());
        compile::compile_within(kernel, Backend::best(), |bytes| {
            asked.borrow_mut().push(bytes);
            Ok(())
        });
        asked.into_inner()
    };
    // For the kernel as it is read, and for its SIMD form.
    let [once, twice] = [100, 200].map(|count| asked(&breaks(count).kernel()));
    assert_eq!([once.len(), twice.len()], [2, 2]);
    assert!(once.iter().zip(&twice).all(|(once, twice)| twice > once), "{once:?}, {twice:?}");
    for refused in 0..once.len() {
        let count = std::cell::Cell::new(0);
        let compiled = compile::compile_within(&breaks(100).kernel(), Backend::X86(isa), |_| {
            let number = count.replace(count.get() + 1);
            if number == refused { Err("no room".to_owned()) } else { Ok(()) }
        });
        assert_eq!((compiled.backend, compiled.fallback.as_deref()), (Backend::Interpreter, Some("no room")));
    }
}

/// What lanes bring back from an inner loop with a barrier is not what the outer one had before it: no short way leads
/// past the loop.
#[test]
fn a_barrier_in_an_inner_loop_is_on_the_way_up() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        var<workgroup> words: array<u32, 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) l: u32) {
            words[l] = data[l];
            for (var k = 2u; k < 65u; k = k + l) {
                for (var j = k >> 1u; j != 0u; j >>= 1u) {
                    if (l ^ j) > l { words[l ^ j] += k; }
                    workgroupBarrier();
                }
            }
            data[l] = words[l];
        }";
    let kernel = Module::from_wgsl(source).unwrap().kernel("main", &BTreeMap::new()).unwrap();
    for isa in Isa::ALL {
        let lowered = compile::lower_for(&kernel, isa, |_, _| {}).unwrap();
        let wide = compile::widen(&lowered, isa).unwrap();
        simd::verify(&wide).unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}

/// Whether the masks of a loop's exit edges are subsets of each other is proven in steps that grow with the kernel.
#[test]
fn the_masks_of_many_exit_edges_of_a_loop_are_proven_to_be_right() {
    for count in [30, 60, 240] {
        let breaks = "if bitcast<f32>(old) >= mine { break; }\n".repeat(count);
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>, 2>;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                let mine = f32((id.x * 37u) % 128u) * 0.5;
                var old = atomicLoad(&data[0]);
                loop {{
                    {breaks}
                    let outcome = atomicCompareExchangeWeak(&data[0], old, bitcast<u32>(mine));
                    if outcome.exchanged {{ break; }}
                    old = outcome.old_value;
                }}
                atomicAdd(&data[1], 1u);
            }}"
        );
        let kernel = Module::from_wgsl(&source).unwrap().kernel("main", &BTreeMap::new()).unwrap();
        for isa in [Isa::Avx512, Isa::Avx2] {
            let lowered = compile::lower_for(&kernel, isa, |_, _| {}).unwrap();
            let wide = compile::widen(&lowered, isa).unwrap();
            simd::verify(&wide).unwrap_or_else(|error| panic!("{count} on {}: {error}", isa.name()));
        }
    }
}

#[test]
fn universal_limits_name_the_word_and_the_limit() {
    let refused = |text: Text, wanted: &str| {
        let error = Module::from_spirv(&text.words()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(error.word.is_some_and(|word| word > 5), "{error}");
    };
    refused(loops(1024), "control flow nests deeper than 1023, SPIR-V's universal limit");
    assert!(Module::from_spirv(&loops(1023).words()).is_ok());
    // A row is no nest.
    assert!(Module::from_spirv(&row(3000).words()).is_ok());
    refused(chosen(16_384), "OpSwitch: 16384 pairs of literal and label, SPIR-V's universal limit is 16383");
    let mut text = row(1);
    put!(text.declarations, "%large = OpTypeStruct{}", " %u32".repeat(16_384));
    refused(text, "OpTypeStruct: 16384 members");
    let mut text = row(1);
    put!(text.declarations, "%many = OpTypeFunction %void{}", " %u32".repeat(256));
    refused(text, "OpTypeFunction: 256 parameters");
}
