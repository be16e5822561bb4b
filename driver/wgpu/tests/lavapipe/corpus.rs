//! The WGSL files of `tests/kernels`, which have their buffers in comments.

use spelter_tests::case::Case;
use spelter_tests::corpus;
use spelter_tests::values::Word;

use super::work::Work;

/// Why a file is not compared.
const FOREIGN: &str = "naga writes it wrong, which Spelter mends when it gets naga's module, and lavapipe does not see";
const OUTSIDE: &str = "an index is out of bounds, where WGSL permits several results";
const LONG: &str = "lavapipe compiles it for many seconds";

/// Files that are not compared, and why.
const NOT_COMPARED: [(&str, &str); 7] = [
    ("constants/override_of_64_bits.wgsl", "naga panics when it writes SPIR-V with overrides of 64 bits"),
    ("types/wgsl_wide_conversions.wgsl", FOREIGN),
    ("memory/arrays_in_structures.wgsl", OUTSIDE),
    ("memory/private_constant_outside.wgsl", OUTSIDE),
    ("functions/large_values.wgsl", LONG),
    ("functions/very_large_values.wgsl", LONG),
    ("memory/large_copies.wgsl", LONG),
];

pub(crate) fn all() -> Vec<Work> {
    let names: Vec<_> = corpus::files().iter().map(|path| corpus::name(path)).collect();
    NOT_COMPARED.iter().for_each(|(name, _)| assert!(names.iter().any(|known| known == name), "{name}"));
    let wgsl = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "wgsl");
    let cases = corpus::files().into_iter().filter(wgsl).map(|path| Case::read(&path).unwrap());
    cases.filter(|case| case.error.is_none()).filter_map(|case| work(&case)).collect()
}

/// `None` for a file with images, which this table does not make.
fn work(case: &Case) -> Option<Work> {
    let name = corpus::name(&case.path);
    let is_plain = case.images.is_empty() && case.samplers.is_empty() && case.texels.is_empty();
    if !is_plain || !case.addresses.is_empty() || NOT_COMPARED.iter().any(|(listed, _)| *listed == name) {
        return None;
    }
    let bits = |words: &Vec<Word>| words.iter().map(|word| word.bits).collect::<Vec<u32>>();
    let kernel = spelter_shaders::compile::Module::from_wgsl(&case.text).unwrap();
    let entry = case.entry.clone().or_else(|| kernel.entry_points().next().map(ToOwned::to_owned));
    Some(Work {
        name,
        source: case.text.clone(),
        entry: entry.unwrap_or_default(),
        immediates: bits(&case.push),
        buffers: case.binds.iter().map(|(slot, words)| ((slot.set, slot.binding), bits(words))).collect(),
        groups: case.groups,
        // Overrides keep their defaults: wgpu takes their values as numbers, the files have their bits.
        ..Work::default()
    })
}
