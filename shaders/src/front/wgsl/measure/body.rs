//! Function bodies: the names in scope of their statements, and the expressions in them.

use std::collections::HashMap;

use super::Measure;
use super::declarations::Declaration;
use super::term::Term;

/// The names in scope, innermost last.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<&'a str, Vec<Term>>,
    /// All names in scope, in the order of the text.
    declared: Vec<&'a str>,
    open: Vec<OpenScope>,
}

/// A scope, with the number of names declared before it.
#[derive(Clone, Copy)]
enum OpenScope {
    Block(usize),
    /// The head of a `for`, whose names go out of scope at the end of its block.
    For(usize),
}

impl<'a> Scopes<'a> {
    fn declare(&mut self, name: &'a str, term: Term) {
        self.names.entry(name).or_default().push(term);
        self.declared.push(name);
    }

    fn begin(&mut self, kind: fn(usize) -> OpenScope) {
        self.open.push(kind(self.declared.len()));
    }

    /// Ends a block, and the `for`s whose body it is.
    fn end(&mut self) {
        let mut next = self.open.pop();
        while let Some(OpenScope::Block(names) | OpenScope::For(names)) = next {
            for name in self.declared.drain(names..) {
                _ = self.names.get_mut(name).and_then(Vec::pop);
            }
            next = self.open.pop_if(|open| matches!(open, OpenScope::For(_)));
        }
    }
}

impl<'a> Measure<'a> {
    /// The meaning of a name in this scope.
    pub(super) fn lookup(&self, name: &str) -> Option<Term> {
        let local = self.scopes.names.get(name).and_then(|list| list.last());
        local.or_else(|| self.module.get(name)).cloned()
    }

    /// Measures a function, from its parameters on.
    pub(super) fn body(&mut self, function: &Declaration<'a>) {
        self.scopes = Scopes::default();
        self.at = function.start + 2;
        while self.at < function.end && self.tokens.text(self.at) != "{" {
            let named = self.tokens.is_word(self.at) && self.tokens.text(self.at + 1) == ":";
            let name = self.tokens.text(self.at);
            self.at += 1;
            if named {
                self.at += 1;
                let shape = self.expression().shape;
                self.scopes.declare(name, Term::variable(shape));
            }
        }
        self.count(function.start, self.at.min(function.end));
        while self.at < function.end && self.refused.is_none() {
            let before = self.at;
            self.statement();
            self.count(before, self.at.min(function.end));
        }
    }

    /// Measures the expression after the keyword of a statement.
    fn statement(&mut self) {
        let before = self.at;
        match self.tokens.text(before) {
            "{" => self.scopes.begin(OpenScope::Block),
            "}" => self.scopes.end(),
            "for" => self.scopes.begin(OpenScope::For),
            kind @ ("let" | "const" | "var") => {
                self.at += 1;
                if self.tokens.text(self.at) == "<" {
                    while !matches!(self.tokens.text(self.at), ">" | ";" | "") {
                        self.at += 1;
                    }
                    self.at += 1;
                }
                let name = self.tokens.text(self.at);
                let term = self.variable(kind);
                self.scopes.declare(name, term);
                return;
            }
            "if" | "else" | "while" | "loop" | "continuing" | "switch" | "case" | "default" | "return" | "break"
            | "continue" | "discard" | "const_assert" | "@" | ";" | ":" | "=" | ")" | "]" => {}
            // Between the selectors of a `case`.
            "," => self.types += 1,
            _ => {
                self.sink();
                self.at = self.at.max(before + 1);
                return;
            }
        }
        self.at += 1;
    }
}
