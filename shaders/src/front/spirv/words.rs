//! Parses words to instructions: first checks the word counts, then `rspirv`'s parser checks every instruction against
//! the grammar.
//!
//! The parser does not report word offsets, and trusts word counts when it reads strings, so the counts are checked
//! before it sees a word. It also cannot parse every `OpSpecConstantOp` (it expects each operand of the nested
//! instruction exactly once) and panics on some, so it gets an `OpUndef` in place of each. The translator parses those
//! itself, as well as instructions that the grammar does not have ([`mixed_dot`]).

use foldhash::{HashSet, HashSetExt};
use rspirv::binary::{Consumer, ParseAction, ParseState, Parser};
use rspirv::dr;
use spirv::Op;

use super::super::Error;
use super::scalar::Scalar;
use super::{mixed_dot, universal};

/// An id of the module.
pub(super) type Id = u32;

/// A result with an error inside an instruction; the loop over the instructions adds the position.
pub(super) type InstResult<T> = Result<T, String>;

/// Words of a module, at most: 16 MiB.
const MAX_WORDS: usize = 1 << 22;

/// Id bound, at most (SPIR-V, universal limits).
const MAX_BOUND: u32 = 1 << 22;

/// SPIR-V 1.6 is the newest version.
const MAX_MINOR_VERSION: u8 = 6;

const HEADER_WORDS: usize = 5;

/// One instruction of the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inst {
    /// Word offset of its first word.
    pub(super) word: u32,
    /// Opcode.
    pub(super) op: Op,
    /// Result type; 0 if there is none.
    pub(super) ty: Id,
    /// Result id; 0 if there is none.
    pub(super) id: Id,
    /// The accumulator's type if it is one of [`mixed_dot`]; then `op` is a stand-in.
    pub(super) mixed_dot: Option<Scalar>,
    /// Start of the operands after type and id.
    first: u32,
    /// Start of the next instruction.
    end: u32,
}

/// The words of a module, split into instructions.
#[derive(Debug)]
pub(super) struct Words {
    words: Box<[u32]>,
    /// Instructions in order.
    pub(super) insts: Vec<Inst>,
    /// Values that are 64-bit integers: switch literals for them take two words.
    wide: HashSet<Id>,
}

impl Words {
    /// Splits and checks the stream.
    pub(super) fn parse(words: &[u32]) -> Result<Self, Error> {
        let offsets = scan(words)?;
        let mut collector = Collector { words, offsets: &offsets, insts: Vec::with_capacity(offsets.len()) };
        let result = Parser::new(&grammar_stream(words, &offsets), &mut collector).parse();
        let insts = collector.insts;
        if let Err(state) = result {
            let word = offsets.get(insts.len()).map_or(0, |at| *at as usize);
            return Err(error(word, describe(&state, words[word])));
        }
        let mut this = Self { words: words.into(), insts, wide: HashSet::new() };
        this.check_ids()?;
        this.find_wide();
        universal::check(&this)?;
        Ok(this)
    }

    /// Version of SPIR-V: major and minor.
    pub(super) fn version(&self) -> (u8, u8) {
        let [_, minor, major, _] = self.words[1].to_le_bytes();
        (major, minor)
    }

    /// Generator's magic number.
    pub(super) fn generator(&self) -> u32 {
        self.words[2]
    }

    /// Operands after result type and result id.
    pub(super) fn operands(&self, inst: &Inst) -> &[u32] {
        &self.words[inst.first as usize..inst.end as usize]
    }

    fn find_wide(&mut self) {
        let is_type = |inst: &&Inst| inst.op == Op::TypeInt && self.operands(inst).first() == Some(&64);
        let types: HashSet<Id> = self.insts.iter().filter(is_type).map(|inst| inst.id).collect();
        if !types.is_empty() {
            self.wide = self.insts.iter().filter(|inst| types.contains(&inst.ty)).map(|inst| inst.id).collect();
        }
    }

    /// Words of a literal in an `OpSwitch` on a value.
    pub(super) fn literal_words(&self, selector: Id) -> usize {
        if self.wide.contains(&selector) { 2 } else { 1 }
    }

    /// Checks that result ids are within the bound and defined once.
    fn check_ids(&self) -> Result<(), Error> {
        let bound = self.words[3];
        let mut seen = HashSet::with_capacity(self.insts.len());
        for inst in &self.insts {
            // `OpTypeForwardPointer` and the like have no result; 0 stands for that, and is never a valid id.
            let has_id = inst.id != 0;
            if has_id && inst.id >= bound {
                return Err(error(inst.word as usize, format!("id %{} is not below the bound {bound}", inst.id)));
            }
            if has_id && !seen.insert(inst.id) {
                return Err(error(inst.word as usize, format!("id %{} is defined twice", inst.id)));
            }
        }
        Ok(())
    }
}

/// Operand `index` of an instruction's operands.
pub(super) fn operand(operands: &[u32], index: usize) -> InstResult<u32> {
    operands.get(index).copied().ok_or_else(|| format!("operand {index} is missing"))
}

/// A string at the start of `words`, and the words after it.
pub(super) fn string(words: &[u32]) -> InstResult<(String, &[u32])> {
    let (bytes, rest) = string_bytes(words)?;
    String::from_utf8(bytes).map(|text| (text, rest)).map_err(|_| "a string is not UTF-8".to_owned())
}

/// A string for human readers: invalid UTF-8 is replaced by U+FFFD.
pub(super) fn text(words: &[u32]) -> InstResult<String> {
    let (bytes, _) = string_bytes(words)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes of a string up to its terminator, and the words after it.
fn string_bytes(words: &[u32]) -> InstResult<(Vec<u8>, &[u32])> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
    let rest = words.get(bytes.len() / 4 + 1..).ok_or("a string has no end")?;
    Ok((bytes, rest))
}

/// Start of an instruction's string that is for human readers only; it may contain any bytes.
fn text_of(word: u32) -> Option<usize> {
    match Op::from_u32(word & 0xffff)? {
        Op::SourceContinued | Op::SourceExtension | Op::ModuleProcessed => Some(1),
        Op::Name | Op::String => Some(2),
        Op::MemberName => Some(3),
        Op::Source => Some(4),
        _ => None,
    }
}

/// Replaces each non-ASCII byte of a word by `?`.
fn in_ascii(word: u32) -> u32 {
    u32::from_le_bytes(word.to_le_bytes().map(|byte| if byte.is_ascii() { byte } else { b'?' }))
}

/// `OpName` of an opcode.
pub(super) fn op_name(op: Op) -> String {
    format!("Op{op:?}")
}

fn error(word: usize, message: impl Into<String>) -> Error {
    Error { message: message.into(), word: Some(word), line: None }
}

/// Word offset of each instruction; checks header and word counts.
fn scan(words: &[u32]) -> Result<Vec<u32>, Error> {
    match words.first() {
        Some(&spirv::MAGIC_NUMBER) => {}
        Some(&first) if first == spirv::MAGIC_NUMBER.swap_bytes() => {
            return Err(error(0, "the module is in the other byte order"));
        }
        _ => return Err(error(0, "not a SPIR-V module: the magic number is missing")),
    }
    if words.len() < HEADER_WORDS {
        return Err(error(words.len(), "the module ends within its header"));
    }
    let [zero, minor, major, top] = words[1].to_le_bytes();
    if (zero, top) != (0, 0) || major != 1 || minor > MAX_MINOR_VERSION {
        return Err(error(1, format!("SPIR-V version {major}.{minor} is not supported")));
    }
    if words.len() > MAX_WORDS {
        return Err(error(MAX_WORDS, format!("the module has more than {MAX_WORDS} words")));
    }
    if words[3] > MAX_BOUND {
        return Err(error(3, format!("the id bound {} is above {MAX_BOUND}", words[3])));
    }
    let mut offsets = Vec::new();
    let mut at = HEADER_WORDS;
    while at < words.len() {
        let count = (words[at] >> 16) as usize;
        if count == 0 {
            return Err(error(at, "an instruction has a word count of 0"));
        }
        if count > words.len() - at {
            return Err(error(at, format!("an instruction of {count} words runs beyond the end of the module")));
        }
        offsets.push(at as u32);
        at += count;
    }
    Ok(offsets)
}

fn is_spec_constant_op(words: &[u32], at: usize) -> bool {
    words[at] & 0xffff == Op::SpecConstantOp as u32 && words[at] >> 16 >= 4
}

/// The stream for the grammar check: instructions that it cannot parse are replaced by `OpUndef` with the same type and
/// id, unknown capabilities by those that they imply, and names are in ASCII.
fn grammar_stream(words: &[u32], offsets: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.len() * 4);
    let mut put = |words: &[u32]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    put(&words[..HEADER_WORDS]);
    for &at in offsets {
        let at = at as usize;
        let inst = &words[at..at + (words[at] >> 16) as usize];
        let declared = words.get(at + 1).filter(|_| words[at] == 2 << 16 | Op::Capability as u32);
        if let Some(declared) = declared.and_then(|&word| mixed_dot::capability(word)) {
            put(&[words[at], declared as u32]);
        } else if is_spec_constant_op(words, at) || mixed_dot::accumulator(words[at]).is_some() {
            put(&[3 << 16 | Op::Undef as u32, words[at + 1], words[at + 2]]);
        } else if let Some(first) = text_of(words[at]) {
            let (head, text) = inst.split_at(first.min(inst.len()));
            put(head);
            text.iter().for_each(|&word| put(&[in_ascii(word)]));
        } else {
            put(inst);
        }
    }
    bytes
}

/// Collects the parsed instructions.
struct Collector<'a> {
    words: &'a [u32],
    offsets: &'a [u32],
    insts: Vec<Inst>,
}

impl Consumer for Collector<'_> {
    fn initialize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn finalize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_header(&mut self, _: dr::ModuleHeader) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_instruction(&mut self, inst: dr::Instruction) -> ParseAction {
        let word = self.offsets[self.insts.len()];
        let first = word + 1 + u32::from(inst.result_type.is_some()) + u32::from(inst.result_id.is_some());
        let masked = is_spec_constant_op(self.words, word as usize);
        let mixed_dot = mixed_dot::accumulator(self.words[word as usize]);
        self.insts.push(Inst {
            word,
            op: match (masked, mixed_dot) {
                (true, _) => Op::SpecConstantOp,
                (_, Some(_)) => mixed_dot::STAND_IN,
                _ => inst.class.opcode,
            },
            mixed_dot,
            ty: inst.result_type.unwrap_or(0),
            id: inst.result_id.unwrap_or(0),
            first,
            end: word + (self.words[word as usize] >> 16),
        });
        ParseAction::Continue
    }
}

/// The parser's error for the instruction at `word`.
fn describe(state: &ParseState, word: u32) -> String {
    let opcode = word & 0xffff;
    match (state, Op::from_u32(opcode)) {
        (ParseState::OpcodeUnknown(..), _) => format!("unknown opcode {opcode}"),
        (ParseState::OperandExpected(..), Some(op)) => format!("{} has too few operands", op_name(op)),
        (ParseState::OperandExceeded(..), Some(op)) => format!("{} has too many operands", op_name(op)),
        (ParseState::OperandError(error), Some(op)) => format!("{}: bad operand: {error}", op_name(op)),
        (ParseState::TypeUnsupported(..), Some(op)) => format!("{}: a literal of an unsupported width", op_name(op)),
        (state, _) => state.to_string(),
    }
}
