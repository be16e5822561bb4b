//! Every file of `passes/**` is a test of its own name: a kernel before and after a pass, in the manner of Cranelift's
//! filetests. `BLESS=1` rewrites the kernel after the pass.
//!
//! | line | meaning |
//! |---|---|
//! | `; test licm` | first line: the passes to run, in order; the first one names the folder |
//! | `; expect` | after the kernel: the text that follows is the kernel after the passes, exactly as it is printed |
//! | `; unchanged` | instead of `; expect`: the passes change nothing |
//!
//! Files `*.ir` have kernels of the scalar IR (passes of `opt`, and those that prepare a kernel for vectorization),
//! files `*.simd` of the SIMD IR. Both texts pass the verifier. Files `*.expr` are for passes that rewrite expressions:
//! after the first line, each line is a comment (`;`), or a test `iadd(a, 0) => a` of one expression
//! ([`spelter_tests::expression`]) before and after the passes.

mod files;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use spelter_shaders::compile::SIMD_PASSES;
use spelter_shaders::vectorize::PREPARE_PASSES;
use spelter_shaders::{ir, opt, simd};
use spelter_tests::{corpus, expression};

const EXPECT: &str = "; expect";
const UNCHANGED: &str = "; unchanged";
const ARROW: &str = " => ";

fn main() {
    let root = root();
    files::run(&root, corpus::files_below(&root, &["expr", "ir", "simd"]), check, bless);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("passes")
}

/// The passes that the first line of a file names.
fn passes(path: &Path, text: &str) -> Result<Vec<String>, String> {
    let first = text.lines().next().and_then(|line| line.strip_prefix("; test "));
    let passes: Vec<String> =
        first.ok_or("the first line is not `; test PASS`")?.split_whitespace().map(str::to_owned).collect();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    if passes.first().is_none_or(|first| *first != folder) {
        return Err(format!("a test of {passes:?} is in the folder {folder}"));
    }
    Ok(passes)
}

/// Runs a pass on the scalar IR; `None` if there is no such pass, or the kernel is not for it.
fn run_scalar(kernel: &mut ir::Kernel, name: &str) -> Option<()> {
    if let Some(pass) = PREPARE_PASSES.iter().find(|pass| pass.name == name) {
        return pass.run_alone(kernel).ok().map(|_| ());
    }
    let pass = opt::PASSES.iter().chain([&opt::CONTRACT]).find(|pass| pass.name == name)?;
    (pass.run)(kernel);
    Some(())
}

/// A file of expressions after the passes: the text with the results that were found.
fn rewrite(path: &Path) -> Result<[String; 2], String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let passes = passes(path, &text)?;
    let mut found = String::new();
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with(';') {
            found += &format!("{line}\n");
            continue;
        }
        let before = line.split_once(ARROW).map_or(line, |(before, _)| before).trim();
        let mut kernel = expression::parse(before)?;
        for pass in &passes {
            run_scalar(&mut kernel, pass).ok_or_else(|| format!("there is no pass {pass}"))?;
            ir::verify(&kernel).map_err(|error| format!("{before}: {pass}: {error}\n{kernel}"))?;
        }
        found += &format!("{before}{ARROW}{}\n", expression::print(&kernel));
    }
    Ok([text, found])
}

/// A test file of kernels.
struct File {
    /// Names of the passes.
    passes: Vec<String>,
    /// The text up to the expectation.
    before: String,
    /// The kernel after the passes; `None` if they change nothing.
    expected: Option<String>,
}

impl File {
    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let passes = passes(path, &text)?;
        let lines: Vec<&str> = text.lines().collect();
        let Some(at) = lines.iter().position(|line| [EXPECT, UNCHANGED].contains(line)) else {
            return Ok(Self { passes, before: text, expected: Some(String::new()) });
        };
        let expected = (lines[at] == EXPECT).then(|| lines[at + 1..].join("\n"));
        Ok(Self { passes, before: lines[..at].join("\n"), expected })
    }

    /// The kernel before and after the passes, as it is printed.
    fn run(&self, path: &Path) -> Result<[String; 2], String> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("ir") => self.run_on(ir::Kernel::parse, ir::verify, run_scalar),
            _ => self.run_on(simd::Kernel::parse, simd::verify, |kernel, name| {
                let pass = SIMD_PASSES.iter().find(|pass| pass.name == name)?;
                (pass.run)(kernel);
                Some(())
            }),
        }
    }

    fn run_on<Kernel: Display, ParseError: Display, VerifyError: Display>(
        &self,
        parse: fn(&str) -> Result<Kernel, ParseError>,
        verify: fn(&Kernel) -> Result<(), VerifyError>,
        run: fn(&mut Kernel, &str) -> Option<()>,
    ) -> Result<[String; 2], String> {
        let mut kernel = parse(&self.before).map_err(|error| error.to_string())?;
        let verify = |kernel: &Kernel, when: &str| verify(kernel).map_err(|error| format!("{when}: {error}\n{kernel}"));
        verify(&kernel, "before")?;
        let before = kernel.to_string();
        for pass in &self.passes {
            run(&mut kernel, pass).ok_or_else(|| format!("there is no pass {pass}"))?;
            verify(&kernel, pass)?;
        }
        Ok([before, kernel.to_string()])
    }
}

fn is_expressions(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "expr")
}

fn check(path: &Path) -> Result<(), String> {
    if is_expressions(path) {
        let [expected, found] = rewrite(path)?;
        let wrong = expected.lines().zip(found.lines()).filter(|(expected, found)| expected != found);
        let wrong: String = wrong.map(|(expected, found)| format!("expected {expected}\nfound    {found}\n")).collect();
        return if wrong.is_empty() { Ok(()) } else { Err(wrong) };
    }
    let file = File::read(path)?;
    let [before, after] = file.run(path)?;
    let expected = file.expected.as_deref().unwrap_or(&before);
    if after.trim() == expected.trim() { Ok(()) } else { Err(difference(expected.trim(), after.trim())) }
}

/// The texts from the first line on that differs.
fn difference(expected: &str, found: &str) -> String {
    let same = expected.lines().zip(found.lines()).take_while(|(expected, found)| expected == found).count();
    let rest = |text: &str| text.lines().skip(same).collect::<Vec<_>>().join("\n");
    format!("from line {} of the kernel on, expected:\n{}\nfound:\n{}", same + 1, rest(expected), rest(found))
}

fn bless(path: &Path) -> Result<Option<String>, String> {
    if is_expressions(path) {
        return rewrite(path).map(|[_, found]| Some(found));
    }
    let file = File::read(path)?;
    let [before, after] = file.run(path)?;
    let head = file.before.trim_end();
    let text = if before == after { format!("{UNCHANGED}\n") } else { format!("{EXPECT}\n\n{}\n", after.trim_end()) };
    Ok(Some(format!("{head}\n\n{text}")))
}
