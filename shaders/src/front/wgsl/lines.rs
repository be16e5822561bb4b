//! Maps instructions of a module without debug lines to those of the same module with debug lines.

use spirv::Op;

/// Words before the first instruction.
const HEADER: usize = 5;

/// The word of the instruction in `lined` that corresponds to the one at word `at` of `plain`. Both are written from
/// one text, so apart from names and lines they have the same instructions.
pub(super) fn counterpart(plain: &[u32], at: u32, lined: &[u32]) -> Option<u32> {
    let number = instructions(plain).position(|word| word == at)?;
    instructions(lined).nth(number)
}

/// The word offset of each instruction that is not a debug instruction.
fn instructions(words: &[u32]) -> impl Iterator<Item = u32> {
    let starts = std::iter::successors(Some(HEADER), |&at| {
        let len = *words.get(at)? >> 16;
        (len > 0).then_some(at + len as usize)
    });
    starts.take_while(|&at| at < words.len()).filter(|&at| !is_debug(words[at] & 0xffff)).map(|at| at as u32)
}

fn is_debug(op: u32) -> bool {
    let debug = [
        Op::SourceContinued,
        Op::Source,
        Op::SourceExtension,
        Op::Name,
        Op::MemberName,
        Op::String,
        Op::Line,
        Op::NoLine,
        Op::ModuleProcessed,
    ];
    debug.iter().any(|&debug| debug as u32 == op)
}

#[cfg(test)]
mod tests {
    use super::super::WgslModule;

    #[test]
    fn words_without_lines_are_found_in_the_text() {
        let text = "
            @group(0) @binding(0) var<storage, read_write> a: array<u32>;
            fn twice(x: u32) -> u32 {
                return x * 2u;
            }
            @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                var i = 0u;
                while a[i] != 7u {
                    i = twice(i) + 1u;
                }
            }";
        let module = WgslModule::parse(text).expect("it is valid");
        let plain = module.spirv("main", &Default::default(), false).expect("it is valid");
        let line_of = |op: spirv::Op, number| {
            let words = super::instructions(&plain).filter(|&word| plain[word as usize] & 0xffff == op as u32);
            let word = words.into_iter().nth(number).expect("it is there");
            module.line_of("main", &Default::default(), word).map(|line| line.line)
        };
        assert_eq!(line_of(spirv::Op::IMul, 0), Some(4));
        assert_eq!(line_of(spirv::Op::FunctionCall, 0), Some(9));
        let loop_at = line_of(spirv::Op::LoopMerge, 0).expect("it has a line");
        assert!((8..=9).contains(&loop_at), "{loop_at}");
        assert_eq!(module.line_of("main", &Default::default(), 3), None);
    }
}
