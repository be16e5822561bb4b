//! Mutants: each is made from a module or a text and a seed, reproducibly.

/// A small generator (SplitMix64): the same numbers on every machine and with every version of any crate.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.bits() as usize % bound.max(1)
    }

    /// An element of a list that is not empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Boundary values: limits, signs, sizes.
const WORDS: [u32; 14] = [0, 1, 2, 3, 4, 16, 31, 32, 255, 65_535, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

/// A mutant of a SPIR-V module, with one to three changes.
pub fn words(module: &[u32], seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    let mut words = module.to_vec();
    for _ in 0..=rng.below(3) {
        // Most large changes are rejected by the first check; small ones get further.
        if rng.below(4) == 0 { change(&mut words, &mut rng) } else { adjust(&mut words, &mut rng) }
    }
    words
}

/// A change that keeps the shape of the module: another constant, layout, operation, operand or branch target.
fn adjust(words: &mut [u32], rng: &mut Rng) {
    const CONSTANT: u32 = 43;
    const DECORATE: u32 = 71;
    const MEMBER_DECORATE: u32 = 72;
    const FUNCTION: u32 = 54;
    const PHI: u32 = 245;
    const LABEL: u32 = 248;
    const RETURN_VALUE: u32 = 254;
    let instructions = instructions(words);
    let opcode = |at: usize| words[at] & 0xffff;
    let wanted = rng.below(6);
    let is_wanted = |(at, length): &(usize, usize)| match wanted {
        0 => opcode(*at) == CONSTANT,
        1 => matches!(opcode(*at), DECORATE | MEMBER_DECORATE) && *length > 3,
        2 => (PHI..=RETURN_VALUE).contains(&opcode(*at)) && *length > 1,
        _ => (FUNCTION..PHI).contains(&opcode(*at)) && *length > 3,
    };
    let list: Vec<_> = instructions.iter().filter(|instruction| is_wanted(instruction)).copied().collect();
    if list.is_empty() {
        return;
    }
    let (at, length) = rng.pick(&list);
    let alike: Vec<_> = list.iter().filter(|(_, other)| *other == length).map(|(other, _)| *other).collect();
    let other = rng.pick(&alike);
    let labels = instructions.iter().filter(|(at, length)| opcode(*at) == LABEL && *length == 2);
    let labels: Vec<_> = labels.map(|(at, _)| words[at + 1]).collect();
    let operand = 3 + rng.below(length.saturating_sub(3));
    match wanted {
        0 | 1 if rng.below(2) == 0 => words[at + length - 1] = rng.pick(&WORDS),
        0 | 1 => words[at + length - 1] = rng.bits() as u32 % 100,
        2 if !labels.is_empty() => words[at + 1 + rng.below(length - 1)] = rng.pick(&labels),
        2 => {}
        3 => words[at] = words[other],
        4 => words[at + operand] = words[other + operand],
        _ => {
            let same_type: Vec<_> = list.iter().filter(|(other, _)| words[other + 1] == words[at + 1]).collect();
            words[at + operand] = words[rng.pick(&same_type).0 + 2];
        }
    }
}

fn change(words: &mut Vec<u32>, rng: &mut Rng) {
    let instructions = instructions(words);
    if instructions.is_empty() {
        return words.push(rng.bits() as u32);
    }
    let (at, length) = rng.pick(&instructions);
    let operand = at + 1 + rng.below(length - 1);
    let operand = if length > 1 { operand } else { at };
    match rng.below(16) {
        0 => {
            let anywhere = rng.below(words.len());
            words[anywhere] ^= 1 << rng.below(32);
        }
        1 => words[operand] ^= 1 << rng.below(32),
        2 => words[operand] = rng.pick(&WORDS),
        // Probably an id: the bound is the fourth word.
        3..=5 => words[operand] = rng.below(words[3].min(1 << 16) as usize) as u32,
        6 => words[operand] = words[operand].wrapping_add(rng.pick(&[1, u32::MAX])),
        7 => words[at] = words[at] & 0xffff_0000 | words[rng.pick(&instructions).0] & 0xffff,
        8 => words[at] = words[at] & 0xffff_0000 | rng.below(420) as u32,
        9 => words[at] = words[at].wrapping_add(rng.pick(&[1 << 16, 0xffff_0000])),
        10 => words.truncate(rng.below(words.len() + 1)),
        11 => drop(words.drain(at..at + length)),
        12 => {
            let copy = words[at..at + length].to_vec();
            let to = rng.pick(&instructions).0;
            words.splice(to..to, copy);
        }
        13 => {
            let copy: Vec<u32> = words.drain(at..at + length).collect();
            let to = at.saturating_sub(rng.below(40)).max(5).min(words.len());
            let to = instructions.iter().map(|(start, _)| *start).rfind(|start| *start <= to).unwrap_or(to);
            words.splice(to..to, copy);
        }
        14 => {
            let (other, others) = rng.pick(&instructions);
            words.swap(operand, other + rng.below(others));
        }
        _ => {
            let to = operand.min(words.len());
            words.insert(to, rng.pick(&WORDS));
            words[at] = words[at].wrapping_add(1 << 16);
        }
    }
}

/// Start and length of each instruction, as far as the lengths are consistent.
fn instructions(words: &[u32]) -> Vec<(usize, usize)> {
    let mut at = 5;
    let mut list = Vec::new();
    while let Some(word) = words.get(at) {
        let length = (word >> 16) as usize;
        if length == 0 || at + length > words.len() {
            break;
        }
        list.push((at, length));
        at += length;
    }
    list
}

/// Tokens that a text mutant may gain.
const TOKENS: [&str; 30] = [
    "0",
    "1u",
    "4294967295u",
    "-2147483648",
    "1e38f",
    "0.0",
    "f32",
    "vec3<f32>",
    "array<u32, 4>",
    "ptr<function, u32>",
    "&",
    "*",
    "-",
    "/",
    "%",
    "<<",
    "(",
    ")",
    "{",
    "}",
    ";",
    "loop { }",
    "break;",
    "continue;",
    "return;",
    "if true { }",
    "workgroupBarrier();",
    "[0]",
    ".x",
    "@id(0) override",
];

/// A mutant of a WGSL text: one to three tokens are deleted, doubled, moved, replaced or inserted.
pub fn text(source: &str, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut tokens: Vec<&str> = tokens(source);
    for _ in 0..=rng.below(3) {
        let (at, other) = (rng.below(tokens.len()), rng.below(tokens.len()));
        match rng.below(6) {
            _ if tokens.is_empty() => tokens.push(rng.pick(&TOKENS)),
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[other]),
            2 => tokens.swap(at, other),
            3 => tokens[at] = rng.pick(&TOKENS),
            4 => tokens.insert(at, rng.pick(&TOKENS)),
            _ => tokens[at] = tokens[other],
        }
    }
    tokens.concat()
}

/// Words, white space and single signs, without comments.
fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in source.split_inclusive('\n').filter(|line| !line.starts_with("//")) {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let same = |c: char| c.is_alphanumeric() || c == '_';
            let length = match first {
                c if same(c) => rest.find(|c| !same(c)).unwrap_or(rest.len()),
                c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            tokens.push(token);
            rest = after;
        }
    }
    tokens
}
