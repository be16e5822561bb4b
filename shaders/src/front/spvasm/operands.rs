//! Parses operands by the grammar: quantifiers, pairs, literals, and operands that depend on earlier ones.

use rspirv::grammar::{LogicalOperand, OperandKind, OperandQuantifier};

use super::lexer::{self, SpvasmToken};
use super::number::{self, NumberType};
use super::{Draft, TextAssembler, by_name, enums};
use crate::front::Error;

const LITERAL: NumberType = NumberType::Int { bits: 32, signed: false };

impl<'t> TextAssembler<'t> {
    /// Parses the operands of a list and appends their words.
    pub(super) fn operands(&mut self, list: &[LogicalOperand], draft: &mut Draft<'t>) -> Result<(), Error> {
        for operand in list {
            match operand.quantifier {
                OperandQuantifier::One => self.operand(operand.kind, draft)?,
                OperandQuantifier::ZeroOrOne if self.at_boundary() => {}
                OperandQuantifier::ZeroOrOne => self.operand(operand.kind, draft)?,
                OperandQuantifier::ZeroOrMore => {
                    while !self.at_boundary() {
                        self.operand(operand.kind, draft)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn operand(&mut self, kind: OperandKind, draft: &mut Draft<'t>) -> Result<(), Error> {
        use OperandKind as K;
        match kind {
            K::IdResult => self.result(draft),
            K::PairLiteralIntegerIdRef => {
                self.one(K::LiteralContextDependentNumber, draft)?;
                self.one(K::IdRef, draft)
            }
            K::PairIdRefLiteralInteger => {
                self.one(K::IdRef, draft)?;
                self.one(K::LiteralInteger, draft)
            }
            K::PairIdRefIdRef => {
                self.one(K::IdRef, draft)?;
                self.one(K::IdRef, draft)
            }
            _ => self.one(kind, draft),
        }
    }

    fn result(&mut self, draft: &mut Draft<'t>) -> Result<(), Error> {
        if let Some(result) = draft.result {
            draft.words.push(self.id(result)?);
        }
        Ok(())
    }

    /// One operand of one token, with the operands that its value requires.
    fn one(&mut self, kind: OperandKind, draft: &mut Draft<'t>) -> Result<(), Error> {
        use OperandKind as K;
        if self.at_boundary() {
            return Err(self.missing(kind));
        }
        let token = self.next("an operand")?;
        if let Some(raw) = token.text.strip_prefix('!') {
            draft.words.push(number::raw(raw).ok_or_else(|| token.error(format!("`{raw}` is not a word")))?);
            return Ok(());
        }
        match kind {
            K::IdResultType | K::IdRef | K::IdScope | K::IdMemorySemantics => self.reference(token, draft),
            K::LiteralInteger | K::LiteralFloat => number::encode(LITERAL, token, &mut draft.words),
            K::LiteralContextDependentNumber => self.typed_literal(token, draft),
            K::LiteralString => {
                let string = token.string().ok_or_else(|| token.error("expected a string in double quotes"))?;
                draft.words.extend(lexer::pack(&string));
                Ok(())
            }
            K::LiteralExtInstInteger => self.extended(token, draft),
            K::LiteralSpecConstantOpInteger => self.spec_constant_op(token, draft),
            _ => self.named(kind, token, draft),
        }
    }

    fn missing(&self, kind: OperandKind) -> Error {
        let message = format!("an operand is missing: {kind:?}");
        match self.rest {
            [next, ..] => next.error(message),
            [] => self.end.error(message),
        }
    }

    /// An id. The first one of an instruction determines the type of its literals: the result type of a constant, the
    /// selector of a switch.
    fn reference(&mut self, token: SpvasmToken<'t>, draft: &mut Draft<'t>) -> Result<(), Error> {
        let id = self.id(token)?;
        if draft.words.len() == 1 {
            let ty = self.types.get(&id).copied().unwrap_or(id);
            draft.literal = self.numbers.get(&ty).copied();
        }
        draft.words.push(id);
        Ok(())
    }

    fn typed_literal(&mut self, token: SpvasmToken<'t>, draft: &mut Draft<'t>) -> Result<(), Error> {
        let ty = draft.literal.ok_or_else(|| token.error("the literal's type is neither integer nor float"))?;
        number::encode(ty, token, &mut draft.words)
    }

    /// An extended instruction by name (in the set that the previous operand names) or number.
    fn extended(&mut self, token: SpvasmToken<'t>, draft: &mut Draft<'t>) -> Result<(), Error> {
        let set = draft.words.last().and_then(|id| self.sets.get(id));
        let set = set.ok_or_else(|| token.error("the set was not imported by OpExtInstImport"))?;
        let named = set.and_then(|table| table.iter().find(|inst| inst.opname == token.text));
        let number = match named {
            Some(inst) => inst.opcode.into(),
            None => number::raw(token.text)
                .ok_or_else(|| token.error(format!("the set has no instruction {}", token.text)))?,
        };
        draft.words.push(number);
        Ok(())
    }

    /// `OpSpecConstantOp %type IAdd %a %b`: the operation's own operands follow.
    fn spec_constant_op(&mut self, token: SpvasmToken<'t>, draft: &mut Draft<'t>) -> Result<(), Error> {
        let grammar =
            by_name(token.text).ok_or_else(|| token.error(format!("no instruction is called Op{}", token.text)))?;
        draft.words.push(grammar.opcode as u32);
        let own = grammar.operands.iter();
        let own: Vec<_> =
            own.filter(|o| !matches!(o.kind, OperandKind::IdResultType | OperandKind::IdResult)).cloned().collect();
        self.operands(&own, draft)
    }

    fn named(&mut self, kind: OperandKind, token: SpvasmToken<'t>, draft: &mut Draft<'t>) -> Result<(), Error> {
        let value = enums::value(kind, token.text)
            .ok_or_else(|| token.error(format!("operands of kind {kind:?} are not supported")))?;
        let (word, operands) =
            value.ok_or_else(|| token.error(format!("`{}` is not a value of {kind:?}", token.text)))?;
        draft.words.push(word);
        self.operands(&operands, draft)
    }
}
