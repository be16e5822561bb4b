//! The folder of `spelter check` for what the checked processes write. It is removed however this process ends.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Child;

use spelter::check::report::Filter;

use crate::failure::Failure;

/// The most that one run of a program may write to the file of lines, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A folder for temporary files, removed on drop, or by another process if this one ends before.
pub(super) struct Folder {
    path: PathBuf,
    remover: Option<Child>,
}

impl Folder {
    pub(super) fn create() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("spelter-check-{}", std::process::id()));
        // An earlier process of this number may have left it, where there is no remover. A folder of another user
        // stays, which is an error.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).map_err(|error| Failure::file(&path, error))?;
        let remover = remover(&path);
        Ok(Self { path, remover })
    }

    /// The file of lines.
    pub(super) fn findings(&self) -> PathBuf {
        self.path.join("findings.jsonl")
    }

    /// What was appended to the file of lines since an earlier call, which `from` remembers, in bytes.
    pub(super) fn new_lines(&self, from: &mut u64) -> Result<String, Failure> {
        let path = self.findings();
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(Failure::file(&path, error)),
        };
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(*from)).and_then(|_| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|error| Failure::file(&path, error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Failure::file(&path, format!("more than {MAX_BYTES} bytes of findings")));
        }
        *from += bytes.len() as u64;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file with all suppressions.
    pub(super) fn suppressions(&self, filter: &Filter) -> Result<PathBuf, Failure> {
        let path = self.path.join("suppressions");
        let lines: String = filter.suppressions.iter().map(|suppression| format!("{suppression}\n")).collect();
        std::fs::write(&path, lines).map_err(|error| Failure::file(&path, error))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.path);
        if let Some(mut remover) = self.remover.take() {
            drop(remover.stdin.take());
            let _ = remover.wait();
        }
    }
}

/// A process that removes the folder when this one has ended: by Ctrl-C, say, which ends it before `drop` runs. Then
/// its input ends. It is in a process group of its own, which the signals of a terminal do not reach.
#[cfg(unix)]
fn remover(path: &Path) -> Option<Child> {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    let script = "cat > /dev/null; rm -rf -- \"$1\"";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    // Without it, a signal leaves the folder.
    command.spawn().ok()
}

/// Elsewhere, a process that is ended leaves the folder to the system.
#[cfg(not(unix))]
fn remover(_: &Path) -> Option<Child> {
    None
}
