//! The profiles that the processes of a foreign program write, for `spelter exec --profile`.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::json;

use crate::args::ExecArgs;
use crate::columns;
use crate::failure::Failure;
use crate::file;
use crate::profile::Programs;

/// The largest profile that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A folder with one file for each process that creates a device, removed on drop.
pub(crate) struct ProfileFolder(PathBuf);

impl ProfileFolder {
    pub(crate) fn create() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("spelter-profile-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| Failure::file(&path, error))?;
        Ok(Self(path))
    }

    /// The file of the first process; further ones add their numbers to the name.
    pub(crate) fn first(&self) -> PathBuf {
        self.0.join("profile.json")
    }

    /// Prints the times of all processes together.
    pub(crate) fn print(&self, args: &ExecArgs) -> Result<(), Failure> {
        let (mut programs, mut processes) = (Programs::default(), 0);
        let files = std::fs::read_dir(&self.0).map_err(|error| Failure::file(&self.0, error))?;
        for entry in files.flatten() {
            let path = entry.path();
            let text = String::from_utf8_lossy(&file::read(&path, MAX_BYTES)?).into_owned();
            programs.add_driver(&text).map_err(|problem| Failure::file(&path, problem))?;
            processes += 1;
        }
        let target = args.profile.as_ref().and_then(Option::as_ref);
        let text = if args.json {
            format!("{}\n", json!({ "processes": processes, "programs": programs.json() }))
        } else if programs.is_empty() {
            let plural = if processes == 1 { "" } else { "es" };
            format!("no dispatches: {processes} process{plural} created a device of Spelter\n")
        } else {
            let (head, rows) = programs.table();
            columns::lines(&head, &rows).join("\n") + "\n"
        };
        match target {
            Some(path) => std::fs::write(path, text).map_err(|error| Failure::file(path, error)),
            // A closed standard error needs no table.
            None => {
                let _ = io::stderr().lock().write_all(text.as_bytes());
                Ok(())
            }
        }
    }
}

impl Drop for ProfileFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
