//! `spelter icd`, `spelter exec` and the program of `spelter check`: let Vulkan programs find this driver.
//!
//! The Vulkan loader reads manifests: small JSON files with the path of a driver. `icd` installs one where the loader
//! searches; `exec` writes one for a single program and sets environment variables so that the loader uses only that.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use serde_json::json;

use crate::args::{ExecArgs, IcdArgs, IcdCommand, InstallScope};
use crate::environment::variable;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::profile_folder::ProfileFolder;

/// The manifest's name among those of other drivers.
const NAME: &str = "spelter_icd.json";

/// The variable with the path of the driver's library, if it is not in a default location.
const LIBRARY: &str = "SPELTER_ICD_LIBRARY";

/// `spelter icd`.
pub(crate) fn run(args: &IcdArgs, output: &mut Output) -> Result<(), Failure> {
    match &args.command {
        IcdCommand::Manifest => output.line(manifest()?),
        IcdCommand::Install(scope) => {
            let path = folder(scope)?.join(NAME);
            let manifest = manifest()?;
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, manifest + "\n")).map_err(|error| Failure::file(&path, error))?;
            output.line(format!("installed: {}", path.display()))
        }
        IcdCommand::Uninstall(scope) => {
            let path = folder(scope)?.join(NAME);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(Failure::file(&path, "does not exist: Spelter is not installed"))
                }
                removed => removed.map_err(|error| Failure::file(&path, error)),
            }?;
            output.line(format!("removed: {}", path.display()))
        }
    }
}

/// `spelter exec`: exits with the program's status.
pub(crate) fn exec(args: &ExecArgs) -> Result<(), Failure> {
    if let Some(Some(path)) = &args.profile {
        // An error is reported before the program runs.
        File::create(path).map_err(|error| Failure::file(path, error))?;
    }
    if let Some(path) = &args.trace {
        prepare(path).map_err(|error| Failure::file(path, error))?;
    }
    let path = std::env::temp_dir().join(format!("spelter-{}-{NAME}", std::process::id()));
    std::fs::write(&path, manifest()?).map_err(|error| Failure::file(&path, error))?;
    let profiles = args.profile.as_ref().map(|_| ProfileFolder::create()).transpose()?;
    let ended = command(args, &path, profiles.as_ref()).status();
    // A manifest that cannot be removed does no harm.
    let _ = std::fs::remove_file(&path);
    if let Some(profiles) = profiles.filter(|_| ended.is_ok()) {
        profiles.print(args)?;
    }
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => std::process::exit(code(status)),
        Err(error) => std::process::exit(not_started(args, &error)),
    }
}

/// Runs the program with more variables, for `spelter check`. Returns its exit status.
pub(crate) fn status(args: &ExecArgs, set: &[(&'static str, OsString)]) -> Result<u8, Failure> {
    let path = std::env::temp_dir().join(format!("spelter-{}-{NAME}", std::process::id()));
    std::fs::write(&path, manifest()?).map_err(|error| Failure::file(&path, error))?;
    let ended = command(args, &path, None).envs(set.iter().map(|(name, value)| (name, value))).status();
    // A manifest that cannot be removed does no harm.
    let _ = std::fs::remove_file(&path);
    let status = ended.map_or_else(|error| not_started(args, &error), code);
    // The system has statuses of eight bits.
    Ok(status as u8)
}

/// Reports that the program cannot be started. Returns the status of shells, env and sudo: 127 if it is not found, 126
/// if it is found but not executable.
fn not_started(args: &ExecArgs, error: &std::io::Error) -> i32 {
    let (program, _) = split(args);
    output::report(&Failure(format!("{program}: {error}")));
    if error.kind() == ErrorKind::NotFound { 127 } else { 126 }
}

/// Creates the file of a timeline, empty until there is work, so that an error is reported before the program runs.
fn prepare(path: &Path) -> std::io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            file.write_all(b"[\n]\n")
        }
        // Another program writes its timeline there: the driver chooses another name for this one.
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn split(args: &ExecArgs) -> (&str, &[String]) {
    args.command.split_first().map_or(("", &[]), |(program, rest)| (program, rest))
}

/// The program's command, with the variables by which new and old loaders find the manifest.
fn command(args: &ExecArgs, manifest: &Path, profiles: Option<&ProfileFolder>) -> Command {
    let (program, rest) = split(args);
    let mut command = Command::new(program);
    command.args(rest).env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
    let set = [
        ("SPELTER_ADVERTISE_GRAPHICS", args.graphics.then(|| "1".to_owned())),
        ("SPELTER_STATS", args.stats.then(|| "1".to_owned())),
        ("SPELTER_WORKERS", args.device.workers.map(|workers| workers.to_string())),
        ("SPELTER_BACKEND", args.device.backend.map(|backend| backend.name().to_owned())),
        ("SPELTER_TIME_LIMIT", args.device.time_limit.map(|limit| limit.as_secs_f64().to_string())),
        ("SPELTER_SCHEDULE", args.device.schedule.map(|schedule| schedule.to_string())),
    ];
    command.envs(set.into_iter().filter_map(|(name, value)| Some((name, value?))));
    command.envs(profiles.map(|folder| ("SPELTER_PROFILE", folder.first())));
    // An absolute path, since the program may change its working directory before it creates a device.
    command.envs(args.trace.as_ref().map(|path| ("SPELTER_TRACE", std::path::absolute(path).unwrap_or(path.clone()))));
    command
}

/// The exit status as shells report it: 128 plus the signal if a signal ended the program.
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

/// The driver's library: in this program's folder, where cargo puts it, or in a `lib` folder next to that.
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

/// The folder in which the loader searches for manifests.
fn folder(scope: &InstallScope) -> Result<PathBuf, Failure> {
    if scope.system {
        return Ok(PathBuf::from("/etc/vulkan/icd.d"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let data = data.ok_or_else(|| Failure("neither XDG_DATA_HOME nor HOME is set".to_owned()))?;
    Ok(data.join("vulkan/icd.d"))
}
