//! Measures the memory and time that naga would need for a text, before it sees it.
//!
//! naga evaluates constants where it reads them, and copies a module constant, part by part, wherever a function uses a
//! component of it: a text of one kilobyte can name 2^26 parts. And for each new expression that it types, it visits
//! all previous expressions of the function, so time grows with the square of a function's length. So this walks the
//! text once: `expression` adds up the copies, `body` tracks the names in scope of a function's statements, and the
//! sums are compared with limits that keep naga's memory below a quarter of a gibibyte and its time at some seconds.

mod body;
mod declarations;
mod expression;
mod term;
mod tokens;

use std::collections::HashMap;

use term::{Struct, Term};
use tokens::Tokens;

/// Copied parts of constants in a text, at most.
const MAX_PARTS: u64 = 1 << 21;
/// Sum over all typed expressions of the number of expressions that naga visits for it, at most.
///
/// A visit takes 1.7 ns, so that this is some seconds, which a `switch` with as many cases as SPIR-V allows needs.
const MAX_WORK: u64 = 3 << 30;

/// The number of copied parts of constants; or the error for a rejected text, and the byte offset where it was found.
pub(super) fn check(source: &str) -> Result<u64, (String, usize)> {
    let mut measure = Measure::new(source);
    let declarations = measure.declarations();
    measure.module(&declarations);
    // The expressions of the module scope are no function's.
    measure.settle(0);
    for function in declarations.iter().filter(|declaration| declaration.is_function) {
        measure.body(function);
        measure.settle(function.start);
    }
    measure.refused.map_or(Ok(measure.parts), Err)
}

struct Measure<'a> {
    tokens: Tokens<'a>,
    /// The next token.
    at: usize,
    depth: usize,
    structs: Vec<Struct<'a>>,
    module: HashMap<&'a str, Term>,
    scopes: body::Scopes<'a>,
    /// Copied parts of the whole text.
    parts: u64,
    /// Of the current statement: the expressions that naga creates besides those of its tokens, and the times that it
    /// types one besides.
    copied: u64,
    types: u64,
    /// Of the current function or module scope: the expressions, how often one is typed, and the sum over these times
    /// of the expressions up to there.
    expressions: u64,
    typed: u64,
    visits: u64,
    work: u64,
    refused: Option<(String, usize)>,
}

impl<'a> Measure<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            tokens: Tokens::new(source),
            at: 0,
            depth: 0,
            structs: Vec::new(),
            module: HashMap::new(),
            scopes: body::Scopes::default(),
            parts: 0,
            copied: 0,
            types: 0,
            expressions: 0,
            typed: 0,
            visits: 0,
            work: 0,
            refused: None,
        }
    }

    fn refuse(&mut self, problem: String) {
        let at = self.tokens.byte(self.at.min(self.tokens.len().saturating_sub(1)));
        self.refused.get_or_insert((problem, at));
    }

    /// Charges parts that naga writes out for a term. Those that the text itself has are expressions of its tokens.
    fn charge(&mut self, term: &Term, parts: u64) {
        let in_text = if term.is_named { 0 } else { term.parts.saturating_mul(2) };
        self.copied = self.copied.saturating_add(parts.saturating_sub(in_text));
        self.parts = self.parts.saturating_add(parts);
        if self.parts > MAX_PARTS && self.refused.is_none() {
            let what = "constants, written out wherever they are used, have";
            self.refuse(format!("{what} more than {MAX_PARTS} parts here"));
        }
    }

    /// Counts the tokens of a statement or a declaration that was measured as expressions, and as typed expressions.
    fn count(&mut self, from: usize, to: usize) {
        self.expressions = self.expressions.saturating_add(std::mem::take(&mut self.copied));
        for at in from..to {
            let (expressions, typed) = self.tokens.expressions(at);
            self.visit(expressions, typed);
        }
        let types = std::mem::take(&mut self.types);
        self.visit(0, types);
    }

    fn visit(&mut self, expressions: u64, typed: u64) {
        self.expressions = self.expressions.saturating_add(expressions);
        self.typed = self.typed.saturating_add(typed);
        self.visits = self.visits.saturating_add(typed.saturating_mul(self.expressions));
    }

    /// Ends the measure of a function or of the module scope that started at a token.
    fn settle(&mut self, start: usize) {
        self.work = self.work.saturating_add(self.visits);
        if self.work > MAX_WORK && self.refused.is_none() {
            self.at = start;
            let (typed, words) = (self.typed, self.expressions);
            let why = "naga takes time for each operator of a function times the words in it";
            self.refuse(format!("{typed} operators among {words} words and parts of constants are too much: {why}"));
        }
        (self.expressions, self.typed, self.visits) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests;
