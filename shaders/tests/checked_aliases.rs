//! Memory that a kernel reads through one descriptor and writes through another: machine code finds what calls find.

use spelter_shaders::back::x86::Isa;
use spelter_shaders::check::Profile;
use spelter_shaders::compile::{Backend, Checks, Module, compile_checked};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Kernel, MemoryModel};

use crate::checked_inline::{Offer, PROGRAMS, kernel, run};

/// Without private accesses, and with private ones to buffers: `common` takes those for others inside a workgroup.
const MODELS: [(MemoryModel, Profile); 3] =
    [(MemoryModel::Wgsl, Profile::Spec), (MemoryModel::Wgsl, Profile::Common), (MemoryModel::Glsl450, Profile::Common)];

#[test]
fn accesses_to_what_is_read_through_one_descriptor_and_written_through_another_are_settled() {
    let memory = GuestSlice::leak(4 * 256 * 3);
    for isa in Isa::available() {
        let (mut racy, mut calls) = (0, [[0; 2]; MODELS.len()]);
        for seed in 0..PROGRAMS {
            let (text, _) = kernel(seed);
            let of_wgsl = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
            let mut verdicts = Vec::new();
            for ((memory_model, profile), calls) in MODELS.into_iter().zip(&mut calls) {
                let kernel = Kernel { memory_model, ..of_wgsl.clone() };
                let checked = compile_checked(&kernel, Backend::X86(isa), Checks::Needed);
                // The input is the second output, too.
                let find = |offer| run(&checked, &kernel, (memory, [0, 1024, 1024]), profile, offer);
                let [by_calls, inline] = [Offer::Unused, Offer::All].map(find);
                let context = || format!("seed {seed}, {}, {memory_model:?}, {profile:?}\n{text}", isa.name());
                assert_eq!(inline.0, by_calls.0, "{}", context());
                // With a history of each word other accesses may be named.
                let with_histories = find(Offer::Nothing);
                let races = |found: &(String, u64)| found.0.contains("Kind {");
                assert_eq!(races(&inline), races(&with_histories), "{}", context());
                calls[0] += with_histories.1;
                calls[1] += inline.1;
                verdicts.push(races(&inline));
            }
            // Nothing orders two workgroups, and inside one the accesses of all three are alike.
            assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "seed {seed}: {verdicts:?}\n{text}");
            racy += u64::from(verdicts[0]);
        }
        assert!((PROGRAMS / 8..PROGRAMS * 7 / 8).contains(&racy), "{racy} of {PROGRAMS} programs race");
        assert!(calls.iter().all(|[histories, inline]| *inline < histories / 2), "{calls:?}");
    }
}
