//! Services of the host: `OpReadClockKHR` and `NonSemantic.DebugPrintf`.

use super::composite::Composite;
use super::scalar::Scalar;
use super::translate::{Translator, shared};
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult, operand, text};
use crate::host::{ComponentKind, MAX_MESSAGE_WORDS, Message, MessageOperand};
use crate::ir::{self, BuiltIn, InstData, Scope, Value};

impl Translator<'_> {
    /// `OpReadClockKHR`: 64 bits, as one integer or two words.
    pub(super) fn read_clock(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let scope = self.scope(operand(operands, 0)?)?;
        if !matches!(scope, Scope::Device | Scope::Subgroup) {
            return Err(format!("a clock of scope {scope:?} (VUID-StandaloneSpirv-OpReadClockKHR-04652)"));
        }
        let fits = matches!(
            self.types.get(inst.ty)?.ty,
            SpirvType::Scalar(Scalar::I64) | SpirvType::Vector { scalar: Scalar::I32, count: 2, .. }
        );
        if !fits {
            return Err("the result is neither an integer of 64 bits nor a vector of two words".into());
        }
        let low = self.builder.push_value(InstData::Clock { scope }, ir::Type::I32);
        let high = self.builder.push_value(InstData::HighWord { of: low }, ir::Type::I32);
        self.bind(inst.id, Composite { ty: inst.ty, values: shared([low, high]) });
        Ok(())
    }

    /// `DebugPrintf`. Since it is non-semantic, a message with an operand that cannot be printed is left out.
    pub(super) fn debug_printf(&mut self, operands: &[Id]) -> InstResult<()> {
        let (Some(&1), Some(&format)) = (operands.get(1), operands.get(2)) else { return Ok(()) };
        let Some(text) = self.text(format) else { return Ok(()) };
        // A long text costs time each time its function is inlined.
        self.spend(text.len() / 16)?;
        let ids = (0..3).map(|component| self.builtin(BuiltIn::GlobalInvocationId, component));
        let mut args: smallvec::SmallVec<[Value; 4]> = ids.collect();
        let mut message = Message { text, operands: Vec::new() };
        // Where the search for the next `%s` starts: texts that were put in have none.
        let mut rest = 0;
        for &id in &operands[3..] {
            if let Some(text) = self.text(id) {
                if let Some(at) = string_conversion(&message.text, rest) {
                    let text = text.replace('%', "%%");
                    message.text.replace_range(at..at + 2, &text);
                    rest = at + text.len();
                }
                self.spend(message.text.len() / 16)?;
                continue;
            }
            let value = self.value(id)?;
            let (scalar, count) = match self.types.get(value.ty)?.ty {
                SpirvType::Scalar(scalar) => (scalar, 1),
                SpirvType::Vector { scalar, count, .. } => (scalar, count),
                SpirvType::Pointer { .. } if value.values.len() == 2 => (Scalar::I64, 1),
                _ => return Ok(()),
            };
            let kind = match scalar {
                Scalar::Bool => ComponentKind::Bool,
                _ if scalar.is_int() => ComponentKind::Int,
                _ if scalar.is_float() => ComponentKind::Float,
                _ => return Ok(()),
            };
            message.operands.push(MessageOperand { kind, bits: scalar.bits(), count });
            for &value in &*value.values {
                args.push(match self.builder.ty(value) {
                    ir::Type::Bool => self.builder.pure(ir::Op::BoolToInt, &[value]),
                    ir::Type::F32 => self.builder.pure(ir::Op::FloatBits, &[value]),
                    ir::Type::I32 => value,
                    ir::Type::Buffer => return Ok(()),
                });
            }
        }
        if args.len() > MAX_MESSAGE_WORDS as usize {
            return Ok(());
        }
        let number = match self.messages.get(&message) {
            Some(&known) => known,
            None => {
                let messages = &mut self.builder.kernel().messages;
                let number = messages.len() as u32;
                messages.push(message.clone());
                self.messages.insert(message, number);
                number
            }
        };
        self.builder.push(InstData::Print { message: number, args });
        Ok(())
    }

    /// The text of an `OpString`.
    fn text(&self, id: Id) -> Option<String> {
        let inst = self.sections.strings.get(&id)?;
        text(self.sections.words.operands(inst)).ok()
    }
}

/// The byte where the next `%s` of a format starts, from `start` on. `%%` is a percent sign.
fn string_conversion(format: &str, start: usize) -> Option<usize> {
    let bytes = format.as_bytes();
    let mut at = start;
    while let Some(&[byte, next]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        match (byte, next) {
            (b'%', b's') => return Some(at),
            (b'%', b'%') => at += 2,
            _ => at += 1,
        }
    }
    None
}
