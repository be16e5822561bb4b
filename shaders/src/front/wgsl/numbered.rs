//! Debug lines in time that grows with the length of a text. naga looks up each statement's line from the beginning of
//! the text, which takes tens of seconds for a megabyte. So it gets numbers in place of positions, and a text with a
//! column for each number; the columns that it writes become lines and columns of the real text afterwards.

use naga::{Block, Module, Span, Statement};
use spirv::Op;

/// Words before the first instruction.
const HEADER: usize = 5;

/// Bytes of text in an instruction, at most: as naga has it.
const MAX_CHUNK: usize = u16::MAX as usize;

/// A module whose statements have numbers as positions.
pub(super) struct Numbered {
    pub(super) module: Module,
    /// The position of the statement with each number.
    starts: Vec<u32>,
}

impl Numbered {
    pub(super) fn new(mut module: Module) -> Self {
        let mut starts = Vec::new();
        let functions = module.functions.iter_mut().map(|(_, function)| function);
        let entry_points = module.entry_points.iter_mut().map(|entry| &mut entry.function);
        functions.chain(entry_points).for_each(|function| number(&mut function.body, &mut starts));
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
                    let start = (column as usize).checked_sub(1).and_then(|number| self.starts.get(number));
                    let (line, column) = lines.position(start.map_or(0, |&start| start));
                    out.extend([first, file, line, column]);
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

/// Replaces the positions of a block's statements.
fn number(block: &mut Block, starts: &mut Vec<u32>) {
    for (statement, span) in block.span_iter_mut() {
        if let Some(span) = span {
            let number = starts.len() as u32;
            starts.push(span.to_range().map_or(0, |range| range.start as u32));
            *span = Span::new(number, number);
        }
        match statement {
            Statement::Block(block) => number(block, starts),
            Statement::If { accept, reject, .. } => {
                number(accept, starts);
                number(reject, starts);
            }
            Statement::Switch { cases, .. } => cases.iter_mut().for_each(|case| number(&mut case.body, starts)),
            Statement::Loop { body, continuing, .. } => {
                number(body, starts);
                number(continuing, starts);
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

    use super::super::WgslModule;

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
                while a[i] != 7u {
                    i = twice(i) + 1u;
                    if i > 9u { continue; } else { k += 1u; }
                    switch k { case 1u: { a[k] = i; } default: { a[0] = k; } }
                    loop { k += 1u; if k > 4u { break; } continuing { i += 2u; break if i > 8u; } }
                }
                for (var j = 0u; j < 4u; j++) { a[j] += i; { a[k] = j; } }
            }";
        let short = kernel.to_owned();
        // Longer than an instruction, with a letter of two bytes across the end.
        let long = format!("//{}\n{}", "ä".repeat(40_000), kernel);
        for text in [short, long] {
            let module = WgslModule::parse(&text).expect("it is valid");
            let words = module.written("main", &BTreeMap::new(), true).expect("it is valid");
            assert_eq!(words, by_naga(&module, &text));
        }
    }
}
