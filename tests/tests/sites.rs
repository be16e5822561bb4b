//! Every file of `sites/**` is a test of its own name: a shader, and the sites that checked mode sees in it. `BLESS=1`
//! rewrites the expectation.
//!
//! After the line `; expect` (in WGSL `// expect`) come the memory model with the generator, then each site: what it
//! does, the instruction, and the calls through which it was inlined.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_tests::corpus;
use spelter_tests::engine::checked;

fn main() {
    let root = root();
    files::run(&root, corpus::files_below(&root, &["spvasm", "wgsl"]), check, bless);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sites")
}

/// A test file: the shader, and the expectation in comments.
struct File {
    shader: String,
    expected: Vec<String>,
    comment: &'static str,
}

impl File {
    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let comment = if path.extension().is_some_and(|extension| extension == "wgsl") { "//" } else { ";" };
        let head = format!("{comment} expect");
        let mut lines = text.lines();
        let shader = lines.by_ref().take_while(|line| *line != head).map(|line| format!("{line}\n")).collect();
        let expected = lines.map(|line| line.trim_start_matches(comment).trim().to_owned()).collect();
        Ok(Self { shader, expected, comment })
    }

    /// The memory model and the sites, as the file describes them.
    fn found(&self) -> Result<Vec<String>, String> {
        let words;
        let module = if self.comment == ";" {
            words = spvasm::assemble(&self.shader).map_err(|error| error.to_string())?;
            Module::from_spirv(&words)
        } else {
            words = Vec::new();
            Module::from_wgsl(&self.shader)
        };
        let module = module.map_err(|error| error.to_string())?;
        let entry = module.entry_points().next().unwrap_or_default().to_owned();
        let none = BTreeMap::new();
        let kernel = module.kernel(&entry, &none).map_err(|error| error.to_string())?;
        let words = match &module {
            Module::Wgsl(module) => module.to_spirv(&entry, &none).map_err(|error| error.to_string())?,
            Module::Spirv(_) => words,
        };
        let name = |word: u32| {
            let op = words.get(word as usize).and_then(|first| spirv::Op::from_u32(first & 0xffff));
            op.map_or_else(|| "unknown".to_owned(), |op| format!("Op{op:?}"))
        };
        let kernel = checked(&kernel);
        let mut found = vec![format!("{}, generator {}", kernel.memory_model.name(), kernel.generator)];
        for data in kernel.sites.values() {
            let calls = data.inlined_at.iter().map(|&word| format!(" via {}", name(word)));
            found.push(format!("{} by {}{}", data.action, name(data.word), calls.collect::<String>()));
        }
        Ok(found)
    }
}

fn check(path: &Path) -> Result<(), String> {
    let file = File::read(path)?;
    let found = file.found()?;
    if found == file.expected {
        return Ok(());
    }
    Err(format!("expected:\n{}\nfound:\n{}", file.expected.join("\n"), found.join("\n")))
}

fn bless(path: &Path) -> Result<Option<String>, String> {
    let file = File::read(path)?;
    let comment = file.comment;
    let found: String = file.found()?.iter().map(|line| format!("{comment} {line}\n")).collect();
    Ok(Some(format!("{}{comment} expect\n{found}", file.shader)))
}
