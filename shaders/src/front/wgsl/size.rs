//! Checks workgroup sizes: naga rejects some without a position and leaves others to pipelines, so they are reported
//! here, with the line of their declaration.

use naga::ShaderStage;

use super::errors::refused_at;
use super::lexer::{WgslToken, tokens};
use crate::front::{Error, spirv};

/// Checks that the entry point's workgroup size is within the limits.
pub(super) fn check(module: &naga::Module, entry: &str, source: &str) -> Result<(), Error> {
    let mut all = module.entry_points.iter();
    match all.find(|point| point.stage == ShaderStage::Compute && point.name == entry) {
        Some(point) => spirv::check_size(point.workgroup_size).map_err(|problem| refused(&problem, entry, source)),
        None => Ok(()),
    }
}

/// The error for override values with a size that naga has rejected without reporting it.
pub(super) fn overridden(entry: &str, source: &str) -> Error {
    let limit = format!("where 1 to {} invocations are possible (VUID-RuntimeSpirv-x-06432)", spirv::MAX_INVOCATIONS);
    refused(&format!("overrides make its workgroup's size 0, less than 0 or too large, {limit}"), entry, source)
}

fn refused(problem: &str, entry: &str, source: &str) -> Error {
    refused_at(&format!("`{entry}`: {problem}"), attribute_offset(entry, source), source)
}

/// The byte offset of a function's declaration.
pub(super) fn function(name: &str, source: &str) -> Option<usize> {
    let mut pairs = tokens(source).zip(tokens(source).skip(1));
    pairs.find(|(first, second)| first.text == "fn" && second.text == name).map(|(first, _)| first.at)
}

/// The byte offset of the size's declaration: the last such attribute before the function.
fn attribute_offset(entry: &str, source: &str) -> usize {
    let tokens: Vec<WgslToken<'_>> = tokens(source).collect();
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.text == word);
    let function = (0..tokens.len()).find(|&at| is(at, "fn") && is(at + 1, entry)).unwrap_or(0);
    let declared = (0..function).rev().find(|&at| is(at, "@") && is(at + 1, "workgroup_size"));
    tokens.get(declared.unwrap_or(function)).map_or(0, |token| token.at)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::WgslModule;

    const LIMIT: &str = "invocations, where 1 to 1024 are possible (VUID-RuntimeSpirv-x-06432)";

    fn refused(text: &str, values: &BTreeMap<u32, u64>) -> String {
        let kernel = WgslModule::parse(text).and_then(|module| module.kernel("main", values));
        kernel.unwrap_err().to_string()
    }

    #[test]
    fn sizes_are_reported_with_their_line_and_the_limit() {
        for (size, expected) in [
            ("0", "0 x 1 x 1"),
            ("65536", "65536 x 1 x 1"),
            ("8, 0, 2", "8 x 0 x 2"),
            ("2048", "2048 x 1 x 1"),
            ("64, 64", "64 x 64 x 1"),
        ] {
            let other = "@compute @workgroup_size(4) fn first() {} /* fn main @workgroup_size(1) */";
            let text = format!("{other}\n@compute\n  @workgroup_size({size})\nfn main() {{}}");
            let error = refused(&text, &BTreeMap::new());
            assert_eq!(error, format!("`main`: a workgroup of {expected} {LIMIT} at wgsl:3:3"), "{size}");
        }
    }

    #[test]
    fn so_are_sizes_that_overrides_set() {
        let text = "@id(3) override n = 1i;\n@compute @workgroup_size(n, 2)\nfn main() {}";
        let with = |n: i32| refused(text, &BTreeMap::from([(3, n.cast_unsigned().into())]));
        assert_eq!(with(1024), format!("`main`: a workgroup of 1024 x 2 x 1 {LIMIT} at wgsl:2:10"));
        for n in [0, -1, 70_000] {
            let expected = "overrides make its workgroup's size 0, less than 0 or too large, where 1 to 1024 invocations are possible";
            assert_eq!(with(n), format!("`main`: {expected} (VUID-RuntimeSpirv-x-06432) at wgsl:2:10"));
        }
    }
}
