//! Limits on declarations, reported with the line of the declaration.

use naga::proc::Layouter;
use naga::{AddressSpace, Span};
use spirv::Op;

use super::errors::refused_at;
use super::size;
use crate::abi::MAX_PUSH_BYTES;
use crate::front::Error;

/// Checks the size of immediates: naga's validator relies on its limit.
pub(super) fn check(module: &naga::Module, source: &str) -> Result<(), Error> {
    let mut layouter = Layouter::default();
    // The validator rejects types without a layout.
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

/// The byte offset of the declaration of the variable or structure whose `OpVariable` or `OpTypeStruct` is at a word,
/// if the words have names.
pub(super) fn declaration_offset(module: &naga::Module, words: &[u32], word: usize) -> Option<usize> {
    let &[first, second, id, ..] = words.get(word..)? else { return None };
    if first & 0xffff == Op::TypeStruct as u32 {
        let name = name(words, second)?;
        let (found, _) = module.types.iter().find(|(_, data)| data.name.as_deref() == Some(&name))?;
        return Some(start(module.types.get_span(found)));
    }
    if first & 0xffff != Op::Variable as u32 {
        return None;
    }
    let name = name(words, id)?;
    let global = module.global_variables.iter().find(|(_, data)| data.name.as_deref() == Some(&name));
    if let Some((variable, _)) = global {
        return Some(start(module.global_variables.get_span(variable)));
    }
    // Variables of different functions may have the same name, which the words do not distinguish.
    let functions = module.functions.iter().map(|(_, function)| function);
    let functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    let mut local = functions.flat_map(|function| {
        let named = function.local_variables.iter().filter(|(_, data)| data.name.as_deref() == Some(&name));
        named.map(|(variable, _)| start(function.local_variables.get_span(variable)))
    });
    let found = local.next()?;
    local.next().is_none().then_some(found)
}

/// The byte offset of the declaration of the function that contains a word, if the words have names.
pub(super) fn function(words: &[u32], word: usize, source: &str) -> Option<usize> {
    let starts = std::iter::successors(Some(5), |&at| Some(at + (words.get(at)? >> 16).max(1) as usize));
    let starts = starts.take_while(|&at| at <= word && at < words.len());
    let found = starts.filter(|&at| words[at] & 0xffff == Op::Function as u32).last()?;
    size::function(&name(words, *words.get(found + 2)?)?, source)
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

    use super::super::WgslModule;

    #[test]
    fn too_large_declarations_are_reported_with_their_line() {
        let buffer = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;";
        for (module, body, expected, place) in [
            ("var<immediate> p: array<vec4<u32>, 17>;", "", "`p`: immediates of 272 bytes, more than 256", "wgsl:2:1"),
            ("var<immediate> p: array<vec4<u32>, 600>;", "", "immediates of 9600 bytes, more than 256", "wgsl:2:1"),
            ("var<private> p: array<u32, 4000000>;", "", "more than 4194304 bytes of Private variables", "wgsl:2:1"),
            ("var<workgroup> p: array<u32, 400000>;", "", "more than 1048576 bytes of Workgroup variables", "wgsl:2:1"),
            ("", "var p: array<u32, 4000000>;", "more than 4194304 bytes of Function variables", "wgsl:4:1"),
        ] {
            let text =
                format!("{buffer}\n{module}\n@compute @workgroup_size(1) fn main() {{\n{body}\no[0] = p[o[1]].x; }}");
            let text = if expected.contains("immediates") { text } else { text.replace(".x", "") };
            let kernel =
                |text: &str| WgslModule::parse(text).and_then(|module| module.kernel("main", &BTreeMap::new()));
            let error = kernel(&text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.ends_with(&format!("at {place}")), "{error}");
        }
        let fits = "var<immediate> p: array<vec4<u32>, 16>; @group(0) @binding(0) var<storage, read_write> o: u32;
            @compute @workgroup_size(1) fn main() { o = p[15].w; }";
        assert_eq!(WgslModule::parse(fits).unwrap().kernel("main", &BTreeMap::new()).unwrap().push_bytes, 256);
    }

    #[test]
    fn too_deep_types_are_reported_with_their_line() {
        let chain = |levels: usize, link: &dyn Fn(usize) -> String| -> String {
            (1..=levels).fold("alias A0 = mat2x2<f32>;\n".to_owned(), |text, level| text + &link(level) + "\n")
        };
        let arrays = |level: usize| format!("alias A{level} = array<A{}, 1>;", level - 1);
        let structs = |level: usize| match level % 2 {
            0 => format!("struct A{level} {{ a: u32, b: A{} }}", level - 1),
            _ => arrays(level),
        };
        let used = |levels: usize| {
            format!(
                "@group(0) @binding(0) var<storage, read_write> o: A{levels}; @compute @workgroup_size(1) fn main() {{ o = A{levels}(); }}"
            )
        };
        let values = |level: usize| match level {
            1 => "const a1 = array(1u);".to_owned(),
            _ => format!("const a{level} = array(a{});", level - 1),
        };
        let expected = "arrays and structures within each other, more than 251 levels at wgsl:";
        for link in [&arrays as &dyn Fn(usize) -> String, &structs] {
            let kernel =
                |text: &str| WgslModule::parse(text).and_then(|module| module.kernel("main", &BTreeMap::new()));
            let fits = kernel(&(chain(251, link) + &used(251)));
            assert!(fits.is_ok(), "{:?}", fits.err());
            let error = kernel(&(chain(252, link) + &used(252))).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{expected}253:")), "{error}");
        }
        for (text, line) in
            [(chain(252, &values), 253), (chain(250, &arrays) + "\nfn f() {\nvar a: array<array<A250, 1>, 1>; }", 254)]
        {
            let error = WgslModule::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{expected}{line}:")), "{error}");
        }
    }

    #[test]
    fn types_of_too_many_others_are_reported_with_their_line() {
        let structs: String =
            (1..20).map(|level| format!("struct A{level} {{ a: A{}, b: A{} }}\n", level - 1, level - 1)).collect();
        let text = format!(
            "alias A0 = u32;\n{structs}@group(0) @binding(0) var<storage, read_write> o: A19;
            @compute @workgroup_size(1) fn main() {{ o.a.a.a.a = o.b.b.b.b; }}"
        );
        let error = WgslModule::parse(&text).and_then(|module| module.kernel("main", &BTreeMap::new())).unwrap_err();
        assert_eq!(error.message, "a type contains more than 65536 others");
        // Each line has twice the parts of the one before.
        assert_eq!(error.line.map(|line| line.line), Some(17));
    }

    #[test]
    fn a_module_of_too_many_words_is_reported_with_the_function_that_exceeds_the_limit() {
        let swizzles = format!("\nfn f#(z: vec4<u32>) {{ _ = z{}; }}", ".xyzw".repeat(950));
        let functions: String = (0..520).map(|number| swizzles.replace('#', &number.to_string())).collect();
        let calls: String = (0..520).map(|number| format!("f{number}(o);")).collect();
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> o: vec4<u32>;{functions}
            @compute @workgroup_size(1) fn main() {{ {calls} }}"
        );
        let error = WgslModule::parse(&text).and_then(|module| module.kernel("main", &BTreeMap::new())).unwrap_err();
        assert_eq!(error.message, "the module has more than 4194304 words");
        let line = error.line.map_or(0, |line| line.line);
        assert!((200..522).contains(&line), "{line}");
    }
}
