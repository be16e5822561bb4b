//! Limits on what a text declares, told with the line of the declaration.

use naga::proc::Layouter;
use naga::{AddressSpace, Span};
use spirv::Op;

use super::refused_at;
use crate::abi::MAX_PUSH_BYTES;
use crate::front::Error;

/// The size of immediates, on whose limit naga's validator relies.
pub(super) fn check(module: &naga::Module, source: &str) -> Result<(), Error> {
    let mut layouter = Layouter::default();
    // A type without a layout is refused by the validator.
    if layouter.update(module.to_ctx()).is_err() {
        return Ok(());
    }
    for (variable, data) in module.global_variables.iter() {
        let bytes = layouter[data.ty].size;
        if data.space == AddressSpace::Immediate && bytes as usize > MAX_PUSH_BYTES {
            let name = data.name.as_deref().unwrap_or_default();
            let problem = format!("`{name}`: immediates of {bytes} bytes, more than {MAX_PUSH_BYTES}");
            return Err(refused_at(&problem, start(module.global_variables.get_span(variable)), source));
        }
    }
    Ok(())
}

/// The byte of the text that declares the variable whose `OpVariable` is at a word, if the words have names.
pub(super) fn place(module: &naga::Module, words: &[u32], word: usize) -> Option<usize> {
    let &[first, _, id, ..] = words.get(word..)? else { return None };
    if first & 0xffff != Op::Variable as u32 {
        return None;
    }
    let name = name(words, id)?;
    let global = module.global_variables.iter().find(|(_, data)| data.name.as_deref() == Some(&name));
    if let Some((variable, _)) = global {
        return Some(start(module.global_variables.get_span(variable)));
    }
    // Functions may have variables of one name, which words do not tell apart.
    let functions = module.functions.iter().map(|(_, function)| function);
    let functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    let mut local = functions.flat_map(|function| {
        let named = function.local_variables.iter().filter(|(_, data)| data.name.as_deref() == Some(&name));
        named.map(|(variable, _)| start(function.local_variables.get_span(variable)))
    });
    let found = local.next()?;
    local.next().is_none().then_some(found)
}

fn start(span: Span) -> usize {
    span.to_range().map_or(0, |range| range.start)
}

/// `OpName` of an id.
fn name(words: &[u32], id: u32) -> Option<String> {
    let mut at = 5;
    while let Some(inst) = words.get(at).and_then(|word| words.get(at..at + (word >> 16).max(1) as usize)) {
        match inst {
            [first, named, text @ ..] if first & 0xffff == Op::Name as u32 && *named == id => {
                let bytes = text.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
                return String::from_utf8(bytes).ok();
            }
            [first, ..] if first & 0xffff == Op::Function as u32 => return None,
            _ => at += inst.len(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Module;

    #[test]
    fn what_is_too_large_is_told_where_it_is_declared() {
        let buffer = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;";
        for (module, body, told, place) in [
            ("var<immediate> p: array<vec4<u32>, 17>;", "", "`p`: immediates of 272 bytes, more than 256", "wgsl:2:1"),
            ("var<immediate> p: array<vec4<u32>, 600>;", "", "immediates of 9600 bytes, more than 256", "wgsl:2:1"),
            ("var<private> p: array<u32, 4000000>;", "", "more than 4194304 bytes of Private variables", "wgsl:2:1"),
            ("var<workgroup> p: array<u32, 400000>;", "", "more than 1048576 bytes of Workgroup variables", "wgsl:2:1"),
            ("", "var p: array<u32, 4000000>;", "more than 4194304 bytes of Function variables", "wgsl:4:1"),
        ] {
            let text =
                format!("{buffer}\n{module}\n@compute @workgroup_size(1) fn main() {{\n{body}\no[0] = p[o[1]].x; }}");
            let text = if told.contains("immediates") { text } else { text.replace(".x", "") };
            let kernel = |text: &str| Module::parse(text).and_then(|module| module.kernel("main", &BTreeMap::new()));
            let error = kernel(&text).unwrap_err().to_string();
            assert!(error.contains(told) && error.ends_with(&format!("at {place}")), "{error}");
        }
        let fits = "var<immediate> p: array<vec4<u32>, 16>; @group(0) @binding(0) var<storage, read_write> o: u32;
            @compute @workgroup_size(1) fn main() { o = p[15].w; }";
        assert_eq!(Module::parse(fits).unwrap().kernel("main", &BTreeMap::new()).unwrap().push_bytes, 256);
    }
}
