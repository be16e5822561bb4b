//! `spelter icd` and `spelter exec`: Vulkan programs that were written for any driver find this one.
//!
//! The Vulkan loader reads manifests: small JSON files with the path of a driver. `icd` puts one where the loader looks;
//! `exec` makes one for a single program, and tells the loader by environment variables to look nowhere else.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use serde_json::json;

use crate::args::{ExecArgs, IcdArgs, IcdCommand, Place};
use crate::environment::variable;
use crate::failure::Failure;
use crate::output::{self, Output};

/// The manifest's name among those of other drivers.
const NAME: &str = "spelter_icd.json";

/// Names the driver's library, if it is not where it is looked for.
const LIBRARY: &str = "SPELTER_ICD_LIBRARY";

/// `spelter icd`.
pub(crate) fn run(args: &IcdArgs, output: &mut Output) -> Result<(), Failure> {
    match &args.command {
        IcdCommand::Manifest => output.line(manifest()?),
        IcdCommand::Install(place) => {
            let path = folder(place)?.join(NAME);
            let manifest = manifest()?;
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, manifest + "\n")).map_err(|error| Failure::file(&path, error))?;
            output.line(format!("installed: {}", path.display()))
        }
        IcdCommand::Uninstall(place) => {
            let path = folder(place)?.join(NAME);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(Failure::file(&path, "is not there: Spelter is not installed"))
                }
                removed => removed.map_err(|error| Failure::file(&path, error)),
            }?;
            output.line(format!("removed: {}", path.display()))
        }
    }
}

/// `spelter exec`: ends as the program does.
pub(crate) fn exec(args: &ExecArgs) -> Result<(), Failure> {
    if let Some(path) = &args.trace {
        prepare(path).map_err(|error| Failure::file(path, error))?;
    }
    let path = std::env::temp_dir().join(format!("spelter-{}-{NAME}", std::process::id()));
    std::fs::write(&path, manifest()?).map_err(|error| Failure::file(&path, error))?;
    let ended = command(args, &path).status();
    // Left behind, it does no harm.
    let _ = std::fs::remove_file(&path);
    let (program, _) = split(args);
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => std::process::exit(code(status)),
        Err(error) => {
            output::report(&Failure(format!("{program}: {error}")));
            // As a shell, env and sudo tell it: found but not to be run, or not found.
            std::process::exit(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
        }
    }
}

/// Makes the file of a timeline, which is empty until there is work: better known before the program runs that it cannot be.
fn prepare(path: &Path) -> std::io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            file.write_all(b"[\n]\n")
        }
        // Another program's timeline: this one's goes beside it.
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn split(args: &ExecArgs) -> (&str, &[String]) {
    args.command.split_first().map_or(("", &[]), |(program, rest)| (program, rest))
}

/// The program, with the loader pointed at the manifest: new loaders and old ones.
fn command(args: &ExecArgs, manifest: &Path) -> Command {
    let (program, rest) = split(args);
    let mut command = Command::new(program);
    command.args(rest).env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
    let set = [
        ("SPELTER_ADVERTISE_GRAPHICS", args.graphics.then(|| "1".to_owned())),
        ("SPELTER_STATS", args.stats.then(|| "1".to_owned())),
        ("SPELTER_WORKERS", args.device.workers.map(|workers| workers.to_string())),
        ("SPELTER_BACKEND", args.device.backend.map(|backend| backend.name().to_owned())),
        ("SPELTER_TIME_LIMIT", args.device.time_limit.map(|limit| limit.as_secs_f64().to_string())),
    ];
    command.envs(set.into_iter().filter_map(|(name, value)| Some((name, value?))));
    // The program may change its folder before it makes a device.
    command.envs(args.trace.as_ref().map(|path| ("SPELTER_TRACE", std::path::absolute(path).unwrap_or(path.clone()))));
    command
}

/// As a shell tells it: 128 and the signal, where one ended the program.
fn code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    status.code().unwrap_or_else(|| 128 + signal.unwrap_or(0))
}

/// The manifest's text.
fn manifest() -> Result<String, Failure> {
    let library = library()?;
    let version = "1.3.281";
    let manifest = json!({
        "file_format_version": "1.0.1",
        "ICD": { "library_path": library, "api_version": version },
    });
    Ok(manifest.to_string())
}

/// The driver: beside this program, where cargo puts it, or in a `lib` folder next to this program's.
fn library() -> Result<PathBuf, Failure> {
    let name = format!("{}vulkan_spelter{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    if let Some(path) = variable(LIBRARY) {
        let path = std::path::absolute(path).map_err(Failure::from)?;
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Failure(format!("{LIBRARY}={}: no such file", path.display())))
        };
    }
    let program = std::env::current_exe()?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let places = [beside.to_owned(), beside.join("deps"), beside.join("../lib"), beside.join("../lib/spelter")];
    let found = places.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let looked: Vec<_> = places.iter().map(|folder| folder.display().to_string()).collect();
        Failure(format!("{name} is in none of {}: build spelter-icd, or set {LIBRARY}", looked.join(", ")))
    })
}

/// Where the loader looks for manifests.
fn folder(place: &Place) -> Result<PathBuf, Failure> {
    if place.system {
        return Ok(PathBuf::from("/etc/vulkan/icd.d"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let data = data.ok_or_else(|| Failure("neither XDG_DATA_HOME nor HOME is set".to_owned()))?;
    Ok(data.join("vulkan/icd.d"))
}
