//! Elements at equal distances, of words or sub-words, whole or in part, in segments or not: random ones at random
//! places, for some of the lanes, against what the documentation says about each byte.

use proptest::prelude::*;

use super::{engines, head, run};

/// Bytes of the buffer, and where number 0 is at most.
const BYTES: u32 = 8192;
const MAX_BASE: u32 = 80;

#[derive(Clone, Debug)]
struct Case {
    width: u32,
    count: u32,
    /// From lane to lane: bytes, or words (or parts).
    apart: u32,
    by_words: bool,
    segments: Option<(u32, u32)>,
    base: u32,
    index: u32,
    limits: Vec<u32>,
    mask: u32,
    /// Whether numbers are constants, and the mask.
    known: [bool; 2],
}

impl Case {
    fn part(&self) -> &'static str {
        match self.width {
            1 => ".u8",
            2 => ".u16",
            _ => "",
        }
    }

    /// Where a lane's word is, if it is in bounds.
    fn place(&self, lane: u32, word: u32) -> Option<u32> {
        let (lanes, step) = self.segments.unwrap_or((16, 0));
        let segment = (lane / lanes).wrapping_mul(step);
        let (number, bytes) = if self.by_words {
            let number = self.index.wrapping_add(segment).wrapping_add(lane % lanes * self.apart).wrapping_add(word);
            (number, number.wrapping_mul(self.width))
        } else {
            let number = self.index.wrapping_add(segment).wrapping_add(lane % lanes);
            (number, number.wrapping_mul(self.apart).wrapping_add(word * self.width))
        };
        (number < self.limits[word as usize]).then(|| self.base + bytes)
    }

    /// `v0 + v10 segments 8 v11 * 16 if < [v12, v13]`, and what defines it.
    fn elements(&self) -> (String, String) {
        let numbers = [self.index, self.segments.map_or(0, |segments| segments.1)];
        let mut text = format!("    v8 = const.s32 0\n    v9 = const.s64 {}\n    v7 = wide.add v0, v9\n", self.base);
        for (at, value) in numbers.iter().chain(&self.limits).enumerate() {
            text += &match self.known[0] {
                true => format!("    v{} = const.s32 {value:#x}\n", 10 + at),
                false => format!("    v{} = load.s32 v4 + v8 * 4 + {} if v8 < v5\n", 10 + at, at * 4),
            };
        }
        let segments = self.segments.map_or(String::new(), |(lanes, _)| format!(" segments {lanes} v11"));
        let apart = if self.by_words { format!(" by {}", self.apart) } else { format!(" * {}", self.apart) };
        (text, format!("v7 + v10{segments}{apart} if < [{}]", list(12, self.count)))
    }

    fn arguments(&self) -> Vec<u32> {
        let step = self.segments.map_or(0, |segments| segments.1);
        [self.index, step].into_iter().chain(self.limits.iter().copied()).collect()
    }
}

fn list(first: u32, count: u32) -> String {
    (first..first + count).map(|number| format!("v{number}")).collect::<Vec<_>>().join(", ")
}

/// Stores have any distance; loads of words have whole elements, or four words.
fn cases(load: bool) -> impl Strategy<Value = Case> {
    let width = prop::sample::select(vec![1, 2, 4, 4]);
    let shape = (width, 1..=4_u32, any::<bool>(), prop::option::of((prop::sample::select(vec![4, 8]), 0..4_u32)));
    let shape = shape.prop_flat_map(move |(width, count, by_words, segments)| {
        let words = width == 4;
        let most = if words { 20 } else { 8 / width };
        let least = if words && load && segments.is_none() { count.max(2) } else { count };
        let apart = if words && load && count != 4 { least..=least } else { least..=most.max(least) };
        (Just((width, count, by_words, segments.filter(|_| words))), apart, any::<[u8; 4]>())
    });
    let places = (0..MAX_BASE, 0..64_u32, any::<u32>(), 0..24_u32);
    let mask = prop_oneof![Just(0xffff), Just(0xffff), Just(0x7fff), 0..0x1_0000_u32];
    (shape, places, mask, any::<[bool; 2]>()).prop_map(move |(shape, (base, near, any, less), mask, known)| {
        let ((width, count, by_words, segments), mut apart, choices) = shape;
        let mut count = count;
        if apart == 1 && segments.is_none() {
            (apart, count) = (2, if load && width == 4 { 2 } else { 1 });
        }
        if load && width == 4 && count < 4 {
            count = apart;
        }
        let unit = if by_words { width } else { apart * width };
        let most = (BYTES - MAX_BASE - 4 * width) / unit;
        let limit = [most, most, 100.min(most), 17][usize::from(choices[0] % 4)].min(most);
        let limits = (0..count).map(|word| limit - if choices[1] % 3 == 0 { word } else { 0 }).collect();
        let lanes = segments.map_or(16, |segments| segments.0);
        let reach = if by_words { apart * lanes } else { lanes };
        let segments = segments
            .map(|(lanes, kind)| (lanes, [reach, reach + near, reach.wrapping_neg(), 3 * reach][kind as usize]));
        let index = match choices[2] % 4 {
            0 => near,
            1 => limit.saturating_sub(reach + near),
            2 => limit.wrapping_sub(less),
            _ if choices[3] % 4 == 0 => any,
            _ => near.wrapping_neg(),
        };
        let apart = if by_words { apart } else { apart * width };
        let base = if width == 4 { base / 4 * 4 } else { base };
        Case { width, count, apart, by_words, segments, base, index, limits, mask, known }
    })
}

fn memory() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 7 + at / 256 * 13 + 1) as u8).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn check_load(case: &Case) {
    let (definitions, elements) = case.elements();
    let mut text = head(3) + &definitions;
    text += &format!(
        "    {} = load_elements{} {elements}\n    v50 = const.mask 0xffff\n",
        list(30, case.count),
        case.part()
    );
    for word in 0..case.count {
        text += &format!(
            "    v{k} = const.s32 {}\n    store_row v2 + v{k} if < v3, v{} mask v50\n",
            word * 16,
            30 + word,
            k = 60 + word
        );
    }
    text += "    return\n";
    let memory = memory();
    let result = run(&text, &[&words(&memory), &vec![7; 64], &case.arguments()]).swap_remove(1);
    for word in 0..case.count {
        for lane in 0..16 {
            let bytes = case.place(lane, word).map(|at| &memory[at as usize..(at + case.width) as usize]);
            let expected = bytes.into_iter().flatten().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            assert_eq!(result[(word * 16 + lane) as usize], expected, "word {word}, lane {lane}\n{case:?}\n{text}");
        }
    }
}

fn check_store(case: &Case) {
    let (definitions, elements) = case.elements();
    let mut text = head(3) + &definitions;
    let value = |word: u32, lane: u32| 0x8182_8384_u32.wrapping_add((word * 16 + lane) * 0x0101_0101);
    for word in 0..case.count {
        let lanes: Vec<String> = (0..16).map(|lane| format!("{:#x}", value(word, lane))).collect();
        text += &format!("    v{} = lanes [{}]\n", 30 + word, lanes.join(", "));
    }
    let mask = case.mask;
    text += &match case.known[1] {
        true => format!("    v50 = const.mask {mask:#x}\n"),
        false => format!(
            "    v51 = const.s32 {mask:#x}\n    v52 = splat v51\n    v53 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n    v54 = lshr v52, v53\n    v55 = const.v32 1\n    v56 = and v54, v55\n    v50 = ieq v56, v55\n"
        ),
    };
    text += &format!("    store_elements{} {elements}, [{}] mask v50\n    return\n", case.part(), list(30, case.count));
    let mut memory = memory();
    let result = run(&text, &[&words(&memory), &[], &case.arguments()]).swap_remove(0);
    for lane in (0..16).filter(|lane| mask >> lane & 1 != 0) {
        for word in 0..case.count {
            if let Some(at) = case.place(lane, word) {
                let bytes = value(word, lane).to_le_bytes();
                memory[at as usize..(at + case.width) as usize].copy_from_slice(&bytes[..case.width as usize]);
            }
        }
    }
    assert_eq!(result, words(&memory), "{case:?}\n{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn elements_are_loaded(case in cases(true)) {
        if !engines().is_empty() {
            check_load(&case);
        }
    }

    #[test]
    fn elements_are_stored(case in cases(false)) {
        if !engines().is_empty() {
            check_store(&case);
        }
    }
}
