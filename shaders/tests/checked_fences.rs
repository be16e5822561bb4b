//! Kernels with memory barriers beside their control barriers: where a control barrier stands for all of them, machine
//! code settles as many accesses as without them, and what is found is the same in any case.

use spelter_shaders::back::x86::Isa;
use spelter_shaders::check::{self, Profile};
use spelter_shaders::compile::{Backend, Checked, Checks, Module, compile_checked};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{InstData, Kernel, Semantics, SiteAction, verify};

use crate::checked_inline::{APART, Offer, PROGRAMS, Random, kernel, run};

/// A kernel in which invocations exchange words of a buffer and of workgroup memory at barriers.
fn exchange(barriers: &str) -> Kernel {
    let text = format!(
        "kernel \"exchange\" 16, 1, 1
        binding0 = storage 0.0[1] 0
        binding1 = storage 0.1[1] 0
        var0 = workgroup 64 \"tile\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = builtin global_invocation_id.0
            v3 = builtin local_invocation_index.0
            v4 = xor v2, v1
            v5 = xor v3, v1
            v6 = element v0, v2 * 4
            v7 = element v0, v3 * 4
            v8 = element v0, v4 * 4
            v9 = element v0, v5 * 4
            v10 = buffer binding0[v0]
            v11 = buffer binding1[v0]
            store storage v10 + v6, v2 non_private
            store var0 + v7, v3
            {barriers}
            v12 = load.i32 storage v10 + v8 non_private
            v13 = load.i32 var0 + v9
            v14 = iadd v12, v13
            store storage v11 + v6, v14
            return"
    );
    let kernel = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

/// The same kernel with non-private accesses to all shared memory, each with an operation of its own at that scope.
fn exchange_made(barriers: &str, scope: &str) -> Kernel {
    let access = format!(" non_private made {scope}");
    let text = exchange(barriers).to_string().replace(" non_private", &access);
    let text = text.replacen("16, 1, 1\n", "16, 1, 1\nmemory_model vulkan\n", 1);
    let shared = |line: &str| line.contains("load.i32 var0") || line.contains("store var0");
    let lines = text.lines().map(|line| if shared(line) { format!("{line}{access}\n") } else { format!("{line}\n") });
    let text: String = lines.collect();
    Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The barriers that the kernel reports, in the order of the text.
fn reported(kernel: &Kernel) -> Vec<String> {
    let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    let of = |inst: &InstData| match *inst {
        InstData::Sync { site, place: None, .. } => Some(kernel.sites[site].action.to_string()),
        _ => None,
    };
    insts.filter_map(|&inst| of(&kernel.insts[inst])).collect()
}

/// The barriers that such a kernel reports before and after memory barriers become a part of control barriers.
fn merged(barriers: &str) -> [Vec<String>; 2] {
    let mut kernel = exchange(barriers);
    check::insert(&mut kernel);
    let before = reported(&kernel);
    check::merge_fences(&mut kernel);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    [before, reported(&kernel)]
}

/// GLSL's `barrier()`, `memoryBarrierShared()`, `memoryBarrierBuffer()` and `memoryBarrierImage()`.
const BARRIER: &str = "barrier workgroup workgroup acq_rel|workgroup\n";
const SHARED: &str = "fence device acq_rel|workgroup\n";
const BUFFER: &str = "fence device acq_rel|storage\n";
const IMAGE: &str = "fence device acq_rel|image\n";
/// A control barrier that orders no memory.
const WAIT: &str = "barrier workgroup workgroup relaxed\n";

#[test]
fn a_control_barrier_stands_for_memory_barriers_that_it_completes() {
    for (barriers, expected) in [
        (vec![SHARED, BARRIER], "workgroup"),
        (vec![SHARED, WAIT, SHARED], "workgroup"),
        (vec![BUFFER, BARRIER, BUFFER], "storage|workgroup"),
        (vec![BUFFER, SHARED, WAIT, SHARED, BUFFER], "storage|workgroup"),
        (vec![IMAGE, BARRIER], "workgroup"),
        (vec!["fence workgroup release|storage\n", WAIT, "fence workgroup acquire|storage\n"], "storage"),
        (vec!["barrier workgroup workgroup release|storage\n", "fence workgroup acquire|storage\n"], "storage"),
    ] {
        let full = format!("barrier workgroup workgroup acq_rel|{expected}|available|visible");
        assert_eq!(merged(&barriers.concat())[1], [full], "{barriers:?}");
    }
    let two = [BUFFER, WAIT, BUFFER, SHARED, WAIT, SHARED].concat();
    let [first, second] = ["storage", "workgroup"].map(|class| format!("acq_rel|{class}|available|visible"));
    let full = [first, second].map(|semantics| format!("barrier workgroup workgroup {semantics}"));
    assert_eq!(merged(&two)[1], full, "each has the memory barriers of its class");
}

#[test]
fn barriers_are_full_where_accesses_make_their_values_available_and_visible_themselves() {
    let reports = |scope: &str, barrier: &str| {
        let mut kernel = exchange_made(&format!("{barrier}\n"), scope);
        check::insert(&mut kernel);
        check::complete_semantics(&mut kernel);
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
        reported(&kernel).concat()
    };
    for (scope, barrier, full) in [
        ("workgroup", "barrier workgroup workgroup acq_rel|storage", "|available|visible"),
        ("device", "barrier workgroup workgroup acq_rel|storage|workgroup", "|available|visible"),
        ("workgroup", "barrier workgroup workgroup acq_rel|image", "|available|visible"),
        ("device", "fence device release|storage", "|available"),
        ("device", "fence device acquire|storage|workgroup", "|visible"),
        ("subgroup", "barrier workgroup workgroup acq_rel|storage", ""),
        ("workgroup", "fence device release|storage", ""),
        ("device", "barrier workgroup workgroup relaxed", ""),
    ] {
        assert_eq!(reports(scope, barrier), format!("{barrier}{full}"), "made {scope}");
    }
    let mut kernel = exchange_made("barrier workgroup workgroup acq_rel|storage\n", "workgroup");
    check::insert(&mut kernel);
    for site in kernel.sites.values_mut() {
        if let SiteAction::Write(access) = &mut site.action {
            access.scope = None;
        }
    }
    let before = reported(&kernel);
    check::complete_semantics(&mut kernel);
    assert_eq!(reported(&kernel), before, "writes have no operation of their own");
}

/// What such accesses exchange at a barrier is no suspicion; replays, which run the kernel as it is, would suspect it.
#[test]
fn an_exchange_of_coherent_values_is_not_suspected() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    for (barrier, is_suspected) in
        [("barrier workgroup workgroup acq_rel|storage|workgroup\n", false), (BARRIER, true), (WAIT, true)]
    {
        let kernel = exchange_made(barrier, "workgroup");
        for isa in Isa::available() {
            let found = [Checks::Needed, Checks::All].map(|checks| {
                let checked = compile_checked(&kernel, Backend::X86(isa), checks);
                let (found, ..) = run(&checked, &kernel, (memory, APART), Profile::Common, Offer::All);
                found.lines().any(|line| line.contains("cause:"))
            });
            assert_eq!(found, [is_suspected, true], "{barrier}");
        }
    }
}

/// Barriers for which no control barrier can stand, or not for all of them.
fn needed() -> Vec<String> {
    let mut needed = Vec::from([
        vec![BUFFER, BARRIER],
        vec![BARRIER, BUFFER],
        // As one of them stays, all do. Profile `common` lets only the last one before the wait acquire.
        vec![BUFFER, SHARED, BARRIER],
        vec![SHARED, BUFFER, BARRIER],
        // What the second memory barrier acquires is not released by the first one.
        vec![SHARED, "fence device acquire|workgroup|storage\n", WAIT, SHARED],
        vec!["fence subgroup acq_rel|storage\n", BARRIER, BUFFER],
        vec![BUFFER, "barrier subgroup subgroup relaxed\n", BUFFER],
        vec![SHARED, "barrier workgroup subgroup acq_rel|workgroup\n"],
        vec![SHARED, "barrier workgroup workgroup acq_rel|workgroup\n", SHARED, BUFFER],
        // The control barrier releases storage, which nothing acquires.
        vec![SHARED, "barrier workgroup workgroup release|storage\n", SHARED],
    ]);
    needed.push(vec![BUFFER, "store storage v10 + v6, v2 non_private\n", BARRIER, BUFFER]);
    // The atomics may carry what the first memory barrier releases, and bring what the second one acquires.
    needed.push(vec![BUFFER, WAIT, BUFFER, "v20 = atomic.iadd storage v11 + v6, v0 device relaxed\n"]);
    needed.into_iter().map(|barriers| barriers.concat()).collect()
}

#[test]
fn memory_barriers_that_order_more_stay() {
    for barriers in needed() {
        let [before, after] = merged(&barriers);
        assert_eq!(after, before, "{barriers}");
    }
}

#[test]
fn races_are_the_same_whether_memory_barriers_stay_or_not() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    let complete =
        [vec![SHARED, BARRIER], vec![BUFFER, BARRIER, BUFFER], vec![IMAGE, WAIT], vec![SHARED, WAIT, SHARED]];
    for barriers in complete.into_iter().map(|barriers| barriers.concat()).chain(needed()) {
        let kernel = exchange(&barriers);
        for (isa, profile) in Isa::available().flat_map(|isa| [(isa, Profile::Common), (isa, Profile::Spec)]) {
            let [needed, all] = [Checks::Needed, Checks::All].map(|checks| {
                let checked = compile_checked(&kernel, Backend::X86(isa), checks);
                assert_eq!(checked.fallback, None, "{barriers}");
                run(&checked, &kernel, (memory, APART), profile, Offer::All).0
            });
            // Of accesses by the same invocation to the same words the calls are the same.
            let kinds = |found: &str| {
                let lines = found.lines().filter(|line| line.contains("cause:") || line.contains("relation:"));
                lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(kinds(&needed), kinds(&all), "{}, {profile:?}\n{barriers}", isa.name());
        }
    }
}

/// The kernel with memory barriers around its control barriers, which have no semantics then, or those that they had.
fn with_fences(kernel: &Kernel, random: &mut Random) -> Kernel {
    let mut kernel = kernel.clone();
    for number in 0..kernel.layout.len() {
        let block = kernel.layout[number];
        let mut insts = Vec::new();
        for inst in std::mem::take(&mut kernel.blocks[block].insts) {
            let InstData::Barrier { memory, semantics, .. } = kernel.insts[inst] else {
                insts.push(inst);
                continue;
            };
            let fence = |kernel: &mut Kernel| {
                let fence = kernel.insts.push(InstData::Fence { scope: memory, semantics });
                kernel.origins[fence] = kernel.origins[inst];
                fence
            };
            let (around, keeps) = (random.below(2) == 0, random.below(2) == 0);
            insts.push(fence(&mut kernel));
            insts.push(inst);
            if around || !keeps {
                insts.push(fence(&mut kernel));
            }
            if let (InstData::Barrier { semantics, .. }, false) = (&mut kernel.insts[inst], keeps) {
                *semantics = Semantics(0);
            }
        }
        kernel.blocks[block].insts = insts;
    }
    kernel
}

/// What is found of a kernel with memory barriers, with the sites of the kernel without them.
fn kinds(checked: &Checked, kernel: &Kernel, memory: GuestSlice, profile: Profile) -> (Vec<String>, u64) {
    let (found, calls) = run(checked, kernel, (memory, APART), profile, Offer::All);
    let word = |line: &str| -> Option<String> {
        let number: usize = line.trim().strip_prefix("site: site")?.trim_end_matches(',').parse().ok()?;
        let (_, data) = checked.kernel.sites.iter().nth(number)?;
        Some(format!("{} {:?}", data.word, data.action))
    };
    (found.lines().map(|line| word(line).unwrap_or_else(|| line.to_owned())).collect(), calls)
}

#[test]
fn memory_barriers_beside_control_barriers_cost_no_calls() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    for isa in Isa::available() {
        for seed in 0..PROGRAMS {
            let (text, _) = kernel(seed);
            let plain = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
            let fenced = with_fences(&plain, &mut Random(seed));
            let [of_plain, of_fenced] =
                [&plain, &fenced].map(|kernel| compile_checked(kernel, Backend::X86(isa), Checks::Needed));
            let is_reported = |inst: &InstData| match inst {
                InstData::Sync { site, .. } => {
                    matches!(of_fenced.kernel.sites[*site].action, SiteAction::Fence { .. })
                }
                _ => false,
            };
            let mut insts = of_fenced.kernel.layout.iter().flat_map(|&block| &of_fenced.kernel.blocks[block].insts);
            assert!(!insts.any(|&inst| is_reported(&of_fenced.kernel.insts[inst])), "seed {seed}\n{text}");
            for profile in [Profile::Common, Profile::Spec] {
                let expected = kinds(&of_plain, &plain, memory, profile);
                let found = kinds(&of_fenced, &fenced, memory, profile);
                assert_eq!(found, expected, "seed {seed}, {}, {profile:?}\n{text}", isa.name());
            }
        }
    }
}
