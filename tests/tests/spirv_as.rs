//! Our assembler against `spirv-as`: the same words for every test file and for disassemblies of compiled shaders.
//!
//! Without SPIRV-Tools the comparison is skipped, loudly; where `CI` is set their absence is a failure.

#![expect(clippy::print_stderr, reason = "a test that is skipped must say so")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spelter_shaders::front::spvasm;
use spelter_tests::case::Case;
use spelter_tests::corpus;

#[test]
fn same_words_as_spirv_as() {
    if !tools_are_here() {
        return;
    }
    let texts = corpus::files().into_iter().map(|path| match path.extension() {
        Some(extension) if extension == "wgsl" => naga_disassembled(&path),
        _ => std::fs::read_to_string(&path).ok().map(|text| (path, text)),
    });
    let mut compared = 0;
    for (path, text) in texts.flatten().chain(peers()) {
        let Ok(ours) = spvasm::assemble(&text) else {
            let refused = theirs(&text).is_none();
            assert!(refused, "{}: spirv-as takes it: {:?}", path.display(), spvasm::assemble(&text));
            continue;
        };
        let theirs = theirs(&text).unwrap_or_else(|| panic!("{}: spirv-as refuses it", path.display()));
        // The generator is a matter of taste.
        let difference = (0..ours.len().max(theirs.len())).find(|at| *at != 2 && ours.get(*at) != theirs.get(*at));
        assert_eq!(difference, None, "{}: first different word", path.display());
        compared += 1;
    }
    eprintln!("{compared} modules compared with spirv-as");
}

#[test]
fn same_words_for_every_kind_of_operand() {
    if !tools_are_here() {
        return;
    }
    let text = include_str!("spirv_as.spvasm");
    let ours = spvasm::assemble(text).unwrap();
    let theirs = theirs(text).expect("spirv-as takes the file");
    assert_eq!(ours[3..], theirs[3..]);
}

/// A panic under CI and a loud skip elsewhere.
fn tools_are_here() -> bool {
    let found = Command::new("spirv-as").arg("--version").stdout(Stdio::null()).status().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "CI needs spirv-as (SPIRV-Tools)");
    if !found {
        eprintln!("SKIPPED: spirv-as is not installed, our assembler was compared with nothing");
    }
    found
}

/// What `spirv-as` makes of a text.
fn theirs(text: &str) -> Option<Vec<u32>> {
    let version = spvasm::assemble(text).map_or(3, |words| words[1] >> 8 & 0xff);
    let bytes = pipe("spirv-as", &["--target-env", &format!("spv1.{version}"), "-", "-o", "-"], text.as_bytes())?;
    Some(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// WGSL through naga and `spirv-dis`: text that no person wrote.
fn naga_disassembled(path: &Path) -> Option<(PathBuf, String)> {
    let words = corpus::spirv(&Case::read(path).ok()?).ok()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = pipe("spirv-dis", &["--no-color", "-"], &bytes)?;
    Some((path.to_owned(), String::from_utf8(text).ok()?))
}

/// Shaders in the folder that `SPELTER_PEER_SHADERS` names, through `glslangValidator` and `spirv-dis`.
fn peers() -> Vec<(PathBuf, String)> {
    let Some(folder) = std::env::var_os("SPELTER_PEER_SHADERS") else { return Vec::new() };
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

/// Runs a filter; `None` where it fails.
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
