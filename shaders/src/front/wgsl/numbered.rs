//! Debug lines in time that grows with the length of a text. naga looks up each statement's line from the beginning of
//! the text, which takes tens of seconds for a megabyte. So it gets numbers in place of positions, and a text with a
//! column for each number; the columns that it writes become lines and columns of the real text afterwards.
//!
//! Where naga's position is not that of the statement, the number has the right one: naga begins the condition of a
//! `for` or `while` after the token before it, gives a load through a name the place where the name is declared, and
//! has no position for the load of a local variable.

use std::ops::Range;

use naga::{Arena, Block, Expression, FastIndexMap, Handle, Module, Span, Statement};
use spirv::Op;

use super::lexer::{WgslToken, tokens};

/// Words before the first instruction.
const HEADER: usize = 5;

/// Tokens among which the name of a pointer is sought.
const MAX_TOKENS: usize = 256;

/// Bytes of text in an instruction, at most: as naga has it.
const MAX_CHUNK: usize = u16::MAX as usize;

/// A module whose statements have numbers as positions.
pub(super) struct Numbered {
    pub(super) module: Module,
    /// The position of the statement with each number, if it is known.
    starts: Vec<Option<u32>>,
}

impl Numbered {
    /// Numbers the statements of a module that naga read from this text.
    pub(super) fn new(mut module: Module, text: &str) -> Self {
        let tokens: Vec<WgslToken<'_>> = tokens(text).collect();
        let mut starts = Vec::new();
        let functions = module.functions.iter_mut().map(|(_, function)| function);
        let entry_points = module.entry_points.iter_mut().map(|entry| &mut entry.function);
        for function in functions.chain(entry_points) {
            let (expressions, named) = (&function.expressions, &function.named_expressions);
            number(&mut function.body, 0, &Places { tokens: &tokens, expressions, named }, &mut starts);
        }
        Self { module, starts }
    }

    /// The text for naga.
    pub(super) fn text(&self) -> String {
        " ".repeat(self.starts.len())
    }

    /// The words that naga wrote, with the lines of the real text, and with the text.
    pub(super) fn restored(&self, words: &[u32], text: &str) -> Vec<u32> {
        let lines = LineStarts::of(text);
        let mut out = words[..HEADER].to_vec();
        let mut at = HEADER;
        while let Some(&first) = words.get(at) {
            let end = (at + (first >> 16).max(1) as usize).min(words.len());
            match (Op::from_u32(first & 0xffff), &words[at + 1..end]) {
                (Some(Op::Line), &[file, _, column]) => {
                    let start = (column as usize).checked_sub(1).and_then(|number| *self.starts.get(number)?);
                    // What has no position has that of what is before it.
                    if let Some((line, column)) = start.map(|start| lines.position(start)) {
                        out.extend([first, file, line, column]);
                    }
                }
                (Some(Op::Source), &[language, version, file, ..]) => {
                    source([language, version, file], text, &mut out);
                }
                (Some(Op::SourceContinued), _) => {}
                _ => out.extend_from_slice(&words[at..end]),
            }
            at = end;
        }
        out
    }
}

/// Where the statements of a function are in the text.
struct Places<'a> {
    tokens: &'a [WgslToken<'a>],
    expressions: &'a Arena<Expression>,
    named: &'a FastIndexMap<Handle<Expression>, String>,
}

impl Places<'_> {
    /// The part of the text that a statement is, for which naga has this one; `None` if it is not known.
    fn of(&self, statement: &Statement, span: Span) -> Option<Range<usize>> {
        let span = match statement {
            Statement::Emit(range) => {
                let here = range.clone().filter(|&expression| self.pointer(expression).is_none());
                Span::total_span(here.map(|expression| self.expressions.get_span(expression)))
            }
            _ => span,
        };
        let Range { start, end } = span.to_range()?;
        let start = self.tokens_from(start).next().map_or(start, |token| token.at);
        Some(start..end.max(start))
    }

    /// The tokens from a place on.
    fn tokens_from(&self, at: usize) -> impl Iterator<Item = &WgslToken<'_>> {
        self.tokens[self.tokens.partition_point(|token| token.at < at)..].iter()
    }

    /// The named pointer through which an expression loads: naga gives the load the place where the name is declared.
    fn pointer(&self, expression: Handle<Expression>) -> Option<(Handle<Expression>, &str)> {
        let Expression::Load { pointer } = self.expressions[expression] else { return None };
        Some((pointer, self.named.get(&pointer)?.as_str()))
    }

    /// The first name of a pointer, after this place, through which a statement loads.
    fn name_after(&self, statement: &Statement, after: usize) -> Option<Range<usize>> {
        let Statement::Emit(range) = statement else { return None };
        let (pointer, name) = range.clone().find_map(|expression| self.pointer(expression))?;
        let declared = self.expressions.get_span(pointer).to_range().map_or(0, |range| range.end);
        let found = self.tokens_from(declared.max(after)).take(MAX_TOKENS).find(|token| token.text == name)?;
        Some(found.at..found.end())
    }

    /// Where the statements of a block are that begins after this place.
    fn of_all(&self, block: &Block, after: usize) -> Vec<Option<usize>> {
        let statements: Vec<_> =
            block.span_iter().map(|(statement, span)| (statement, self.of(statement, *span))).collect();
        // A part of a statement whose place is not known comes before the rest of it.
        let mut followed = vec![None; statements.len()];
        for at in (1..statements.len()).rev() {
            followed[at - 1] = statements[at].1.clone().or_else(|| followed[at].clone());
        }
        let mut after = after;
        let mut places = Vec::new();
        for ((statement, known), next) in statements.into_iter().zip(followed) {
            let is_before = |name: &Range<usize>| next.as_ref().is_none_or(|next| name.start < next.end);
            let own = known.or_else(|| self.name_after(statement, after).filter(is_before));
            after = own.as_ref().map_or(after, |own| own.end.max(after));
            places.push(own.or(next).map(|place| place.start));
        }
        places
    }
}

/// Replaces the positions of the statements of a block, which begins after this place.
fn number(block: &mut Block, after: usize, places: &Places<'_>, starts: &mut Vec<Option<u32>>) {
    let own = places.of_all(block, after);
    for ((statement, span), start) in block.span_iter_mut().zip(own) {
        if let Some(span) = span {
            let number = starts.len() as u32;
            starts.push(start.map(|start| start as u32));
            *span = Span::new(number, number);
        }
        let after = start.unwrap_or(after);
        match statement {
            Statement::Block(block) => number(block, after, places, starts),
            Statement::If { accept, reject, .. } => {
                number(accept, after, places, starts);
                number(reject, after, places, starts);
            }
            Statement::Switch { cases, .. } => {
                cases.iter_mut().for_each(|case| number(&mut case.body, after, places, starts))
            }
            Statement::Loop { body, continuing, .. } => {
                number(body, after, places, starts);
                number(continuing, after, places, starts);
            }
            _ => {}
        }
    }
}

/// Where the lines of a text start.
struct LineStarts(Vec<u32>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// The line and the column of a byte, from 1.
    fn position(&self, byte: u32) -> (u32, u32) {
        let line = self.0.partition_point(|&start| start <= byte);
        (line as u32, byte - self.0[line - 1] + 1)
    }
}

/// `OpSource` with the text, and what continues it.
fn source(operands: [u32; 3], text: &str, out: &mut Vec<u32>) {
    let mut rest = text;
    let mut op = Op::Source;
    while op == Op::Source || !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(MAX_CHUNK));
        let operands = if op == Op::Source { &operands[..] } else { &[] };
        let length = 1 + operands.len() + chunk.len() / 4 + 1;
        out.push((length as u32) << 16 | op as u32);
        out.extend_from_slice(operands);
        let mut bytes = chunk.as_bytes().to_vec();
        bytes.resize((chunk.len() / 4 + 1) * 4, 0);
        out.extend(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
        (rest, op) = (after, Op::SourceContinued);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spirv::Op;

    use super::super::WgslModule;
    use super::HEADER;

    /// What naga writes by itself.
    fn by_naga(module: &WgslModule, text: &str) -> Vec<u32> {
        let source =
            naga::back::spv::DebugInfo { source_code: text, file_name: "wgsl", language: spirv::SourceLanguage::WGSL };
        let options = WgslModule::options(Some(source));
        let pipeline = naga::back::spv::PipelineOptions {
            shader_stage: naga::ShaderStage::Compute,
            entry_point: "main".to_owned(),
        };
        naga::back::spv::write_vec(&module.module, &module.info, &options, Some(&pipeline)).expect("it is valid")
    }

    #[test]
    fn lines_and_texts_are_those_that_naga_writes() {
        let kernel = "
            @group(0) @binding(0) var<storage, read_write> a: array<u32>;
            fn twice(x: u32) -> u32 { /* ein Umlaut: ä */ return x * 2u; }
            @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                var i = 0u; var k = id.x;
                while(a[i] != 7u) {
                    i = twice(i) + 1u;
                    if i > 9u { continue; } else { k += 1u; }
                    switch k { case 1u: { a[k] = i; } default: { a[0] = k; } }
                    loop { k += 1u; if k > 4u { break; } continuing { i += 2u; break if i > 8u; } }
                }
                for (var j = 0u;j < 4u; j++) { a[j] += i; { a[k] = j; } }
            }";
        let short = kernel.to_owned();
        // Longer than an instruction, with a letter of two bytes across the end.
        let long = format!("//{}\n{}", "ä".repeat(40_000), kernel);
        for text in [short, long] {
            let module = WgslModule::parse(&text).expect("it is valid");
            let words = module.written("main", &BTreeMap::new(), true).expect("it is valid");
            let by_naga = by_naga(&module, &text);
            assert_eq!((words.len(), &words[..HEADER]), (by_naga.len(), &by_naga[..HEADER]));
            let mut at = HEADER;
            while at < words.len() {
                let end = at + (words[at] >> 16) as usize;
                // naga has the first column of the text where it knows none.
                let is_unknown = words[at] & 0xffff == Op::Line as u32 && by_naga[at + 2..end] == [1, 1];
                assert!(is_unknown || words[at..end] == by_naga[at..end], "{:?}", &words[at..end]);
                at = end;
            }
        }
    }

    /// The lines and columns of a kernel's instructions, in the order of the module.
    fn positions(text: &str) -> Vec<(u32, u32)> {
        let module = WgslModule::parse(text).expect("it is valid");
        let words = module.written("main", &BTreeMap::new(), true).expect("it is valid");
        let mut found = Vec::new();
        let mut at = HEADER;
        while at < words.len() {
            let end = at + (words[at] >> 16) as usize;
            if words[at] & 0xffff == Op::Line as u32 {
                found.push((words[at + 2], words[at + 3]));
            }
            at = end;
        }
        found
    }

    #[test]
    fn heads_of_loops_begin_at_their_first_token() {
        let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(4) fn main() {
    for (var k = 0u; // up to four
         k < 4u;
         k++) {
        a[k] = 1u;
    }
    while
        a[1] != 2u {
        a[1] = 2u;
    }
}
";
        let found = positions(text);
        // The loop itself, and the part of its condition that loads `k` alone.
        for place in [(3, 5), (4, 10), (5, 10), (8, 5), (9, 9)] {
            assert!(found.contains(&place), "{place:?}: {found:?}");
        }
        assert!(!found.iter().any(|place| [(1, 1), (3, 21), (8, 10)].contains(place)), "{found:?}");
    }

    #[test]
    fn loads_through_a_name_have_the_line_of_the_load() {
        let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(4) fn main() {
    let p = &a[0];
    let q = *p;
    a[1] = *p + q;
}
";
        let found = positions(text);
        assert_eq!(found.iter().filter(|(line, _)| *line == 3).count(), 1, "{found:?}");
        assert!(found.contains(&(4, 14)) && found.contains(&(5, 5)), "{found:?}");
    }
}
