//! Hashes of the SIMD form and the machine code of every kernel among the test files and the benches: a change of
//! names or structure changes no hash of machine code, and a change of the optimiser shows which kernels it affects.
//! `BLESS=1` rewrites `forms.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::compile::{self, Module};
use spelter_shaders::front::spvasm;
use spelter_shaders::ir::Kernel;
use spelter_tests::case::Case;
use spelter_tests::corpus;

const HEAD: &str =
    "# kernel, entry point, instruction set: hash of the SIMD form, hash of the machine code. Written by BLESS=1.\n";

/// Hexadecimal digits of a hash.
const DIGITS: usize = 12;

#[test]
fn simd_forms_and_machine_code_are_what_they_were() {
    let mut found = String::from(HEAD);
    for (name, kernels) in all() {
        for kernel in kernels {
            for isa in [Isa::Avx512, Isa::Avx2] {
                let [simd, code] = hashes(&kernel, isa);
                let _ = writeln!(found, "{name} {} {}: {simd} {code}", kernel.name, isa.name());
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/forms.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).expect("the list can be written");
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let mut report = String::new();
    let lines = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(": "));
        pairs.map(|(name, hashes)| (name.to_owned(), hashes.to_owned())).collect()
    };
    let (known, found) = (lines(&known), lines(&found));
    for name in known.keys().chain(found.keys().filter(|name| !known.contains_key(*name))) {
        let [before, now] = [&known, &found].map(|list| list.get(name).map_or("none", String::as_str));
        if before != now {
            let _ = writeln!(report, "{name}: {before} became {now}");
        }
    }
    assert!(report.is_empty(), "BLESS=1 takes these as they are now:\n{report}");
}

/// Each file's kernels, by file name. Files that test errors have none.
fn all() -> BTreeMap<String, Vec<Kernel>> {
    let mut all = BTreeMap::new();
    for path in corpus::files() {
        let case = Case::read(&path).expect("a test file can be read");
        all.insert(corpus::name(&path), kernels(&path, &case.text, &case.specialization));
    }
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/kernels");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&benches)
        .expect("the benches are there")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a bench's kernel can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.insert(format!("benches/{name}"), kernels(&path, &text, &BTreeMap::new()));
    }
    all
}

fn kernels(path: &Path, text: &str, constants: &BTreeMap<u32, u64>) -> Vec<Kernel> {
    let module = if path.extension().is_some_and(|extension| extension == "wgsl") {
        Module::from_wgsl(text).ok()
    } else {
        spvasm::assemble(text).ok().and_then(|words| Module::from_spirv(&words).ok())
    };
    let Some(module) = module else { return Vec::new() };
    module.entry_points().filter_map(|entry| module.kernel(entry, constants).ok()).collect()
}

/// Hashes of the SIMD form and of the machine code, or the reason why there are none.
fn hashes(kernel: &Kernel, isa: Isa) -> [String; 2] {
    let hash = |text: String| blake3::hash(text.as_bytes()).to_hex()[..DIGITS].to_owned();
    let Ok(lowered) = compile::lower_for(kernel, isa, |_, _| {}) else { return ["-".into(), "-".into()] };
    let Ok(wide) = compile::widen(&lowered, isa) else { return ["-".into(), "-".into()] };
    let code = x86::compile(&wide, isa).map_or_else(|_| "-".into(), |program| hash(program.assembly()));
    [hash(wide.to_string()), code]
}
