//! Our assembler compared with `spirv-as`: the same words for every test file and for disassemblies of compiled
//! shaders.
//!
//! Without SPIRV-Tools the tests are reported as ignored, with the reason on standard error; with `CI` set they fail.
//! So does the test of the peers' shaders, which also needs `glslangValidator` and `SPELTER_PEER_SHADERS`.

#![expect(clippy::print_stderr, reason = "a test that does not run must say so")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test panics")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Trial};
use spelter_shaders::front::spvasm;
use spelter_tests::case::Case;
use spelter_tests::corpus;

/// The variable with the folder of the peers' `.comp` files.
const SHADERS: &str = "SPELTER_PEER_SHADERS";

fn main() {
    let arguments = Arguments::from_args();
    let tools = missing(&["spirv-as", "spirv-dis"]);
    let peers = tools.clone().or_else(|| missing(&["glslangValidator"])).or_else(|| {
        let absent = std::env::var_os(SHADERS).is_none();
        absent.then(|| format!("needs {SHADERS}=<folder of .comp files>"))
    });
    let trials = vec![
        trial("same_words_for_every_test_kernel", tools.clone(), test_kernels),
        trial("same_words_for_every_kind_of_operand", tools, kinds_of_operands),
        trial("same_words_for_the_shaders_of_peers", peers, shaders_of_peers),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// The programs that are needed and not installed.
fn missing(programs: &[&str]) -> Option<String> {
    let absent = |name: &&&str| Command::new(name).arg("--version").stdout(Stdio::null()).status().is_err();
    programs.iter().find(absent).map(|name| format!("needs {name}"))
}

/// A test that is ignored if something is missing, or fails if `CI` is set too.
fn trial(name: &'static str, missing: Option<String>, test: fn()) -> Trial {
    if let Some(missing) = &missing {
        eprintln!("{name}: NOT RUN: {missing}");
    }
    let ignored = missing.is_some() && std::env::var_os("CI").is_none();
    let run = move || match missing {
        Some(missing) => Err(missing.into()),
        None => {
            test();
            Ok(())
        }
    };
    Trial::test(name, run).with_ignored_flag(ignored)
}

fn test_kernels() {
    let texts = corpus::files().into_iter().map(|path| match path.extension() {
        Some(extension) if extension == "wgsl" => naga_disassembled(&path),
        _ => std::fs::read_to_string(&path).ok().map(|text| (path, text)),
    });
    compare(texts.flatten());
}

fn shaders_of_peers() {
    compare(peers().into_iter());
}

/// Both assemblers produce the same words for each text, or both reject it.
fn compare(texts: impl Iterator<Item = (PathBuf, String)>) {
    let mut compared = 0;
    for (path, text) in texts {
        let Ok(ours) = spvasm::assemble(&text) else {
            let refused = theirs(&text).is_none();
            assert!(refused, "{}: spirv-as takes it: {:?}", path.display(), spvasm::assemble(&text));
            continue;
        };
        let theirs = theirs(&text).unwrap_or_else(|| panic!("{}: spirv-as refuses it", path.display()));
        // The generator's word may differ.
        let difference = (0..ours.len().max(theirs.len())).find(|at| *at != 2 && ours.get(*at) != theirs.get(*at));
        assert_eq!(difference, None, "{}: first different word", path.display());
        compared += 1;
    }
    assert!(compared > 0, "nothing was compared");
}

fn kinds_of_operands() {
    let text = include_str!("spirv_as.spvasm");
    let ours = spvasm::assemble(text).unwrap();
    let theirs = theirs(text).expect("spirv-as takes the file");
    assert_eq!(ours[3..], theirs[3..]);
}

/// The output of `spirv-as` for a text.
fn theirs(text: &str) -> Option<Vec<u32>> {
    let version = spvasm::assemble(text).map_or(3, |words| words[1] >> 8 & 0xff);
    let bytes = pipe("spirv-as", &["--target-env", &format!("spv1.{version}"), "-", "-o", "-"], text.as_bytes())?;
    Some(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// WGSL through naga and `spirv-dis`: machine-generated text.
fn naga_disassembled(path: &Path) -> Option<(PathBuf, String)> {
    let words = corpus::spirv(&Case::read(path).ok()?).ok()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = pipe("spirv-dis", &["--no-color", "-"], &bytes)?;
    Some((path.to_owned(), String::from_utf8(text).ok()?))
}

/// Shaders in the folder of [`SHADERS`], through `glslangValidator` and `spirv-dis`.
fn peers() -> Vec<(PathBuf, String)> {
    let Some(folder) = std::env::var_os(SHADERS) else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let disassembled = |path: PathBuf| {
        let spirv = std::env::temp_dir().join(format!("spelter-{}.spv", std::process::id()));
        let compiled =
            Command::new("glslangValidator").args(["-V", "-g", "-o"]).arg(&spirv).arg(&path).output().ok()?;
        assert!(compiled.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&compiled.stdout));
        let text = pipe("spirv-dis", &["--no-color", "-"], &std::fs::read(&spirv).ok()?)?;
        std::fs::remove_file(spirv).ok()?;
        Some((path, String::from_utf8(text).ok()?))
    };
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "comp"))
        .filter_map(disassembled)
        .collect()
}

/// Runs a filter; `None` if it fails.
fn pipe(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    let output = std::thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut stdin, input));
        child.wait_with_output().ok()
    })?;
    output.status.success().then_some(output.stdout)
}
