//! The question of a test: a filter, a quantifier and a condition on registers and locations.

use std::sync::Arc;

use super::super::lex::shown;
use super::super::tokens::TokenKind;
use super::super::{Condition, Error, Quantifier, Question, QuestionKind, Term};
use super::DartagnanReader;
use crate::program::{Comparison, Register};

impl DartagnanReader<'_> {
    pub(super) fn at_question(&self) -> bool {
        let words = ["exists", "forall", "filter", "not", "locations"];
        match self.cursor.peek().kind {
            TokenKind::Name(name) => words.contains(&name) && !self.is_colon_after(),
            TokenKind::Sign("~") | TokenKind::End => true,
            _ => false,
        }
    }

    /// Whether the token after the next is `:`, as after a label, which may have the name of a question.
    pub(super) fn is_colon_after(&self) -> bool {
        self.cursor.tokens.get(self.cursor.at + 1).is_some_and(|token| token.kind == TokenKind::Sign(":"))
    }

    pub(super) fn questions(&mut self) -> Result<Vec<Question>, Error> {
        if self.cursor.takes_name("locations") {
            self.cursor.sign("[")?;
            while !self.cursor.takes("]") {
                let token = self.cursor.next();
                if token.kind == TokenKind::End {
                    return Err(token.error("`]` is expected here, not the end"));
                }
            }
        }
        let start = self.cursor.peek();
        if start.kind == TokenKind::End {
            return Err(start.error("exists, forall, ~exists or filter is expected here, not the end"));
        }
        let filter = self.cursor.takes_name("filter").then(|| self.condition(0)).transpose()?;
        self.cursor.takes(";");
        let negated = self.cursor.takes("~") || self.cursor.takes_name("not");
        let token = self.cursor.next();
        let (quantifier, condition) = match (negated, token.kind) {
            (false, TokenKind::End) if filter.is_some() => {
                self.cursor.at -= 1;
                (Quantifier::Exists, Condition::True)
            }
            (false, TokenKind::Name("exists")) => (Quantifier::Exists, self.condition(0)?),
            (true, TokenKind::Name("exists")) => (Quantifier::NotExists, self.condition(0)?),
            (false, TokenKind::Name("forall")) => (Quantifier::Forall, self.condition(0)?),
            _ => return Err(token.error(format!("exists or forall is expected here, not {}", token.shown()))),
        };
        let before = self.cursor.at.min(self.cursor.tokens.len()) - 1;
        let last = self.cursor.tokens[before.min(self.cursor.tokens.len() - 1)].end;
        self.cursor.takes(";");
        let end = self.cursor.next();
        if end.kind != TokenKind::End {
            return Err(end.error(format!("nothing may follow the condition, but {} does", end.shown())));
        }
        let text = self.cursor.text.get(start.start..last.max(start.start)).unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut numbers = Vec::new();
        let mut collect =
            |term: &Term| numbers.extend(if let Term::Constant(number) = term { Some(*number) } else { None });
        condition.terms(&mut collect);
        filter.iter().for_each(|filter| filter.terms(&mut collect));
        self.program.numbers = numbers;
        Ok(vec![Question { place: start.place, text, kind: QuestionKind::Final { quantifier, filter, condition } }])
    }

    /// `a \/ b`, where `/\` binds tighter.
    fn condition(&mut self, depth: u32) -> Result<Condition, Error> {
        let mut left = self.conjunction(depth)?;
        while self.cursor.takes("\\/") {
            left = Condition::Or(Box::new(left), Box::new(self.conjunction(depth)?));
        }
        Ok(left)
    }

    fn conjunction(&mut self, depth: u32) -> Result<Condition, Error> {
        let mut left = self.literal(depth)?;
        while self.cursor.takes("/\\") {
            left = Condition::And(Box::new(left), Box::new(self.literal(depth)?));
        }
        Ok(left)
    }

    fn literal(&mut self, depth: u32) -> Result<Condition, Error> {
        const MAX_DEPTH: u32 = 64;
        if depth > MAX_DEPTH {
            return Err(self.cursor.peek().error(format!("the condition nests deeper than the bound of {MAX_DEPTH}")));
        }
        if self.cursor.takes("~") || self.cursor.takes_name("not") {
            return Ok(Condition::Not(Box::new(self.literal(depth + 1)?)));
        }
        if self.cursor.takes("(") {
            let inner = self.condition(depth + 1)?;
            self.cursor.sign(")")?;
            return Ok(inner);
        }
        let left = self.term()?;
        let token = self.cursor.next();
        let comparison = match token.kind {
            TokenKind::Sign("==" | "=") => Comparison::Equal,
            TokenKind::Sign("!=") => Comparison::NotEqual,
            TokenKind::Sign("<") => Comparison::Less,
            TokenKind::Sign(">") => Comparison::Greater,
            TokenKind::Sign("<=") => Comparison::LessEqual,
            TokenKind::Sign(">=") => Comparison::GreaterEqual,
            _ => return Err(token.error(format!("a comparison is expected here, not {}", token.shown()))),
        };
        Ok(Condition::Compare(comparison, left, self.term()?))
    }

    fn term(&mut self) -> Result<Term, Error> {
        if self.at_register() {
            let (name, place) = self.thread_name()?;
            let thread = self.thread(&name, place)?;
            self.cursor.sign(":")?;
            let (register, token) = self.cursor.name("a register")?;
            let register = Register(Arc::from(register));
            self.is_set(thread, &register, token.place)?;
            return Ok(Term::Register(thread, register));
        }
        if matches!(self.cursor.peek().kind, TokenKind::Number(_) | TokenKind::Sign("-")) {
            return Ok(Term::Constant(self.cursor.number("a number")?));
        }
        let bracket = self.cursor.takes("[");
        let (name, token) = self.cursor.name("a number, a register or a location")?;
        let object = self.names.object(name);
        let object = object.ok_or_else(|| token.error(format!("there is no location `{}`", shown(name))))?;
        if bracket {
            self.cursor.sign("]")?;
        }
        Ok(Term::Location(object))
    }
}
