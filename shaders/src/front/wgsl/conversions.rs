//! Fixes conversions to wider integers in the words that naga writes.
//!
//! A conversion to a wider integer preserves the value: it extends by the signedness of its operand. naga chooses the
//! instruction by the signedness of the result instead, so that `i64(3000000000u)` would be negative at run time, but
//! not if evaluated at compile time.

use std::collections::HashMap;

use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind};
use spirv::Op;

/// An integer type, or a vector of integers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Integers {
    bits: u32,
    signed: bool,
    /// 1 for a scalar.
    lanes: u32,
}

/// Fixes the conversions of a whole module that naga wrote, so that they extend by the signedness of their operand.
/// Other words stay as they are.
pub fn mended(words: Vec<u32>) -> Vec<u32> {
    let is_conversion = |word: &u32| [Op::SConvert, Op::UConvert].iter().any(|op| *word == 4 << 16 | *op as u32);
    if !words.iter().any(is_conversion) {
        return words;
    }
    let mut pass = ConversionPass { next: words[3], ..ConversionPass::default() };
    let (mut body, mut at) = (Vec::with_capacity(words.len() + 64), HEADER);
    let mut functions = None;
    while let Some(inst) = words.get(at).and_then(|word| words.get(at..at + (word >> 16).max(1) as usize)) {
        if inst[0] & 0xffff == Op::Function as u32 {
            functions.get_or_insert(HEADER + body.len());
        }
        pass.note(inst);
        pass.write(inst, &mut body);
        at += inst.len();
    }
    let mut all = words[..HEADER].to_vec();
    all[3] = pass.next;
    all.extend(body);
    let functions = functions.unwrap_or(all.len());
    all.splice(functions..functions, pass.declared);
    all
}

const HEADER: usize = 5;

#[derive(Default)]
struct ConversionPass {
    types: HashMap<u32, Integers>,
    ids: HashMap<Integers, u32>,
    /// The type of each integer.
    values: HashMap<u32, u32>,
    /// New types.
    declared: Vec<u32>,
    next: u32,
}

impl ConversionPass {
    fn note(&mut self, inst: &[u32]) {
        let opcode = inst[0] & 0xffff;
        let found = match inst[1..] {
            [_, bits, signed] if opcode == Op::TypeInt as u32 => Some(Integers { bits, signed: signed != 0, lanes: 1 }),
            [_, element, lanes] if opcode == Op::TypeVector as u32 => {
                self.types.get(&element).map(|integer| Integers { lanes, ..*integer })
            }
            _ => None,
        };
        if let Some(integers) = found {
            self.types.insert(inst[1], integers);
            self.ids.insert(integers, inst[1]);
        } else if let [_, ty, id, ..] = *inst
            && self.types.contains_key(&ty)
            && has_result_type(opcode)
        {
            self.values.insert(id, ty);
        }
    }

    fn write(&mut self, inst: &[u32], to: &mut Vec<u32>) {
        let Some((from, becomes)) = self.widened(inst) else { return to.extend(inst) };
        let &[_, ty, id, operand] = inst else { return to.extend(inst) };
        let (sign, zero) = (4 << 16 | Op::SConvert as u32, 4 << 16 | Op::UConvert as u32);
        match (from.signed, becomes.signed) {
            (true, _) => to.extend([sign, ty, id, operand]),
            (false, false) => to.extend([zero, ty, id, operand]),
            // The result of `OpUConvert` must be unsigned.
            (false, true) => {
                let unsigned = self.type_of(Integers { signed: false, ..becomes });
                let wide = self.fresh();
                to.extend([zero, unsigned, wide, operand, 4 << 16 | Op::Bitcast as u32, ty, id, wide]);
            }
        }
    }

    /// Types of operand and result, if the instruction widens integers.
    fn widened(&self, inst: &[u32]) -> Option<(Integers, Integers)> {
        let &[word, ty, _, operand] = inst else { return None };
        if ![Op::SConvert as u32, Op::UConvert as u32].contains(&(word & 0xffff)) {
            return None;
        }
        let (from, becomes) = (self.types.get(self.values.get(&operand)?)?, self.types.get(&ty)?);
        (from.bits < becomes.bits).then_some((*from, *becomes))
    }

    fn type_of(&mut self, integers: Integers) -> u32 {
        if let Some(&id) = self.ids.get(&integers) {
            return id;
        }
        let words = match integers.lanes {
            1 => [Op::TypeInt as u32, integers.bits, integers.signed.into()],
            lanes => [Op::TypeVector as u32, self.type_of(Integers { lanes: 1, ..integers }), lanes],
        };
        let id = self.fresh();
        self.declared.extend([4 << 16 | words[0], id, words[1], words[2]]);
        self.ids.insert(integers, id);
        id
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

fn has_result_type(opcode: u32) -> bool {
    let inst = INSTRUCTION_TABLE.lookup_opcode(opcode);
    inst.and_then(|inst| inst.operands.first()).is_some_and(|operand| operand.kind == OperandKind::IdResultType)
}
