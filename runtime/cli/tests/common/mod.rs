//! Runs the program and captures its output; each test writes its shaders to its own folder.

#![allow(clippy::unwrap_used)] // what fails here fails the test

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder for the files of one test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder. `test` is the test's name: no two tests share one.
    pub(crate) fn new(test: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A folder with one shader in it.
    pub(crate) fn with(test: &str, name: &str, text: &str) -> Self {
        let folder = Self::new(test);
        folder.write(name, text.as_bytes());
        folder
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    /// Runs `spelter` in the folder. Arguments are separated by spaces.
    pub(crate) fn spelter(&self, line: &str) -> Ended {
        self.with_environment(line, &[])
    }

    /// The same with these variables of the environment.
    pub(crate) fn with_environment(&self, line: &str, variables: &[(&str, &str)]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        command.current_dir(&self.0).args(line.split_whitespace()).stdin(Stdio::null());
        Ended::from(command.envs(variables.iter().copied()).output().unwrap())
    }

    /// The standard output of a run that must succeed.
    pub(crate) fn good(&self, line: &str) -> String {
        let ended = self.spelter(line);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{line}");
        ended.stdout
    }

    /// The JSON object of a run that must succeed.
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.good(line)).unwrap()
    }

    /// The message of a run that must fail, with the status of some cause, and print nothing to standard output.
    pub(crate) fn error(&self, line: &str) -> String {
        let ended = self.spelter(line);
        assert!([1, 4, 5, 6].contains(&ended.status), "{line}: {}\n{}", ended.status, ended.stderr);
        assert_eq!(ended.stdout, "", "{line}\n{}", ended.stderr);
        let message = ended.stderr.trim_end().strip_prefix("error: ").unwrap_or_else(|| panic!("{}", ended.stderr));
        message.to_owned()
    }

    /// The message of wrong usage: status 2.
    pub(crate) fn usage(&self, line: &str) -> String {
        let ended = self.spelter(line);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{line}\n{}", ended.stderr);
        ended.stderr
    }
}

/// The result of the program.
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Whether there is a compiler of GLSL. Without one, tests in it are not run, and say so; in CI there must be one.
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
pub(crate) fn has_glsl() -> bool {
    let installed = |program| Command::new(program).arg("--version").output().is_ok();
    let has = installed("glslc") || installed("glslangValidator");
    assert!(has || std::env::var_os("CI").is_none(), "GLSL needs glslc or glslangValidator");
    if !has {
        eprintln!("NOT RUN: GLSL needs glslc or glslangValidator, and neither is installed");
    }
    has
}
