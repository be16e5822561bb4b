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

/// Numbers of first words: all in bounds, some not, some from which the sum wraps.
const FIRST: [[u32; 16]; 3] = [
    [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 1, 5, 9, 13, 17, 36],
    [39, 38, 37, 36, 35, 40, 41, 0x3fff_ffff, 0x8000_0000, 0, 7, 7, 7, 0xffff_ffff, 0xffff_fffe, 0xffff_fffc],
    [0xffff_ffff; 16],
];

#[test]
fn words_of_elements_anywhere_are_gathered() {
    if engines().is_empty() {
        return;
    }
    let data: Vec<u32> = (1000..1040).collect();
    for count in [2, 4] {
        for first in FIRST {
            for masks in [[0xffff; 4], [0; 4], [0x3c5a; 4], [0x0010; 4], [0x00ff, 0xffff, 0x0ff0, 0xf00f], [0, 1, 0, 3]]
            {
                // Whether words beyond the end are left out, word by word, or those of all lanes with one of them.
                for apart in [true, false] {
                    let inside = |lane: usize, word: usize| {
                        let words = if apart { word..word + 1 } else { 0..count };
                        words.into_iter().all(|word| first[lane].wrapping_add(word as u32) < 40)
                    };
                    let on = |lane: usize, word: usize| masks[word] >> lane & 1 != 0 && inside(lane, word);
                    let mut text = head(3) + "    v8 = const.s32 0\n    v9 = load_row v4 + v8 if < v5\n";
                    for word in 0..count {
                        let bits: u32 = (0..16).map(|lane| u32::from(on(lane, word)) << lane).sum();
                        text += &format!("    v{} = const.mask {bits:#x}\n", 10 + word);
                    }
                    text += &format!(
                        "    {} = gather_elements v0 + v9 masks [{}]\n    v50 = const.mask 0xffff\n",
                        list(30, count),
                        list(10, count)
                    );
                    for word in 0..count {
                        text += &format!(
                            "    v{k} = const.s32 {}\n    store_row v2 + v{k} if < v3, v{} mask v50\n",
                            word * 16,
                            30 + word,
                            k = 60 + word
                        );
                    }
                    text += "    return\n";
                    let result = run(&text, &[&data, &vec![7; 16 * count], &first]).swap_remove(1);
                    for word in 0..count {
                        for lane in 0..16 {
                            let number = first[lane].wrapping_add(word as u32);
                            let expected = if on(lane, word) { data[number as usize] } else { 0 };
                            assert_eq!(
                                result[word * 16 + lane],
                                expected,
                                "word {word} of {count}, lane {lane}\n{text}"
                            );
                        }
                    }
                }
            }
        }
    }
}
