//! Compiles a peer's shader and runs it through the program, buffers as files.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the folder of the peers' `.comp` files.
const SHADERS: &str = "SPELTER_PEER_SHADERS";

/// The requirements of the tests that this machine lacks.
pub(super) fn missing() -> Option<&'static str> {
    if std::env::var_os(SHADERS).is_none() {
        return Some("needs SPELTER_PEER_SHADERS=<folder of .comp files>");
    }
    let compiler = Command::new("glslangValidator").arg("--version").output();
    compiler.is_err().then_some("needs glslangValidator")
}

/// A peer's shader as a SPIR-V file in its own folder.
pub(super) struct Kernel {
    folder: PathBuf,
}

impl Kernel {
    /// Compiles a shader of the peers' folder. Panics if any requirement of [`missing`] is absent.
    pub(super) fn compile(name: &str) -> Self {
        let shaders = std::env::var_os(SHADERS).unwrap();
        let folder = std::env::temp_dir().join(format!("spelter-peers-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(&shaders).join(format!("{name}.comp"));
        let kernel = Self { folder };
        let output = Command::new("glslangValidator")
            .args(["-V", "--target-env", "vulkan1.1", "-o"])
            .arg(kernel.spirv())
            .arg(&source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stdout));
        kernel
    }

    fn spirv(&self) -> PathBuf {
        self.folder.join("kernel.spv")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        command.arg("run").arg(self.spirv());
        command
    }

    /// Runs with `buffers` at bindings 0, 1, … of set 0; returns those named in `wanted`.
    pub(super) fn run(&self, groups: [u32; 3], buffers: &[Vec<u8>], push: &[u8], wanted: &[usize]) -> Vec<Vec<u8>> {
        let mut command = self.command();
        command.arg("--groups").arg(groups.map(|g| g.to_string()).join(","));
        for (binding, bytes) in buffers.iter().enumerate() {
            let file = self.folder.join(format!("in{binding}"));
            std::fs::write(&file, bytes).unwrap();
            command.arg("--bind").arg(format!("0.{binding}=@{}", file.display()));
        }
        if !push.is_empty() {
            let words: Vec<String> = to_words(push).iter().map(u32::to_string).collect();
            command.arg("--push").arg(format!("u32:{}", words.join(",")));
        }
        let file = |binding| self.folder.join(format!("out{binding}"));
        for &binding in wanted {
            command.arg("--save").arg(format!("0.{binding}={}", file(binding).display()));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        wanted.iter().map(|&binding| std::fs::read(file(binding)).unwrap()).collect()
    }

    /// Runs a command that must fail, and returns the message.
    pub(super) fn refused(&self) -> String {
        let output = self.command().output().unwrap();
        assert_eq!(output.status.code(), Some(5), "a rule is broken");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Files that cannot be removed only take space in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Bytes of words.
pub(super) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Bytes of floats.
pub(super) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Words of bytes.
pub(super) fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Floats of bytes.
pub(super) fn to_floats(bytes: &[u8]) -> Vec<f32> {
    to_words(bytes).into_iter().map(f32::from_bits).collect()
}

/// Words by a multiplicative generator modulo 2^64, the high halves.
pub(super) fn random_words(count: usize, seed: u64) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
            (state >> 32) as u32
        })
        .collect()
}

/// Floats from -1 to 1.
pub(super) fn random_floats(count: usize, seed: u64) -> Vec<f32> {
    random_words(count, seed).into_iter().map(|w| (w >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Each value within `tolerance`, relative to the largest magnitude of the expected ones or 1.
pub(super) fn assert_near(found: &[f32], expected: &[f32], tolerance: f32) {
    let scale = expected.iter().fold(1.0f32, |most, x| most.max(x.abs()));
    assert_near_absolute(found, expected, tolerance * scale);
}

/// Each value within `tolerance`.
pub(super) fn assert_near_absolute(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance, "element {i}: {found} instead of {expected} within {tolerance}");
    }
}
