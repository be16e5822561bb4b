//! Measures expressions of the text: their size, and the copies that naga makes to evaluate them.
//!
//! The parser accepts every text: a token that fits no expression ends it, and texts that naga will reject may be
//! measured arbitrarily. For texts that naga accepts, no copy is missed: if the parser does not know, it overestimates.

use std::rc::Rc;

use super::Measure;
use super::term::{SMALL, SizedType, Term};

/// Nesting of brackets, at most; naga itself accepts less.
const MAX_DEPTH: usize = 200;
/// Nesting of arrays and structures, at most. SPIR-V's limit of 255 counts a matrix as three levels, and naga wraps the
/// type of a buffer in one more.
const MAX_NESTING: u32 = 251;

impl<'a> Measure<'a> {
    /// Measures an expression that becomes a value of its own: converting it copies it.
    pub(super) fn sink(&mut self) -> Term {
        let term = self.expression();
        self.charge(&term, term.copied().max(term.converted()));
        term
    }

    pub(super) fn expression(&mut self) -> Term {
        if self.depth >= MAX_DEPTH {
            self.refuse(format!("more than {MAX_DEPTH} brackets within brackets"));
        }
        if self.refused.is_some() {
            self.at = self.tokens.len();
            return Term::default();
        }
        self.depth += 1;
        let term = self.binary(1);
        self.depth -= 1;
        term
    }

    fn binary(&mut self, min: u32) -> Term {
        let mut left = self.operand();
        while let Some((sign, level)) = self.operator().filter(|(_, level)| *level >= min) {
            self.at += sign.len();
            let right = self.binary(level + 1);
            let number = left.number.zip(right.number).and_then(|(a, b)| calculated(sign, a, b));
            // The shifted value determines the type, not the shift amount.
            let is_concrete = left.is_concrete || right.is_concrete && !matches!(sign, "<<" | ">>");
            left = Term { is_concrete, ..self.calculation(&[left, right], number) };
        }
        left
    }

    /// An operation on scalars, vectors and matrices; naga writes its operands out, even those that it then rejects.
    fn calculation(&mut self, operands: &[Term], number: Option<i128>) -> Term {
        let at_run_time = operands.iter().any(|term| term.at_run_time);
        for term in operands.iter().filter(|term| !term.at_run_time) {
            // Next to a run-time operand, the other one is only converted, or rejected.
            let is_left = at_run_time && (term.is_type || term.is_concrete && term.shape == SizedType::Small);
            self.charge(term, if is_left { 0 } else { self.written_out(term).max(term.converted()) });
        }
        let parts = operands.iter().map(|term| term.parts).max().unwrap_or(1);
        let is_concrete = at_run_time || operands.iter().all(|term| term.is_concrete);
        Term { at_run_time, number, is_concrete, ..Term::small(parts) }
    }

    fn written_out(&self, term: &Term) -> u64 {
        match term.shape {
            SizedType::Small => term.parts,
            _ => term.shape.parts(&self.structs).max(term.parts),
        }
    }

    /// The binary operator at this token, and its precedence.
    fn operator(&self) -> Option<(&'static str, u32)> {
        if self.tokens.is_list(self.at) {
            return None;
        }
        Some(match self.tokens.rest(self.at) {
            // These end an expression.
            [b'<', b'<', b'=', ..] | [b'>', b'>', b'=', ..] | [b'+', b'+', ..] | [b'-', b'-', ..] => return None,
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', ..] => return None,
            [b'|', b'|', ..] => ("||", 1),
            [b'&', b'&', ..] => ("&&", 2),
            [b'<', b'<', ..] => ("<<", 7),
            [b'>', b'>', ..] => (">>", 7),
            [b'=', b'=', ..] => ("==", 6),
            [b'!', b'=', ..] => ("!=", 6),
            [b'<', b'=', ..] => ("<=", 6),
            [b'>', b'=', ..] => (">=", 6),
            [b'|', ..] => ("|", 3),
            [b'^', ..] => ("^", 4),
            [b'&', ..] => ("&", 5),
            [b'<', ..] => ("<", 6),
            [b'>', ..] => (">", 6),
            [b'+', ..] => ("+", 8),
            [b'-', ..] => ("-", 8),
            [b'*', ..] => ("*", 9),
            [b'/', ..] => ("/", 9),
            [b'%', ..] => ("%", 9),
            _ => return None,
        })
    }

    fn operand(&mut self) -> Term {
        let mut signs = Vec::new();
        while let sign @ ("-" | "!" | "~" | "&" | "*") = self.tokens.text(self.at) {
            signs.push(sign);
            self.at += 1;
        }
        let mut term = self.primary();
        for sign in signs.into_iter().rev() {
            term = match sign {
                // Values in memory exist at run time only.
                "&" | "*" => Term { at_run_time: true, number: None, is_concrete: true, ..term },
                _ => {
                    let number = term.number.filter(|_| sign == "-").map(|number| -number);
                    self.calculation(&[term], number)
                }
            };
        }
        term
    }

    fn primary(&mut self) -> Term {
        let mut term = if self.tokens.text(self.at) == "(" {
            let mut list = self.arguments();
            list.pop().unwrap_or_default()
        } else if self.tokens.is_number(self.at) || self.tokens.text(self.at) == "." {
            self.number()
        } else if self.tokens.is_word(self.at) {
            self.named()
        } else {
            return Term::small(1);
        };
        // The whole is typed, too; a vector of which a component is named, with that.
        let first = self.at;
        loop {
            match self.tokens.text(self.at) {
                "[" => {
                    self.types += u64::from(self.at == first);
                    self.at += 1;
                    let index = self.expression();
                    self.skip("]");
                    let element = match &term.shape {
                        SizedType::Array(element, _) => (**element).clone(),
                        SizedType::Small => SizedType::Small,
                        _ => SizedType::Unknown,
                    };
                    term = self.part(term, element, index.at_run_time);
                }
                "." if self.tokens.is_word(self.at + 1) => {
                    let name = self.tokens.text(self.at + 1);
                    self.types += u64::from(self.at == first && term.shape != SizedType::Small);
                    self.at += 2;
                    let member = match term.shape {
                        SizedType::Struct(index) => self.member(index, name),
                        SizedType::Small => SizedType::Small,
                        _ => SizedType::Unknown,
                    };
                    term = self.part(term, member, false);
                }
                _ => return term,
            }
        }
    }

    /// A component of a value. naga copies the whole value if it knows both that and the index; if it does not know the
    /// index, the whole value gets a type.
    fn part(&mut self, whole: Term, shape: SizedType, at_run_time: bool) -> Term {
        self.charge(&whole, if at_run_time { whole.converted() } else { whole.copied() });
        let parts = match shape {
            SizedType::Unknown => whole.parts,
            _ => whole.parts.min(shape.parts(&self.structs)),
        };
        let at_run_time = at_run_time || whole.at_run_time;
        Term { shape, parts, at_run_time, is_concrete: at_run_time || whole.is_concrete, ..Term::default() }
    }

    fn member(&self, index: usize, name: &str) -> SizedType {
        let members = self.structs.get(index).map_or(&[][..], |found| &found.members);
        members.iter().find(|(other, _)| *other == name).map_or(SizedType::Unknown, |(_, shape)| shape.clone())
    }

    /// Measures a comma-separated list of expressions in brackets.
    pub(super) fn arguments(&mut self) -> Vec<Term> {
        self.at += 1;
        let mut list = Vec::new();
        while self.at < self.tokens.len() && !self.ends_list() {
            let before = self.at;
            list.push(self.expression());
            if !self.skip(",") && (self.at == before || !self.ends_list()) {
                break;
            }
        }
        if self.ends_list() {
            self.at += 1;
        }
        list
    }

    fn ends_list(&self) -> bool {
        matches!(self.tokens.text(self.at), ")" | "]")
            || self.tokens.text(self.at) == ">" && self.tokens.is_list(self.at)
    }

    fn named(&mut self) -> Term {
        let (name, start) = (self.tokens.text(self.at), self.at);
        self.at += 1;
        let has_list = self.tokens.text(self.at) == "<" && self.tokens.is_list(self.at);
        let list = if has_list { Some(self.arguments()) } else { None };
        // The length of an array.
        self.types += u64::from(list.as_ref().is_some_and(|list| list.len() > 1));
        let known = self.lookup(name);
        if self.tokens.text(self.at) != "(" {
            return match (known, list) {
                (Some(term), _) => Term { is_named: true, ..term },
                (None, Some(list)) => Term::of_type(self.nested(template(name, &list), start)),
                (None, None) => Term { is_type: true, is_concrete: true, ..Term::small(1) },
            };
        }
        let arguments = self.arguments();
        match (known, list) {
            (Some(Term { shape, is_type: true, .. }), _) => self.constructed(shape, &arguments, true),
            // A function of the module, whose results exist at run time only.
            (Some(term), _) => {
                self.types += arguments.len().saturating_sub(1) as u64;
                arguments.iter().for_each(|term| self.charge(term, term.copied().max(term.converted())));
                Term { at_run_time: true, is_type: false, number: None, ..term }
            }
            (None, list) if name == "array" => {
                let is_concrete = list.is_some() || arguments.iter().any(|term| term.is_concrete);
                let shape = match list {
                    Some(list) => template(name, &list),
                    None => {
                        let element = arguments.first().map_or(SizedType::Unknown, |term| term.shape.clone());
                        SizedType::Array(Rc::new(element), Some(arguments.len() as u64))
                    }
                };
                let shape = self.nested(shape, start);
                self.constructed(shape, &arguments, is_concrete)
            }
            (None, list) => {
                let result = self.built_in(name, &arguments);
                Term { is_concrete: result.is_concrete || list.is_some() || names_scalar(name), ..result }
            }
        }
    }

    /// The shape, unless it nests too deeply; reported at the token `start`.
    pub(super) fn nested(&mut self, shape: SizedType, start: usize) -> SizedType {
        if shape.depth(&self.structs) <= MAX_NESTING {
            return shape;
        }
        let next = std::mem::replace(&mut self.at, start);
        self.refuse(format!("arrays and structures within each other, more than {MAX_NESTING} levels"));
        self.at = next;
        SizedType::Unknown
    }

    /// A value constructor of a type: each argument gets the type of its component, independently of the others.
    fn constructed(&mut self, shape: SizedType, arguments: &[Term], is_concrete: bool) -> Term {
        let at_run_time = arguments.iter().any(|term| term.at_run_time);
        let parts = arguments.iter().fold(1u64, |sum, term| sum.saturating_add(term.parts));
        for term in arguments.iter().filter(|_| is_concrete) {
            self.charge(term, term.converted());
        }
        if !at_run_time {
            // The constructor itself is in the text.
            self.charge(&Term::small(1), 1);
            arguments.iter().for_each(|term| self.charge(term, term.parts));
        }
        // The zero value of a vector is eventually written out; that of an array only in rejected texts.
        let parts = if shape == SizedType::Small { parts.max(SMALL * u64::from(arguments.is_empty())) } else { parts };
        let is_named = arguments.iter().any(|term| term.is_named);
        Term { shape, parts, at_run_time, is_concrete, is_named, ..Term::default() }
    }

    /// A built-in function, or a constructor of a scalar, vector or matrix.
    fn built_in(&mut self, name: &str, arguments: &[Term]) -> Term {
        let numbers: Option<Vec<i128>> = arguments.iter().map(|term| term.number).collect();
        let number = match (name, numbers.as_deref()) {
            // Other types may change the number.
            ("u32" | "i32" | "u64" | "i64", Some(&[number])) => {
                Some(number).filter(|n| i32::try_from(*n).is_ok_and(|n| n >= 0))
            }
            ("min", Some(&[a, b])) => Some(a.min(b)),
            ("max", Some(&[a, b])) => Some(a.max(b)),
            ("abs", Some(&[a])) => Some(a.abs()),
            _ => None,
        };
        if arguments.is_empty() {
            return Term::small(SMALL);
        }
        if !is_constructor(name) {
            self.types += arguments.len() as u64 - 1;
        }
        let sum = arguments.iter().fold(1u64, |sum, term| sum.saturating_add(term.parts));
        let result = self.calculation(arguments, number);
        Term { parts: sum.min(SMALL), ..result }
    }

    fn number(&mut self) -> Term {
        let tokens = &self.tokens;
        let first = self.at;
        // 1, 1.5, 1., .5, 1e-3, 0x1p+3
        let mut end = first;
        while tokens.touches(end) {
            let (this, next) = (tokens.text(end), tokens.text(end + 1));
            let has_sign = matches!(next, "+" | "-") && {
                let hex = tokens.text(first).starts_with("0x") || tokens.text(first).starts_with("0X");
                let letters = if hex { ['p', 'P'] } else { ['e', 'E'] };
                this.ends_with(letters) && tokens.touches(end + 1) && tokens.is_number(end + 2)
            };
            let goes_on = next == "." && end == first && this != "."
                || this == "." && (tokens.is_number(end + 1) || tokens.is_word(end + 1))
                || has_sign
                || matches!(this, "+" | "-");
            if !goes_on {
                break;
            }
            end += 1;
        }
        self.at = end + 1;
        let number = if end == first { integer(self.tokens.text(first)) } else { None };
        Term { is_concrete: has_suffix(self.tokens.text(first), self.tokens.text(end)), ..Term::integer(number) }
    }

    pub(super) fn skip(&mut self, sign: &str) -> bool {
        let is = self.tokens.text(self.at) == sign;
        self.at += usize::from(is);
        is
    }
}

/// Whether the name is a scalar type, or a vector or matrix type with its scalar's letter.
fn names_scalar(name: &str) -> bool {
    let with_letter = |rest: &str| rest.ends_with(['i', 'u', 'f', 'h']);
    matches!(name, "bool" | "i32" | "u32" | "i64" | "u64" | "f16" | "f32" | "f64")
        || ["vec", "mat"].iter().any(|start| name.strip_prefix(start).is_some_and(with_letter))
}

/// Whether the name is a vector or matrix type, or a scalar type.
fn is_constructor(name: &str) -> bool {
    names_scalar(name) || name.starts_with("vec") || name.starts_with("mat")
}

/// Whether a number, given by its first and last token, has a type suffix; that of floats is not a digit.
fn has_suffix(first: &str, last: &str) -> bool {
    let is_hex = first.starts_with("0x") || first.starts_with("0X");
    last.ends_with(['i', 'u']) || !is_hex && last.ends_with(['f', 'h'])
}

fn template(name: &str, list: &[Term]) -> SizedType {
    let shape = |at: usize| list.get(at).map_or(SizedType::Unknown, |term: &Term| term.shape.clone());
    match name {
        "array" | "binding_array" => {
            let length = list.get(1).and_then(|term| term.number).and_then(|number| u64::try_from(number).ok());
            SizedType::Array(Rc::new(shape(0)), length)
        }
        "ptr" => shape(1),
        _ => SizedType::Small,
    }
}

fn integer(text: &str) -> Option<i128> {
    let digits = text.trim_end_matches('l').trim_end_matches(['i', 'u', 'l']);
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

fn calculated(sign: &str, a: i128, b: i128) -> Option<i128> {
    match sign {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        "&" => Some(a & b),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        // Bits that are shifted out are no error.
        "<<" => {
            let shifted = u32::try_from(b).ok().filter(|&b| b < 64).and_then(|b| a.checked_mul(1 << b));
            shifted.filter(|&shifted| u32::try_from(shifted).is_ok())
        }
        ">>" => u32::try_from(b).ok().filter(|&b| b < 64).map(|b| a >> b),
        _ => None,
    }
}
