//! Lanes act only where they are on: what the verifier proves and what it refuses.

use spelter_shaders::simd::{Kernel, verify};

use crate::simd::text::parse;

/// A kernel whose entry has an address (`v0`), 8 lanes of a subgroup (`v1`), words (`v2`) and two conditions (`v3`,
/// `v4`).
fn kernel(blocks: &str) -> Kernel {
    parse(&format!(
        "simd kernel \"k\"\ncalls 256\nblock0:\n v0 = context shared\n v1 = const.mask 0xff\n v2 = lanes [{}]\n \
         v3 = ieq v2, v2\n v4 = ine v2, v2\n v5 = const.mask 0\n v6 = const.mask 0xffff\n v7 = any v3\n jump block1\n{blocks}",
        ["7"; 16].join(", ")
    ))
}

#[track_caller]
fn accepted(blocks: &str) {
    assert_eq!(verify(&kernel(blocks)), Ok(()), "{blocks}");
}

#[track_caller]
fn refused(blocks: &str, message: &str) {
    assert_eq!(verify(&kernel(blocks)).expect_err("must be refused").to_string(), message, "{blocks}");
}

/// Whether a store under `mask` is all right in a block in which all lanes of v1 are active, after `insts`.
fn stores(insts: &str, mask: &str) -> bool {
    let kernel = kernel(&format!("block1 exec v1:\n {insts}\n scatter v0 + v2 * 4, v2 mask {mask}\n return"));
    let result = verify(&kernel);
    if let Err(error) = &result {
        let rule = "is not known to be part of v1, the execution mask of block1";
        assert!(error.message.ends_with(rule), "{error}");
    }
    result.is_ok()
}

#[test]
fn a_mask_is_part_of_the_execution_mask() {
    assert!(stores("", "v1"));
    assert!(stores("", "v5"));
    assert!(stores("v10 = const.mask 0x81", "v10"));
    assert!(stores("v10 = land v3, v1", "v10"));
    assert!(stores("v10 = lnot v3\n v11 = land v1, v10", "v11"));
    assert!(stores("v10 = land v1, v3\n v11 = lor v10, v5\n v12 = land v11, v4", "v12"));
    assert!(stores("v10 = land v1, v3\n v11 = lxor v1, v10", "v11"));
    assert!(stores("v10 = select v7, v1, v5", "v10"));
    assert!(stores("v10 = select v1, v3, v5", "v10"));
}

#[test]
fn a_mask_with_other_lanes_is_refused() {
    assert!(!stores("", "v6"));
    assert!(!stores("", "v3"));
    assert!(!stores("v10 = const.mask 0x181", "v10"));
    assert!(!stores("v10 = lnot v1", "v10"));
    assert!(!stores("v10 = lor v1, v3", "v10"));
    assert!(!stores("v10 = land v3, v4", "v10"));
    assert!(!stores("v10 = select v3, v1, v4", "v10"));
    assert!(!stores("v10 = splat v7", "v10"));
    assert!(!stores("v10 = undef.mask", "v10"));
}

#[test]
fn every_side_effect_is_held_to_it() {
    for effect in [
        "store v0, v2 mask v3",
        "store_row v0 + v9 if < v9, v2 mask v3",
        "store_elements v0 + v9 if < [v9, v9], [v2, v2] mask v3",
        "scatter v0 + v2 * 4, v2 mask v3",
        "v10 = atomic.iadd v0 + v2 * 4, v2 mask v3",
        "atomic.store v0 + v2 * 4, v2 mask v3",
    ] {
        let text = format!("`{effect}`: ");
        refused(
            &format!("block1 exec v1:\n v9 = const.s32 1\n {effect}\n return"),
            &format!("{text}v3 is not known to be part of v1, the execution mask of block1"),
        );
        refused(
            &format!("block1:\n v9 = const.s32 1\n {effect}\n return"),
            &format!("{text}the block has no execution mask"),
        );
    }
    accepted(
        "block1:\n v10 = gather v0 + v2 * 4 mask v3\n v11 = atomic.load v0 + v2 * 4 mask v3\n zero v0, 8\n return",
    );
}

#[test]
fn in_a_block_with_all_lanes_any_mask_will_do() {
    accepted("block1 exec v6:\n v10 = splat v7\n scatter v0 + v2 * 4, v2 mask v10\n return");
}

#[test]
fn a_divergent_branch_and_its_join() {
    accepted(
        "block1 exec v1:\n v10 = land v1, v3\n v11 = lnot v3\n v12 = land v1, v11\n v13 = any v10\n branch v13, block2, block3\n\
         block2 exec v10:\n scatter v0 + v2 * 4, v2 mask v10\n jump block3\n\
         block3 exec v12:\n scatter v0 + v2 * 4, v2 mask v12\n jump block4\n\
         block4 exec v14:\n v14 = lor v10, v12\n scatter v0 + v2 * 4, v2 mask v14\n return",
    );
}

#[test]
fn the_wrong_side_is_refused() {
    refused(
        "block1 exec v1:\n v10 = land v1, v3\n v11 = lnot v3\n v12 = land v1, v11\n jump block2\n\
         block2 exec v10:\n scatter v0 + v2 * 4, v2 mask v12\n return",
        "`scatter v0 + v2 * 4, v2 mask v12`: v12 is not known to be part of v10, the execution mask of block2",
    );
}

/// A loop that lanes leave at two places; those that left wait in two masks.
fn loop_with_two_exits(first: &str) -> String {
    format!(
        "block1 exec v1:\n jump block2(v1, {first}, v5)\n\
         block2(v10: mask, v11: mask, v12: mask) exec v10:\n v13 = land v10, v3\n v14 = lnot v3\n v15 = land v10, v14\n \
         v16 = lor v11, v15\n scatter v0 + v2 * 4, v2 mask v13\n v17 = any v13\n branch v17, block3, block4(v16, v12)\n\
         block3 exec v13:\n v18 = land v13, v4\n v19 = lxor v13, v18\n v20 = lor v12, v19\n v21 = any v18\n \
         branch v21, block2(v18, v16, v20), block4(v16, v20)\n\
         block4(v22: mask, v23: mask) exec v22:\n scatter v0 + v2 * 4, v2 mask v22\n jump block5\n\
         block5 exec v24:\n v24 = lor v22, v23\n scatter v0 + v2 * 4, v2 mask v24\n return"
    )
}

#[test]
fn masks_that_run_around_a_loop() {
    accepted(&loop_with_two_exits("v5"));
    refused(&loop_with_two_exits("v3"), "block4: v22 is not known to be part of v1, the execution mask of block1");
}

#[test]
fn an_execution_mask_may_not_grow() {
    refused(
        "block1 exec v1:\n jump block2\nblock2 exec v6:\n return",
        "block2: v6 is not known to be part of v1, the execution mask of block1",
    );
    refused(
        "block1 exec v1:\n jump block2\nblock2:\n jump block3\nblock3 exec v6:\n return",
        "block3: v6 is not known to be part of v1, the execution mask of block1",
    );
    // Where two subgroups begin, neither above the other, each has its mask.
    accepted(
        "block1:\n branch v7, block2, block3\nblock2 exec v1:\n jump block4\nblock3 exec v6:\n jump block4\nblock4 exec v3:\n return",
    );
}

/// A round of subgroups with a barrier: what a subgroup keeps is in its frame.
fn barrier(kept: &str, entry: &str) -> Kernel {
    parse(&format!(
        "simd kernel \"k\"\nframes 256\n\
         block0:\n v0 = context frames\n v1 = lanes [{}]\n v2 = const.s32 0\n v3 = const.mask 0xffff\n jump block1(v2)\n\
         block1(v4: s32){entry}:\n v5 = splat v4\n v6 = ult v1, v5\n v7 = wide.extend v4\n v8 = wide.add v0, v7\n \
         v9 = load.s32 v0 + v4 * 4 if v4 < v4\n switch v9, block4 [0: block2, 1: block3]\n\
         block2 exec v6:\n v10 = ieq v1, v5\n v11 = land v6, v10\n frame_store v8 + 64, {kept}\n \
         store v0 + v4 * 4 if v4 < v4, v2 mask v3\n jump block4\n\
         block3 exec v12:\n v12 = frame_load.mask v8 + 64\n scatter v0 + v1 * 4, v1 mask v12\n frame_store v8 + 64, v12\n jump block4\n\
         block4:\n v13 = any v3\n branch v13, block1(v9), block5\nblock5:\n return",
        ["7"; 16].join(", ")
    ))
}

#[test]
fn masks_that_wait_in_a_frame() {
    assert_eq!(verify(&barrier("v11", " exec v6")), Ok(()));
    let message = verify(&barrier("v10", " exec v6")).expect_err("lanes came from nowhere").to_string();
    assert_eq!(message, "block3: v12 is not known to be part of v6, the execution mask of block1");
    // Where each subgroup begins anew after the barrier, nothing is known of what it kept.
    assert_eq!(verify(&barrier("v10", "")), Ok(()));
}

#[test]
fn a_mask_of_an_earlier_iteration_is_not_part_of_this_ones() {
    refused(
        "block1 exec v6:\n jump block2(v5)\n\
         block2(v10: mask) exec v6:\n v11 = undef.mask\n jump block3\n\
         block3 exec v11:\n scatter v0 + v2 * 4, v2 mask v10\n branch v7, block2(v11), block4\n\
         block4:\n return",
        "`scatter v0 + v2 * 4, v2 mask v10`: v10 is not known to be part of v11, the execution mask of block3",
    );
}

#[test]
fn what_was_assumed_around_a_loop_is_forgotten_if_it_was_wrong() {
    // v12 is part of v1 as long as v10 is, which a second loop spoils.
    refused(
        "block1 exec v1:\n jump block2(v5)\n\
         block2(v10: mask) exec v1:\n v11 = lor v10, v5\n branch v7, block2(v11), block3\n\
         block3 exec v1:\n branch v7, block2(v3), block4\n\
         block4 exec v1:\n scatter v0 + v2 * 4, v2 mask v11\n return",
        "`scatter v0 + v2 * 4, v2 mask v11`: v11 is not known to be part of v1, the execution mask of block4",
    );
}

#[test]
fn the_execution_mask_is_a_mask_that_is_there() {
    refused("block1 exec v2:\n return", "v2, the execution mask of block1, is v32");
    refused(
        "block1:\n branch v7, block2, block3\nblock2:\n v10 = land v3, v4\n jump block3\nblock3 exec v10:\n return",
        "v10, the execution mask of block3, does not dominate it",
    );
    let mut kernel = kernel("block1 exec v1:\n return");
    let block = kernel.layout[1];
    kernel.blocks[block].exec = Some(spelter_shaders::simd::Value::from_u32(999));
    let message = verify(&kernel).expect_err("must be refused").to_string();
    assert_eq!(message, "v999, the execution mask of block1, is not defined in the layout");
}

#[test]
fn long_chains_of_masks_are_no_problem() {
    // Each of many side effects asks about a chain that does not lead where it should.
    let mut text = String::from("block1 exec v1:\n v10 = lor v3, v4\n");
    for value in 11..20_000 {
        text += &format!(" v{value} = lor v{}, v3\n", value - 1);
    }
    for value in 20_000..21_000 {
        text += &format!(" v{value} = land v19999, v1\n scatter v0 + v2 * 4, v2 mask v{value}\n");
    }
    accepted(&(text + " return"));
    // As many execution masks, one in the other.
    let mut text = String::from("block1 exec v1:\n v10 = land v1, v3\n jump block10\n");
    for value in 10..5_000 {
        let next = value + 1;
        text += &format!(
            "block{value} exec v{value}:\n v{next} = land v4, v{value}\n scatter v0 + v2 * 4, v2 mask v{next}\n jump block{next}\n"
        );
    }
    accepted(&(text + "block5000:\n return"));
}

/// A block with v1's lanes active after `insts`, in a kernel that calls functions.
fn active(insts: &str) -> String {
    format!("block1 exec v1:\n v20 = context calls\n v21 = const.s32 0\n {insts}\n return")
}

/// What is computed where a scalar is made of a lane that may be undefined.
const HOLD_NOTHING: [(&str, &str); 6] = [
    ("v30 = gather v0 + v2 * 4 mask v1", "v30"),
    ("v30, v31 = gather_elements v0 + v2 masks [v1, v1]", "v31"),
    ("v30 = atomic.iadd v0 + v2 * 4, v2 mask v1", "v30"),
    ("call.buffer_at v20 mask v1\n v30 = frame_load.v32 v20 + 128", "v30"),
    ("v28 = undef.v32\n v30 = select v1, v2, v28", "v30"),
    ("v29 = gather v0 + v2 * 4 mask v1\n v30 = select v3, v2, v29", "v30"),
];

#[test]
fn a_truth_value_is_made_of_lanes_that_hold_one() {
    for (insts, vector) in HOLD_NOTHING {
        for scalar in ["any", "mask_bits", "first_lane"] {
            let compared = format!("{insts}\n v40 = ieq {vector}, v2\n");
            refused(
                &active(&format!("{compared} v41 = {scalar} v40")),
                &format!("`v41 = {scalar} v40`: inactive lanes of v40 may be undefined"),
            );
            accepted(&active(&format!("{compared} v41 = land v1, v40\n v42 = {scalar} v41")));
        }
    }
}

/// What the widener once made of a texel at coordinates that all lanes share.
#[test]
fn a_word_is_taken_from_a_lane_that_holds_one() {
    for (insts, vector) in HOLD_NOTHING {
        refused(
            &active(&format!("{insts}\n v41 = extract {vector}, v21")),
            &format!("`v41 = extract {vector}, v21`: inactive lanes of {vector} may be undefined"),
        );
        accepted(&active(&format!("{insts}\n v41 = first_lane v1\n v42 = extract {vector}, v41")));
        accepted(&active(&format!("{insts}\n v41 = select v1, {vector}, v2\n v42 = extract v41, v21")));
    }
    refused(
        &active("v30 = gather v0 + v2 * 4 mask v1\n v41 = first_lane v6\n v42 = extract v30, v41"),
        "`v42 = extract v30, v41`: inactive lanes of v30 may be undefined",
    );
    // All lanes have what is loaded once.
    accepted(&active("v30 = load.v32 v0\n v31 = ieq v30, v2\n v32 = any v31\n v33 = extract v30, v21"));
}

#[test]
fn lanes_take_words_of_lanes_that_hold_one() {
    let lanes = [0; 16].map(|lane| lane.to_string()).join(", ");
    for (insts, vector) in HOLD_NOTHING {
        let [pick, permute] = [format!("v41 = pick v2, {vector}, [{lanes}]"), format!("v41 = permute {vector}, v2")];
        for moved in [pick, permute] {
            refused(
                &active(&format!("{insts}\n {moved}")),
                &format!("`{moved}`: inactive lanes of {vector} may be undefined"),
            );
        }
        accepted(&active(&format!("{insts}\n v40 = select v1, {vector}, v2\n v41 = permute v40, v2")));
    }
}

/// Rows are loaded whole: other lanes may have their words, but they are nothing that a scalar may be made of.
#[test]
fn rows_hold_words_of_no_invocation() {
    let row = "v30 = load_row v0 + v21 if < v21\n v31 = ieq v30, v2";
    refused(
        &active(&format!("{row}\n v32 = any v31")),
        "`v32 = any v31`: inactive lanes of v31 may hold words of other invocations",
    );
    accepted(&active(&format!("{row}\n v32 = land v31, v1\n v33 = any v32\n v34 = permute v30, v2")));
}

#[test]
fn with_all_lanes_active_every_lane_holds_its_value() {
    let insts = "v30 = gather v0 + v2 * 4 mask v6\n v31 = ieq v30, v2\n v32 = any v31\n v33 = permute v30, v2";
    accepted(&format!("block1 exec v6:\n {insts}\n return"));
    refused(&format!("block1:\n {insts}\n return"), "`v32 = any v31`: inactive lanes of v31 may be undefined");
}

#[test]
fn what_lanes_hold_is_known_around_loops_and_in_frames() {
    let around = |passed: &str| {
        format!(
            "block1 exec v1:\n jump block2(v2, v3)\n\
             block2(v10: v32, v11: mask) exec v1:\n v12 = any v11\n v13 = gather v0 + v10 * 4 mask v1\n \
             v14 = ieq v13, v2\n v15 = land v14, v1\n v16 = ieq v10, v2\n branch v12, block2({passed}), block3\n\
             block3:\n return"
        )
    };
    accepted(&around("v13, v15"));
    accepted(&around("v10, v16"));
    refused(&around("v10, v14"), "`v12 = any v11`: inactive lanes of v11 may be undefined");
    refused(&around("v13, v16"), "`v12 = any v11`: inactive lanes of v11 may be undefined");
    let frame = |kept: &str| {
        parse(&format!(
            "simd kernel \"k\"\nframes 64\n\
             block0:\n v0 = context shared\n v1 = const.mask 0xff\n v2 = lanes [{}]\n v3 = context frames\n jump block1\n\
             block1 exec v1:\n v10 = gather v0 + v2 * 4 mask v1\n v11 = ieq v10, v2\n v12 = land v11, v1\n \
             {kept}\n v13 = frame_load.mask v3 + 0\n v14 = any v13\n return",
            ["7"; 16].join(", ")
        ))
    };
    let (good, bad) = ("frame_store v3 + 0, v12", "frame_store v3 + 0, v11");
    assert_eq!(verify(&frame(good)), Ok(()));
    // One store that keeps all lanes does not answer for another one.
    for stores in [bad.to_owned(), format!("{good}\n {bad}"), format!("{bad}\n {good}")] {
        let message = verify(&frame(&stores)).expect_err("inactive lanes were kept").to_string();
        assert_eq!(message, "`v14 = any v13`: inactive lanes of v13 may be undefined");
    }
}
