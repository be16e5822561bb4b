//! Several operations in a row, fused or not, against what each of them computes.

use proptest::prelude::*;
use spelter_shaders::ir::{Op, Type};

use super::ops::{LANE_OPS, SPECIAL, fold, op, operand_rows, over_rows};
use super::{engines, head, run};

/// What statements compute of a row of operands.
type Meaning = Box<dyn Fn(&[u32]) -> u32>;

/// Statements with what they compute of the operands, as chains of operations that are fewer instructions.
#[test]
fn fused_operations_compute_what_their_parts_do() {
    let logic = ["and", "or", "xor"];
    let mut cases: Vec<(String, Meaning)> = Vec::new();
    for outer in logic {
        for inner in logic {
            let both = move |a: u32, b: u32, c: u32| fold(op(outer), &[fold(op(inner), &[a, b]), c]);
            let text = format!("    v19 = {inner} v10, v11\n    v20 = {outer} ");
            cases.push((text.clone() + "v19, v12\n", Box::new(move |row| both(row[0], row[1], row[2]))));
            cases.push((text + "v12, v19\n", Box::new(move |row| both(row[0], row[1], row[2]))));
        }
    }
    for (up, down) in [(7u32, 25u32), (1, 31), (16, 16), (7, 24)] {
        let text = format!(
            "    v30 = const.v32 {up}\n    v31 = const.v32 {down}\n    v18 = shl v10, v30\n    v19 = lshr v10, v31\n    v20 = or v19, v18\n"
        );
        cases.push((text, Box::new(move |row| row[0] << up | row[0] >> down)));
    }
    for negated in 0..8 {
        let sign = move |place: usize, word: u32| if negated >> place & 1 != 0 { word ^ 0x8000_0000 } else { word };
        let name = |place: usize| if negated >> place & 1 != 0 { 15 + place } else { 10 + place };
        let mut text: String = (0..3).map(|place| format!("    v{} = fneg v{}\n", 15 + place, 10 + place)).collect();
        text += &format!("    v20 = fma v{}, v{}, v{}\n", name(0), name(1), name(2));
        let product = move |row: &[u32]| fold(Op::Fma, &[sign(0, row[0]), sign(1, row[1]), sign(2, row[2])]);
        cases.push((text, Box::new(product)));
    }
    for (compare, masks) in
        [("ult", "v16, v17"), ("ult", "v17, v16"), ("ford_lt", "v16, v17"), ("funord_le", "v17, v16")]
    {
        for negation in [false, true] {
            let second =
                if negation { "    v15 = OP v10, v12\n    v17 = lnot v15\n" } else { "    v17 = OP v10, v12\n" };
            let text = format!("    v16 = ine v10, v11\n{second}    v19 = land {masks}\n    v20 = bool_to_int v19\n");
            let holds = move |row: &[u32]| (fold(op(compare), &[row[0], row[2]]) != 0) != negation;
            cases.push((text.replace("OP", compare), Box::new(move |row| u32::from(row[0] != row[1] && holds(row)))));
        }
    }
    if engines().is_empty() {
        return;
    }
    let rows = operand_rows(3);
    let nan = |bits: u32| f32::from_bits(bits).is_nan();
    for (text, expected) in &cases {
        for (row, result) in rows.iter().zip(over_rows(&rows, text)) {
            let expected = expected(row);
            let open = text.contains("fma") && nan(result) && nan(expected);
            assert!(result == expected || open, "{row:x?}: {result:#x}, not {expected:#x}\n{text}");
        }
    }
}

/// A program of lane operations: each takes what came before.
fn programs() -> impl Strategy<Value = Vec<(usize, [usize; 4])>> {
    prop::collection::vec((0..LANE_OPS.len(), prop::array::uniform4(0usize..1000)), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_compute_what_fold_does(
        program in programs(),
        inputs in prop::array::uniform3(prop::array::uniform16(any::<u32>())),
        constant in prop::sample::select(SPECIAL.to_vec()),
    ) {
        if !engines().is_empty() {
            straight_line(&program, &inputs, constant);
        }
    }
}

fn straight_line(program: &[(usize, [usize; 4])], inputs: &[[u32; 16]; 3], constant: u32) {
    let mut values: Vec<Vec<u32>> = inputs.iter().map(|lanes| lanes.to_vec()).collect();
    values.push(vec![constant; 16]);
    let mut names: Vec<String> = ["v10", "v11", "v12", "v30"].map(String::from).to_vec();
    let mut text = format!("    v30 = const.v32 {constant:#x}\n");
    let mut used = std::collections::BTreeSet::new();
    for (number, (which, picks)) in program.iter().enumerate() {
        let op = op(LANE_OPS[*which]);
        let chosen: Vec<usize> = picks[..op.params().len()].iter().map(|pick| pick % values.len()).collect();
        used.extend(chosen.iter().copied());
        let args: Vec<String> = chosen.iter().map(|&pick| names[pick].clone()).collect();
        let (mask, result) = (format!("v{}", 300 + number), format!("v{}", 100 + number));
        if op.result() == Type::Bool {
            text += &format!("    {mask} = {} {}\n    {result} = bool_to_int {mask}\n", op.name(), args.join(", "));
        } else {
            text += &format!("    {result} = {} {}\n", op.name(), args.join(", "));
        }
        let lane = |lane: usize| fold(op, &chosen.iter().map(|&pick| values[pick][lane]).collect::<Vec<_>>());
        let lanes = (0..16).map(lane).collect::<Vec<u32>>();
        // Which NaN comes out is open: what would look at its bits gets others.
        if op.result() == Type::F32 && lanes.iter().any(|&bits| f32::from_bits(bits).is_nan()) {
            text += &format!(
                "    v{n} = is_nan {result}\n    v{m} = select v{n}, v30, {result}\n",
                n = 500 + number,
                m = 700 + number
            );
            values
                .push(lanes.iter().map(|&bits| if f32::from_bits(bits).is_nan() { constant } else { bits }).collect());
            names.push(format!("v{}", 700 + number));
            continue;
        }
        values.push(lanes);
        names.push(result);
    }
    text += "    v40 = const.s32 0\n    v43 = const.mask 0xffff\n";
    // Only what has no use is stored, so that most values have one use.
    let mut expected = vec![0; values.len() * 16];
    for (number, name) in names.iter().enumerate().filter(|(number, _)| !used.contains(number)) {
        text += &format!(
            "    v{k} = const.s32 {}\n    store_row v2 + v{k} if < v3, {} mask v43\n",
            number * 16,
            name,
            k = 1000 + number
        );
        expected[number * 16..][..16].copy_from_slice(&values[number]);
    }
    let mut kernel = head(2);
    for i in 0..3 {
        kernel +=
            &format!("    v{k} = const.s32 {}\n    v{} = load_row v0 + v{k} if < v1\n", i * 16, 10 + i, k = 60 + i);
    }
    kernel += &text;
    kernel += "    return\n";
    let operands: Vec<u32> = inputs.iter().flatten().copied().collect();
    let results = run(&kernel, &[&operands, &vec![0; values.len() * 16]]).swap_remove(1);
    assert_eq!(results, expected, "{kernel}");
}
