//! Elements of two to four words at the ends of buffers.

use super::{engines, head, run};

const INDICES: [u32; 9] = [0, 1, 3, 4, 5, 19, 20, 0x3fff_ffff, 0xffff_fff9];
const MASKS: [u32; 4] = [0xffff, 0, 0x8001, 0x3c5a];

fn limits(words: usize) -> [Vec<u32>; 3] {
    [vec![20; words], (0..words as u32).map(|word| 20 - word).collect(), vec![0; words]]
}

/// Constants or loaded words.
fn operands(index: u32, limits: &[u32], constant: bool) -> String {
    let mut text = "    v8 = const.s32 0\n".to_owned();
    for (place, value) in [index].iter().chain(limits).enumerate() {
        text += &match constant {
            true => format!("    v{} = const.s32 {value:#x}\n", 10 + place),
            false => format!("    v{} = load.s32 v4 + v8 * 4 + {} if v8 < v5\n", 10 + place, place * 4),
        };
    }
    text
}

fn list(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("v{number}")).collect::<Vec<_>>().join(", ")
}

/// Hands every combination to `each`: words, index, limits, whether they are constants.
fn combinations(mut each: impl FnMut(usize, u32, &[u32], bool)) {
    if engines().is_empty() {
        return;
    }
    for words in 2..=4 {
        for index in INDICES {
            for limits in limits(words) {
                [false, true].into_iter().for_each(|constant| each(words, index, &limits, constant));
            }
        }
    }
}

#[test]
fn words_of_elements_are_loaded() {
    combinations(|words, index, limits, constant| {
        let data: Vec<u32> = (1000..1000 + 20 * words as u32).collect();
        let mut text = head(3) + &operands(index, limits, constant);
        text += &format!(
            "    {} = load_elements v0 + v10 if < [{}]\n    v50 = const.mask 0xffff\n",
            list(30, words),
            list(11, words)
        );
        for word in 0..words {
            text += &format!(
                "    v{k} = const.s32 {}\n    store_row v2 + v{k} if < v3, v{} mask v50\n",
                word * 16,
                30 + word,
                k = 60 + word
            );
        }
        text += "    return\n";
        let arguments: Vec<u32> = [index].into_iter().chain(limits.iter().copied()).collect();
        let result = run(&text, &[&data, &vec![7; 16 * words], &arguments]).swap_remove(1);
        for word in 0..words {
            for lane in 0..16 {
                let element = index.wrapping_add(lane as u32);
                let expected = if element < limits[word] { data[element as usize * words + word] } else { 0 };
                assert_eq!(result[word * 16 + lane], expected, "word {word} of {words}, lane {lane}\n{text}");
            }
        }
    });
}

#[test]
fn words_of_elements_are_stored() {
    for mask in MASKS {
        for known in [true, false] {
            combinations(|words, index, limits, constant| {
                let data: Vec<u32> = (1000..1000 + 20 * words as u32).collect();
                let mut text = head(3) + &operands(index, limits, constant);
                for word in 0..words {
                    let lanes: Vec<String> = (0..16).map(|lane| (word * 16 + lane).to_string()).collect();
                    text += &format!("    v{} = lanes [{}]\n", 30 + word, lanes.join(", "));
                }
                text += &match known {
                    true => format!("    v50 = const.mask {mask:#x}\n"),
                    false => format!(
                        "    v51 = const.s32 {mask:#x}\n    v52 = splat v51\n    v53 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n    v54 = lshr v52, v53\n    v55 = const.v32 1\n    v56 = and v54, v55\n    v50 = ieq v56, v55\n"
                    ),
                };
                text += &format!(
                    "    store_elements v0 + v10 if < [{}], [{}] mask v50\n    return\n",
                    list(11, words),
                    list(30, words)
                );
                let arguments: Vec<u32> = [index].into_iter().chain(limits.iter().copied()).collect();
                let result = run(&text, &[&data, &[], &arguments]).swap_remove(0);
                let mut expected = data;
                for lane in (0..16u32).filter(|lane| mask >> lane & 1 != 0) {
                    let element = index.wrapping_add(lane);
                    for word in (0..words).filter(|&word| element < limits[word]) {
                        expected[element as usize * words + word] = word as u32 * 16 + lane;
                    }
                }
                assert_eq!(result, expected, "{text}");
            });
        }
    }
}
