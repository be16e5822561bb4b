//! Control flow: arguments, loops, switches, stopping.

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::x86::compile;
use spelter_shaders::back::{Code, Scratch, Workgroups};

use super::{buffer, check, engines, head, parse, run, run_program, words};

#[test]
fn arguments_are_passed_all_at_once() {
    // A loop that exchanges two values: v11 and v12 after 5 rounds.
    check(
        "    v10 = const.s32 0
    v11 = const.s32 7
    v12 = const.s32 9
    v13 = const.mask 0xffff
    jump block1(v10, v11, v12)

block1(v20: s32, v21: s32, v22: s32):
    v23 = const.s32 1
    v24 = iadd v20, v23
    v25 = const.s32 5
    v26 = ult v24, v25
    branch v26, block1(v24, v22, v21), block2(v21, v22)

block2(v31: s32, v32: s32):
    store v0 + v10 * 4 if v10 < v1, v31 mask v13
    store v0 + v10 * 4 + 4 if v10 < v1, v32 mask v13",
        &[0, 0],
        &[7, 9],
    );
}

#[test]
fn vectors_and_masks_pass_too() {
    let lanes: Vec<u32> = (0..16).collect();
    let expected: Vec<u32> = (0..16).map(|lane| if lane < 8 { 3 * lane } else { lane }).collect();
    check(
        "    v10 = const.s32 0
    v11 = load_row v0 + v10 if < v1
    v12 = const.v32 8
    v13 = ult v11, v12
    v14 = const.mask 0xffff
    jump block1(v10, v11, v13)

block1(v20: s32, v21: v32, v22: mask):
    v23 = iadd v21, v11
    v24 = select v22, v23, v21
    v25 = const.s32 1
    v26 = iadd v20, v25
    v27 = const.s32 2
    v28 = ult v26, v27
    branch v28, block1(v26, v24, v22), block2

block2:
    store_row v0 + v10 if < v1, v24 mask v14",
        &lanes,
        &expected,
    );
}

#[test]
fn a_switch_finds_its_case() {
    let cases: Vec<u32> = vec![0, 1, 5, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 77, 13];
    let mut text = format!(
        "{}    v10 = const.s32 0\n    v11 = load.s32 v0 + v10 * 4 if v10 < v1\n    v12 = const.mask 0xffff\n    v13 = const.s32 1000\n    switch v11, block100(v13) [",
        head(1)
    );
    let list: Vec<String> = cases.iter().enumerate().map(|(i, case)| format!("{case}: block{}", i + 1)).collect();
    text += &list.join(", ");
    text += "]\n";
    for i in 0..cases.len() {
        text +=
            &format!("\nblock{}:\n    v{} = const.s32 {}\n    jump block100(v{})\n", i + 1, 100 + i, i + 1, 100 + i);
    }
    text += "\nblock100(v50: s32):\n    store v0 + v10 * 4 if v10 < v1, v50 mask v12\n    return\n";
    if engines().is_empty() {
        return;
    }
    for (i, &case) in cases.iter().enumerate() {
        assert_eq!(run(&text, &[&[case]])[0], [i as u32 + 1]);
    }
    for other in [2, 4, 6, 14, 76, 78, 0x7fff_fffe, 0x8000_0001, 0xffff_fffe] {
        assert_eq!(run(&text, &[&[other]])[0], [1000], "{other}");
    }
}

#[test]
fn conditions_branch_both_ways() {
    for (condition, taken) in [
        ("ieq v11, v12", [false, true, false]),
        ("ine v11, v12", [true, false, true]),
        ("ult v11, v12", [true, false, false]),
        ("ule v12, v11", [false, true, true]),
        ("slt v11, v12", [true, false, true]),
        ("sle v12, v11", [false, true, false]),
    ] {
        for (input, expected) in [3u32, 5, 0x8000_0000].into_iter().zip(taken) {
            for constant in ["const.s32 5", "load.s32 v0 + v10 * 4 + 4 if v10 < v1"] {
                for (negation, flip) in [("v20 = lnot v19", true), ("v21 = lnot v19\n    v20 = lnot v21", false)] {
                    let expected = expected != flip;
                    check(
                        &format!(
                            "    v10 = const.s32 0
    v11 = load.s32 v0 + v10 * 4 if v10 < v1
    v12 = {constant}
    v13 = const.mask 0x1
    v19 = {condition}
    {negation}
    branch v20, block1, block2

block1:
    v30 = const.s32 1
    jump block3(v30)

block2:
    v31 = const.s32 0
    jump block3(v31)

block3(v32: s32):
    store v0 + v10 * 4 + 8 if v10 < v1, v32 mask v13"
                        )
                        .replace("    v33 = select v20, v30x, v10\n", ""),
                        &[input, 5, 7],
                        &[input, 5, u32::from(expected)],
                    );
                }
            }
        }
    }
}

#[test]
fn workgroups_without_loops_stop_one_after_the_other() {
    let text = format!(
        "{}    v10 = const.s32 0
    v11 = load.s32 v0 + v10 * 4 if v10 < v1
    v12 = const.s32 1
    v13 = iadd v11, v12
    v14 = const.mask 0xffff
    store v0 + v10 * 4 if v10 < v1, v13 mask v14
    return\n",
        head(1)
    );
    for isa in engines() {
        let program = compile(&parse(&text), isa).unwrap();
        for (stop, groups, outcome, ran) in
            [(0, 100_000, Outcome::Done, 100_000), (1, 100_000, Outcome::Stopped, 1), (1, 1, Outcome::Done, 1)]
        {
            let slice = buffer(&[0]);
            let args = DispatchArgs {
                buffers: &[slice],
                images: &[],
                push: &[0; MAX_PUSH_BYTES],
                num_workgroups: [groups, 1, 1],
                stop: &AtomicU32::new(stop),
            };
            let workgroups = Workgroups::new(0..u64::from(groups), args.num_workgroups, [0; 3]);
            assert_eq!(program.run_all(&args, workgroups, &mut Scratch::default()), outcome);
            assert_eq!(words(slice), [ran]);
        }
    }
}

#[test]
fn a_poll_stops_the_kernel() {
    let text = format!(
        "{}    v10 = const.s32 0\n    v12 = const.mask 0xffff\n    jump block1\n\nblock1:\n    store v0 + v10 * 4 if v10 < v1, v1 mask v12\n    poll\n    jump block1\n",
        head(1)
    );
    for isa in engines() {
        let program = compile(&parse(&text), isa).unwrap();
        let slice = buffer(&[0]);
        assert_eq!(run_program(&program, &[slice], [0; 3], true), Outcome::Stopped);
        assert_eq!(words(slice), [1]);
    }
}

#[test]
fn many_values_alive_are_spilled() {
    // 60 vectors, masks and scalars live at once, over a loop.
    let mut text = head(1);
    text += "    v10 = const.s32 0\n    v11 = const.mask 0xffff\n    v12 = const.v32 8\n";
    for i in 0..60 {
        text += &format!(
            "    v{k} = const.s32 {}\n    v{} = load_row v0 + v{k} if < v1\n    v{} = ult v{v}, v12\n    v{} = load.s32 v0 + v{k} * 4 if v{k} < v1\n",
            i,
            100 + i,
            200 + i,
            300 + i,
            k = 400 + i,
            v = 100 + i,
        );
    }
    text += "    jump block1(v10)\n\nblock1(v50: s32):\n    v51 = const.s32 1\n    v52 = iadd v50, v51\n    v53 = const.s32 3\n    v54 = ult v52, v53\n    branch v54, block1(v52), block2\n\nblock2:\n";
    for i in 0..60 {
        text += &format!(
            "    v{a} = splat v{}\n    v{b} = iadd v{}, v{a}\n    v{c} = select v{}, v{b}, v12\n    v{d} = const.s32 {}\n    store_row v0 + v{d} if < v1, v{c} mask v11\n",
            300 + i,
            100 + i,
            200 + i,
            100 + i * 16,
            a = 500 + i,
            b = 600 + i,
            c = 700 + i,
            d = 800 + i,
        );
    }
    text += "    return\n";
    let mut input: Vec<u32> = (0..100).map(|i| i % 16).collect();
    input.resize(100 + 60 * 16, 0);
    if engines().is_empty() {
        return;
    }
    let mut expected = input.clone();
    for i in 0..60 {
        for lane in 0..16 {
            let word = input[i + lane];
            expected[100 + i * 16 + lane] = if word < 8 { word + input[i] } else { 8 };
        }
    }
    assert_eq!(run(&text, &[&input])[0], expected);
}

#[test]
fn undefined_values_cost_nothing_and_harm_nothing() {
    let lanes: Vec<u32> = (0..16).collect();
    let expected: Vec<u32> = (0..16).map(|lane| if lane < 4 { lane } else { lane + 1 }).collect();
    check(
        "    v10 = const.s32 0
    v11 = load_row v0 + v10 if < v1
    v12 = const.v32 4
    v13 = ult v11, v12
    v14 = const.mask 0xffff
    v15 = undef.v32
    v16 = undef.mask
    v17 = undef.s32
    v18 = undef.s64
    v19 = undef.s1
    jump block1(v10, v15, v16, v17, v18, v19)

block1(v20: s32, v21: v32, v22: mask, v23: s32, v24: s64, v25: s1):
    v26 = select v13, v11, v21
    v27 = const.s32 1
    v28 = iadd v20, v27
    v29 = const.s32 2
    v30 = ult v28, v29
    v31 = const.v32 1
    v32 = iadd v11, v31
    v33 = lnot v13
    v34 = buffer_len v10
    branch v30, block1(v28, v32, v33, v28, v34, v30), block2

block2:
    v35 = lor v22, v13
    store_row v0 + v10 if < v1, v26 mask v35",
        &lanes,
        &expected,
    );
}

#[test]
fn a_switch_without_cases_jumps() {
    check(
        "    v10 = const.s32 0
    v11 = const.s32 5
    v12 = const.mask 0x1
    jump block1(v10)

block1(v13: s32):
    v14 = const.s32 1
    v15 = iadd v13, v14
    v16 = ult v15, v11
    branch v16, block1(v15), block2

block2:
    switch v15, block3(v15) []

block3(v17: s32):
    store v0 + v10 * 4 if v10 < v1, v17 mask v12",
        &[0],
        &[5],
    );
}

#[test]
fn constant_and_undefined_conditions_are_conditions() {
    for (condition, word) in [("const.s1 true", 1), ("const.s1 false", 2), ("undef.s1", 2)] {
        check(
            &format!(
                "    v10 = const.s32 0
    v11 = const.s32 1
    v12 = const.s32 2
    v13 = const.mask 0x1
    v14 = {condition}
    v15 = select v14, v11, v12
    store v0 + v10 * 4 + 4 if v10 < v1, v15 mask v13
    branch v14, block1(v11), block1(v12)

block1(v20: s32):
    store v0 + v10 * 4 if v10 < v1, v20 mask v13"
            ),
            &[0, 0],
            &[word, word],
        );
    }
}
