//! Module-scope declarations: each is measured after those that it names, functions last.

use std::collections::HashMap;

use super::Measure;
use super::term::{SizedType, Struct, Term};

/// A module-scope declaration, as a range of tokens.
pub(super) struct Declaration<'a> {
    name: &'a str,
    pub(super) is_function: bool,
    /// Start of its attributes.
    attributes: usize,
    /// Its first token after the attributes.
    pub(super) start: usize,
    /// The token after its last one.
    pub(super) end: usize,
}

impl<'a> Measure<'a> {
    /// All declarations in the order of the text.
    pub(super) fn declarations(&self) -> Vec<Declaration<'a>> {
        let (mut list, mut at) = (Vec::new(), 0);
        while at < self.tokens.len() {
            let attributes = at;
            let start = self.after_attributes(at);
            at = start;
            let mut depth = 0usize;
            loop {
                match self.tokens.text(at) {
                    "{" | "(" | "[" => depth += 1,
                    "}" | ")" | "]" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                at += 1;
                if at >= self.tokens.len() || depth == 0 && matches!(self.tokens.text(at - 1), ";" | "}") {
                    break;
                }
            }
            let name = self.tokens.text(self.name_of(start));
            let is_function = self.tokens.text(start) == "fn";
            list.push(Declaration { name, is_function, attributes, start, end: at });
        }
        list
    }

    /// The token of a declaration's name: `var` may have a template list before it.
    fn name_of(&self, start: usize) -> usize {
        let mut at = start + 1;
        if self.tokens.text(start) == "var" && self.tokens.text(at) == "<" {
            while !matches!(self.tokens.text(at), ">" | ";" | "") {
                at += 1;
            }
            at += 1;
        }
        at
    }

    fn after_attributes(&self, start: usize) -> usize {
        let mut at = start;
        while self.tokens.text(at) == "@" {
            at += 2;
            if self.tokens.text(at) == "(" {
                at = self.after_bracket(at);
            }
        }
        at
    }

    fn after_bracket(&self, open: usize) -> usize {
        let (mut at, mut depth) = (open, 0usize);
        loop {
            match self.tokens.text(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                "" => return at,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
    }

    /// Measures everything outside of function bodies.
    pub(super) fn module(&mut self, list: &[Declaration<'a>]) {
        for index in self.in_order(list) {
            let declaration = &list[index];
            self.declare(declaration);
            self.count(declaration.start, declaration.end);
        }
        for function in list.iter().filter(|declaration| declaration.is_function) {
            self.at = function.start + 2;
            let parameters = self.tokens.text(self.at) == "(";
            self.at = if parameters { self.after_bracket(self.at) } else { self.at };
            let result = if self.tokens.is(self.at, "->") {
                self.at = self.after_attributes(self.at + 2);
                self.expression().shape
            } else {
                SizedType::Unknown
            };
            self.module.insert(function.name, Term::variable(result));
        }
        for declaration in list {
            self.attributes(declaration.attributes, declaration.start);
        }
    }

    /// Measures the expressions in attributes.
    fn attributes(&mut self, start: usize, end: usize) {
        self.at = start;
        while self.at < end {
            if self.tokens.text(self.at) == "(" { drop(self.arguments()) } else { self.at += 1 }
        }
    }

    /// Declarations other than functions, sorted topologically. Cycles, which naga rejects, are cut.
    fn in_order(&self, list: &[Declaration<'a>]) -> Vec<usize> {
        let by_name: HashMap<&str, usize> = list
            .iter()
            .enumerate()
            .filter(|(_, declaration)| !declaration.is_function)
            .map(|(index, declaration)| (declaration.name, index))
            .collect();
        let mut order = Vec::new();
        let mut seen = vec![false; list.len()];
        for first in (0..list.len()).filter(|&index| !list[index].is_function) {
            // The stack: each declaration with the token up to which its names have been visited.
            let mut open = Vec::new();
            if !std::mem::replace(&mut seen[first], true) {
                open.push((first, list[first].start));
            }
            while let Some((index, at)) = open.pop() {
                let mut words = (at..list[index].end).filter(|&at| self.tokens.is_word(at));
                let next = words.find_map(|at| {
                    let named = by_name.get(self.tokens.text(at)).copied();
                    named.filter(|&named| !seen[named]).map(|named| (at + 1, named))
                });
                let Some((after, named)) = next else {
                    order.push(index);
                    continue;
                };
                seen[named] = true;
                open.push((index, after));
                open.push((named, list[named].start));
            }
        }
        order
    }

    fn declare(&mut self, declaration: &Declaration<'a>) {
        let kind = self.tokens.text(declaration.start);
        self.at = self.name_of(declaration.start);
        let term = match kind {
            "struct" => self.structure(declaration.end),
            "alias" => {
                self.at += 1;
                self.skip("=");
                Term::of_type(self.expression().shape)
            }
            "const" | "override" | "var" => self.variable(kind),
            "const_assert" => {
                self.at = declaration.start + 1;
                self.expression();
                return;
            }
            _ => return,
        };
        self.module.insert(declaration.name, term);
    }

    /// Measures a name with a type, a value or both.
    pub(super) fn variable(&mut self, kind: &str) -> Term {
        self.at += 1;
        let shape = if self.skip(":") { Some(self.expression().shape) } else { None };
        let value = if self.tokens.text(self.at) == "=" {
            self.at += 1;
            let value = self.expression();
            // A constant without a type gets one at its uses.
            let waits = kind == "const" && shape.is_none();
            self.charge(&value, if waits { value.copied() } else { value.copied().max(value.converted()) });
            self.types += u64::from(shape.is_some());
            value
        } else {
            Term::small(1)
        };
        // Only constants may lack a type.
        let is_concrete = shape.is_some() || kind != "const" || value.is_concrete;
        let shape = shape.unwrap_or_else(|| value.shape.clone());
        match kind {
            "var" => Term::variable(shape),
            // The value comes from outside.
            "override" => Term { shape, number: None, is_type: false, is_concrete, ..value },
            _ => Term { shape, is_type: false, is_concrete, ..value },
        }
    }

    fn structure(&mut self, end: usize) -> Term {
        let start = self.at;
        self.at += 2;
        let mut members = Vec::new();
        while self.at < end && self.tokens.text(self.at) != "}" {
            let before = self.at;
            self.at = self.after_attributes(before);
            let name = self.tokens.text(self.at);
            self.at += 1;
            if self.skip(":") {
                members.push((name, self.expression().shape));
            }
            self.skip(",");
            self.at = self.at.max(before + 1);
        }
        let parts = members.iter().fold(1u64, |sum, (_, shape)| sum.saturating_add(shape.parts(&self.structs)));
        let depth = members.iter().map(|(_, shape)| shape.depth(&self.structs)).max().unwrap_or(0) + 1;
        self.structs.push(Struct { members, parts, depth });
        Term::of_type(self.nested(SizedType::Struct(self.structs.len() - 1), start))
    }
}
