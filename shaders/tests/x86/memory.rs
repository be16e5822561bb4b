//! Memory: rows, words for all lanes, words for each.

use super::{check, engines, head, run};

/// The row at `index` of `input`, limit `limit`.
fn row(input: &[u32], index: u32, limit: u32) -> Vec<u32> {
    (0..16u32).map(|lane| index.wrapping_add(lane)).map(|i| if i < limit { input[i as usize] } else { 0 }).collect()
}

const INDICES: [u32; 14] = [0, 1, 4, 23, 24, 25, 30, 39, 40, 41, 0x3fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_fff8];

/// How an index and a limit reach the instruction: as constants, or loaded.
fn forms(index: u32, limit: u32) -> [String; 3] {
    let constants = format!("    v10 = const.s32 {index:#x}\n    v11 = const.s32 {limit}\n");
    let loaded = "    v8 = const.s32 0\n    v10 = load.s32 v4 + v8 * 4 if v8 < v5\n    v11 = load.s32 v4 + v8 * 4 + 4 if v8 < v5\n";
    let mixed =
        format!("    v8 = const.s32 0\n    v10 = load.s32 v4 + v8 * 4 if v8 < v5\n    v11 = const.s32 {limit}\n");
    [constants, loaded.to_owned(), mixed]
}

#[test]
fn rows_are_loaded_in_part_at_the_end() {
    let input: Vec<u32> = (100..140).collect();
    for index in INDICES {
        for limit in [0, 5, 40] {
            for form in forms(index, limit) {
                let text = format!(
                    "{}{form}    v12 = load_row v0 + v10 if < v11\n    v13 = const.mask 0xffff\n    v14 = const.s32 0\n    store_row v2 + v14 if < v3, v12 mask v13\n    return\n",
                    head(3)
                );
                if !engines().is_empty() {
                    let result = run(&text, &[&input, &[7; 16], &[index, limit]]).swap_remove(1);
                    assert_eq!(result, row(&input, index, limit), "{index:#x} {limit}");
                }
            }
        }
    }
}

#[test]
fn rows_are_stored_in_part_at_the_end() {
    let input: Vec<u32> = (100..140).collect();
    for index in INDICES {
        for limit in [0, 5, 40] {
            for mask in ["const.mask 0xffff", "const.mask 0xa5a5", "ult v20, v21"] {
                for form in forms(index, limit) {
                    let text = format!(
                        "{}{form}    v20 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n    v21 = const.v32 9\n    v13 = {mask}\n    store_row v0 + v10 if < v11, v20 mask v13\n    return\n",
                        head(3)
                    );
                    let on = |lane: u32| match mask {
                        "const.mask 0xffff" => true,
                        "const.mask 0xa5a5" => 0xa5a5 >> lane & 1 != 0,
                        _ => lane < 9,
                    };
                    let mut expected = input.clone();
                    for lane in (0..16).filter(|&lane| on(lane)) {
                        let i = index.wrapping_add(lane);
                        if i < limit {
                            expected[i as usize] = lane;
                        }
                    }
                    if !engines().is_empty() {
                        let result = run(&text, &[&input, &[], &[index, limit]]).swap_remove(0);
                        assert_eq!(result, expected, "{index:#x} {limit} {mask}");
                    }
                }
            }
        }
    }
}

#[test]
fn words_for_all_lanes_are_zero_out_of_bounds() {
    let input: Vec<u32> = (100..140).collect();
    for index in [0, 1, 4, 5, 39, 40, 0x4000_0000, 0xffff_ffff] {
        for limit in [0, 5, 40] {
            for form in forms(index, limit) {
                let text = format!(
                    "{}{form}    v14 = const.s32 0\n    v13 = const.mask 0xffff\n    v20 = load.s32 v0 + v10 * 4 if v10 < v11\n    v21 = load.v32 v0 + v10 * 4 if v10 < v11\n    v22 = const.v32 1\n    v23 = iadd v22, v21\n    store v2 + v14 * 4 if v14 < v3, v20 mask v13\n    store v2 + v14 * 4 + 4 if v14 < v3, v23 mask v13\n    v30 = wide.extend v10\n    v31 = wide.extend v11\n    v32 = load.s32 v0 + v30 * 4 if v30 < v31\n    store v2 + v14 * 4 + 8 if v14 < v3, v32 mask v13\n    return\n",
                    head(3)
                );
                let word = if index < limit { input[index as usize] } else { 0 };
                if !engines().is_empty() {
                    let result = run(&text, &[&input, &[7; 3], &[index, limit]]).swap_remove(1);
                    assert_eq!(result, [word, word + 1, word], "{index:#x} {limit}");
                }
            }
        }
    }
}

#[test]
fn a_load_is_not_moved_past_a_store() {
    check(
        "    v10 = const.s32 0
    v11 = load.v32 v0 + v10 * 4 if v10 < v1
    v12 = const.s32 5
    v13 = const.mask 0x1
    store v0 + v10 * 4 if v10 < v1, v12 mask v13
    v14 = const.v32 1
    v15 = iadd v14, v11
    store v0 + v10 * 4 + 4 if v10 < v1, v15 mask v13",
        &[1, 0],
        &[5, 2],
    );
}

#[test]
fn the_last_lane_that_is_on_stores() {
    for mask in [0u32, 1, 0x10, 0x7fff, 0x8000, 0xffff, 0x0ff0] {
        let word = if mask == 0 { 9 } else { 131 - mask.leading_zeros() };
        check(
            &format!(
                "    v10 = const.s32 0
    v11 = lanes [100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115]
    v12 = const.mask {mask:#x}
    store v0 + v10 * 4 if v10 < v1, v11 mask v12
    v13 = const.s32 100
    store v0 + v13 * 4 if v13 < v1, v11 mask v12"
            ),
            &[9],
            &[word],
        );
    }
}

#[test]
fn gathers_and_scatters_go_anywhere() {
    let index: Vec<u32> = vec![0, 5, 5, 3, 15, 14, 2, 2, 9, 8, 7, 6, 1, 0, 12, 5];
    let data: Vec<u32> = (200..232).collect();
    for scale in [1u32, 2, 4, 8] {
        let step = 4 / scale.min(4);
        for mask in [0u32, 1, 0xffff, 0x3c5a] {
            let text = format!(
                "{}    v10 = const.s32 0\n    v11 = load_row v4 + v10 if < v5\n    v12 = const.v32 {step}\n    v13 = imul v11, v12\n    v14 = const.mask {mask:#x}\n    v15 = const.mask 0xffff\n    v16 = gather v0 + v13 * {scale} + 0 mask v14\n    store_row v2 + v10 if < v3, v16 mask v15\n    scatter v0 + v13 * {scale} + 0, v17 mask v14\n    return\n",
                head(3)
            )
            .replace("    scatter", "    v17 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n    scatter");
            let factor = if scale == 8 { 2 } else { 1 };
            let place = |lane: usize| (index[lane] * factor) as usize;
            let on = |lane: usize| mask >> lane & 1 != 0;
            let gathered: Vec<u32> = (0..16).map(|lane| if on(lane) { data[place(lane)] } else { 0 }).collect();
            let mut scattered = data.clone();
            (0..16).filter(|&lane| on(lane)).for_each(|lane| scattered[place(lane)] = lane as u32);
            if !engines().is_empty() {
                let result = run(&text, &[&data, &[7; 16], &index]);
                assert_eq!(result[1], gathered, "scale {scale} mask {mask:#x}");
                assert_eq!(result[0], scattered, "scale {scale} mask {mask:#x}");
            }
        }
    }
}

#[test]
fn fields_and_descriptors_are_read() {
    let text = "simd kernel \"fields\"
descriptors 2

block0:
    v1 = const.s32 1
    v2 = buffer_base v1
    v3 = const.s32 0
    v4 = const.s32 100
    v5 = const.mask 0xffff
    v6 = buffer_len v3
    v7 = wide.truncate v6
    store v2 + v3 * 4 if v3 < v4, v7 mask v5
    v8 = const.s32 7
    v9 = buffer_len v8
    v10 = wide.truncate v9
    store v2 + v3 * 4 + 4 if v3 < v4, v10 mask v5
    v11 = context workgroup_id.2
    store v2 + v3 * 4 + 8 if v3 < v4, v11 mask v5
    v12 = context num_workgroups.1
    store v2 + v3 * 4 + 12 if v3 < v4, v12 mask v5
    v13 = context push
    v14 = load.s32 v13 + 4
    store v2 + v3 * 4 + 16 if v3 < v4, v14 mask v5
    v15 = load.s32 v2 + 24
    v16 = buffer_len v15
    v17 = wide.truncate v16
    store v2 + v3 * 4 + 20 if v3 < v4, v17 mask v5
    v18 = load.s32 v2 + 28
    v19 = buffer_len v18
    v20 = wide.truncate v19
    store v2 + v3 * 4 + 24 if v3 < v4, v20 mask v5
    v21 = buffer_base v15
    v22 = load.s32 v21 + 28
    store v2 + v3 * 4 + 28 if v3 < v4, v22 mask v5
    return
";
    if engines().is_empty() {
        return;
    }
    let result = run(text, &[&[1, 2, 3], &[9, 9, 9, 9, 9, 9, 1, 55, 9, 9]]).swap_remove(1);
    assert_eq!(result[..8], [12, 0, 5, 8, 0x0706_0504, 40, 0, 55]);
}

#[test]
fn frames_keep_values_of_all_types() {
    let lanes: Vec<u32> = (40..56).collect();
    let text = format!(
        "{}    v50 = context frames
    v51 = const.s32 0
    v10 = load_row v0 + v51 if < v1
    v11 = const.v32 47
    v12 = ult v10, v11
    v13 = buffer_len v51
    v14 = any v12
    zero v50, 300
    frame_store v50 + 64, v10
    frame_store v50 + 128, v12
    frame_store v50 + 136, v13
    frame_store v50 + 144, v1
    frame_store v50 + 152, v14
    v20 = frame_load.v32 v50 + 64
    v21 = frame_load.mask v50 + 128
    v22 = frame_load.s64 v50 + 136
    v23 = frame_load.s32 v50 + 144
    v24 = frame_load.s1 v50 + 152
    v25 = const.v32 0
    v26 = select v21, v20, v25
    v27 = const.mask 0xffff
    store_row v2 + v51 if < v3, v26 mask v27
    v28 = wide.truncate v22
    v29 = iadd v28, v23
    v30 = bool_to_int v24
    v31 = iadd v29, v30
    store v2 + 64, v31 mask v27
    v32 = load.s32 v50 + 296
    store v2 + 68, v32 mask v27
    v33 = load.s32 v50 + 300
    store v2 + 72, v33 mask v27
    return
",
        head(2)
    )
    .replace("descriptors 2\n", "descriptors 2\nframes 320\n");
    if engines().is_empty() {
        return;
    }
    let result = run(&text, &[&lanes, &[9; 20]]).swap_remove(1);
    let mut expected: Vec<u32> = (40..56).map(|word| if word < 47 { word } else { 0 }).collect();
    expected.extend([64 + 16 + 1, 0]);
    assert_eq!(result[..18], expected);
}

#[test]
fn sums_of_addresses_are_taken_in() {
    let data: Vec<u32> = (0..40).collect();
    check(
        "    v10 = const.s64 8
    v11 = const.s64 4
    v12 = const.s32 0
    v13 = const.mask 0x1
    v14 = wide.add v0, v10
    v15 = wide.add v14, v11
    v16 = wide.add v15, v11
    v17 = wide.add v16, v10
    v18 = ult v12, v1
    branch v18, block1, block2

block1:
    v20 = load.s32 v17 + 4
    store v14 + 0, v20 mask v13
    jump block3(v16)

block2:
    v21 = load.s32 v15 + 4
    store v14 + 4, v21 mask v13
    jump block3(v14)

block3(v30: s64):
    v31 = wide.lt v15, v30
    v32 = load.s32 v30 + 0
    v33 = load_row v17 + v12 if < v1
    v34 = const.v32 0
    v35 = load.s32 v15 + v12 * 4 + 4 if v12 < v1
    v36 = select v31, v32, v35
    store v16 + v12 * 4 + 100 if v12 < v1, v36 mask v13
    v37 = const.s32 1
    store v16 + v37 * 4 + 100 if v37 < v1, v33 mask v13",
        &data,
        &{
            let mut expected = data.clone();
            expected[2] = 7;
            expected[29] = 4;
            expected[30] = 6;
            expected
        },
    );
}
