//! Runs the pipeline on a kernel, and names the parts of the compiler that had an effect.
//!
//! A pass has one if the text of the kernel is another one after it; an access pattern if an access has it; a selection
//! of the back end if it reports itself, or if an instruction that only it emits is in the machine code.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::compile;
use spelter_shaders::ir::Kernel;
use spelter_shaders::vectorize;

/// Parts of selection with the mnemonics that only they emit.
const SELECTIONS: &[(&str, &[&str])] = &[
    ("software prefetch", &["prefetcht0", "prefetchnta", "prefetcht1"]),
    ("non-temporal stores", &["vmovntps", "vmovntdq", "vmovntpd"]),
];

/// A hash of what a kernel prints as.
fn hash(text: impl ToString) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.to_string().hash(&mut hasher);
    hasher.finish()
}

/// The names of the parts, by the names that [`PARTS`](crate::report::PARTS) lists.
///
/// # Errors
///
/// The kernel has no machine code.
pub(crate) fn parts(kernel: &Kernel) -> Result<BTreeSet<&'static str>, String> {
    let mut parts = BTreeSet::new();
    for isa in [Isa::Avx512, Isa::Avx2] {
        let mut last = hash(kernel);
        let mut changed = BTreeSet::new();
        let lowered = compile::lower_for(kernel, isa, |pass, kernel| {
            let now = hash(kernel);
            if std::mem::replace(&mut last, now) != now {
                changed.insert(pass);
            }
        })?;
        let statistics =
            vectorize::statistics(&lowered, compile::access_costs(isa)).map_err(|error| error.to_string())?;
        changed.extend(statistics.into_iter().filter(|&(_, count)| count > 0).map(|(name, _)| name));
        let mut last = None;
        let wide = compile::widen_with(&lowered, isa, |pass, kernel| {
            let now = hash(kernel);
            if last.replace(now).is_some_and(|last| last != now) {
                changed.insert(pass);
            }
        });
        let wide = wide.map_err(|error| error.to_string())?;
        compile::check_widened(&wide)?;
        let program = x86::compile(&wide, isa).map_err(|error| error.to_string())?;
        changed.extend(program.forms());
        let assembly = program.assembly();
        let mnemonics: BTreeSet<&str> = assembly.split_whitespace().collect();
        for (name, emitted) in SELECTIONS {
            if emitted.iter().any(|mnemonic| mnemonics.contains(mnemonic)) {
                changed.insert(name);
            }
        }
        parts.extend(changed);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spelter_shaders::compile::Module;
    use std::collections::BTreeMap;

    fn parts_of(body: &str) -> BTreeSet<&'static str> {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ {body} }}"
        );
        let module = Module::from_wgsl(&text).expect("the text is a module");
        parts(&module.kernel("main", &BTreeMap::new()).expect("it has the entry point")).expect("it compiles")
    }

    #[test]
    fn accesses_have_the_pattern_that_their_index_has() {
        let contiguous = parts_of("data[id.x] = 1u;");
        assert!(contiguous.contains("contiguous") && !contiguous.contains("per lane"), "{contiguous:?}");
        let gathered = parts_of("data[id.x] = data[data[id.x]];");
        assert!(gathered.contains("per lane"), "{gathered:?}");
    }

    #[test]
    fn only_passes_that_change_something_count() {
        let plain = parts_of("data[id.x] = 1u;");
        assert!(!plain.contains("unroll") && !plain.contains("widen_loop_loads"), "{plain:?}");
        let unrolled = parts_of("var sum = 0u; for (var i = 0u; i < 4u; i++) { sum += data[i]; } data[id.x] = sum;");
        assert!(unrolled.contains("unroll"), "{unrolled:?}");
    }
}
