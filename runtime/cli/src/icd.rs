//! `spelter icd`, `spelter exec` and the program of `spelter check`: let Vulkan programs find this driver.
//!
//! The Vulkan loader reads manifests: small JSON files with the path of a driver. `icd` installs one where the loader
//! searches; `exec` has one for its programs and sets environment variables so that the loader uses only that.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use serde_json::json;
use vulkan_spelter::options::UNCHECKED_STATUS;

use crate::args::{ExecArgs, IcdArgs, IcdCommand, InstallScope};
use crate::driver_files::{DriverFiles, MANIFEST, manifest};
use crate::environment::variable;
use crate::failure::Failure;
use crate::library;
use crate::output::{self, Output};
use crate::profile_folder::ProfileFolder;
use crate::scratch::Scratch;
use crate::shader::is_shader;

/// The version of the conformance tests that `exec --graphics` claims, so that wgpu does not hide the device.
const CLAIMED: &str = "1.3.0.0";

/// `spelter icd`.
pub(crate) fn run(args: &IcdArgs, output: &mut Output) -> Result<(), Failure> {
    match &args.command {
        IcdCommand::Manifest => output.line(manifest(&library::path()?)),
        IcdCommand::Unpack { folder, json } => {
            let [driver, in_place_of_loader] = library::unpack(folder)?;
            let path = folder.join(MANIFEST);
            // Relative to the manifest, so that the folder may be moved.
            let manifest = manifest(&Path::new(".").join(library::name()));
            std::fs::write(&path, manifest + "\n").map_err(|error| Failure::file(&path, error))?;
            let files = [driver, in_place_of_loader, path].map(|path| path.display().to_string());
            if *json {
                return output.json(&json!({ "files": files }));
            }
            files.iter().try_for_each(|path| output.line(path))
        }
        IcdCommand::Install(scope) => {
            let path = folder(scope)?.join(MANIFEST);
            let manifest = manifest(&library::lasting_path(&kept_library(scope)?)?);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, manifest + "\n")).map_err(|error| Failure::file(&path, error))?;
            changed("installed", &path, scope, output)
        }
        IcdCommand::Uninstall(scope) => {
            let path = folder(scope)?.join(MANIFEST);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(Failure::file(&path, "does not exist: Spelter is not installed"))
                }
                removed => removed.map_err(|error| Failure::file(&path, error)),
            }?;
            // Installed only if this program carries it.
            let _ = std::fs::remove_file(kept_library(scope)?);
            changed("removed", &path, scope, output)
        }
    }
}

/// Prints what was done with a manifest.
fn changed(how: &str, manifest: &Path, scope: &InstallScope, output: &mut Output) -> Result<(), Failure> {
    let path = manifest.display().to_string();
    if scope.json { output.json(&json!({ how: path })) } else { output.line(format!("{how}: {path}")) }
}

/// `spelter exec`: becomes the program, or exits with its status. Returns the status after its success.
pub(crate) fn exec(args: &ExecArgs) -> Result<u8, Failure> {
    if let Some(Some(path)) = &args.profile {
        // An error is reported before the program runs.
        File::create(path).map_err(|error| Failure::file(path, error))?;
    }
    if let Some(path) = &args.trace {
        prepare(path).map_err(|error| Failure::file(path, error))?;
    }
    let files = DriverFiles::new(args.no_loader)?;
    let profiles = args.profile.as_ref().map(|_| ProfileFolder::create()).transpose()?;
    let mark = args.require_device.then(DeviceMark::new).transpose()?;
    let set = mark.iter().map(|mark| ("SPELTER_DEVICE_MARK", mark.path().into())).collect::<Vec<_>>();
    let mut command = prepared(args, &files, profiles.as_ref(), &set)?;
    // With nothing left to do, the program gets this process, and with it the signals of a shell or a batch system.
    let is_done = profiles.is_none() && mark.is_none() && files.last();
    let ended = if is_done { replace_by(command) } else { command.status() };
    if let Some(profiles) = profiles.filter(|_| ended.is_ok()) {
        profiles.print(args)?;
    }
    let is_without_device = ended.is_ok() && mark.as_ref().is_some_and(|mark| !mark.is_set());
    if is_without_device {
        report_no_device("", args.graphics);
    }
    // Before an exit, which drops nothing.
    drop((files, mark));
    match ended {
        Ok(status) if status.success() && is_without_device => Ok(UNCHECKED_STATUS),
        Ok(status) if status.success() => Ok(0),
        Ok(status) => std::process::exit(code(status)),
        Err(error) => std::process::exit(not_started(args, &error)),
    }
}

/// The file that the driver creates when a process of the program creates a device.
struct DeviceMark(Scratch);

impl DeviceMark {
    fn new() -> Result<Self, Failure> {
        Scratch::new().map(Self)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("device")
    }

    fn is_set(&self) -> bool {
        self.path().exists()
    }
}

/// Says that a program did not use the driver, after what follows from that, and with the usual cause.
pub(crate) fn report_no_device(so: &str, graphics: bool) {
    output::note(format_args!("{so}no process created a device of Spelter"));
    hint_at_graphics(graphics);
}

/// Says why a program may have taken another device.
pub(crate) fn hint_at_graphics(graphics: bool) {
    if !graphics {
        output::note("programs that require a graphics queue (wgpu, Dawn, taichi) need --graphics");
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its status, as shells have it: 128 plus the signal that ended it, 127 and 126 if it could not be started.
    pub(crate) status: u8,
    /// Whether it was stopped from outside instead of ending by itself: it could not be started, or got a signal that a
    /// user, a batch system or the kernel's memory management sends.
    pub(crate) is_interrupted: bool,
}

/// Runs the program with more variables, for `spelter check`.
pub(crate) fn run_checked(args: &ExecArgs, set: &[(&'static str, OsString)]) -> Result<Ended, Failure> {
    // SIGHUP, SIGINT, SIGKILL and SIGTERM have these numbers everywhere (POSIX, kill).
    let stops = |status: &ExitStatus| matches!(signal(*status), Some(1 | 2 | 9 | 15));
    let files = DriverFiles::new(args.no_loader)?;
    let ended = prepared(args, &files, None, set)?.status();
    let is_interrupted = ended.as_ref().map_or(true, stops);
    let status = ended.map_or_else(|error| not_started(args, &error), code);
    // The system has statuses of eight bits.
    Ok(Ended { status: status as u8, is_interrupted })
}

/// The program's command, with the driver's files and more variables.
fn prepared(
    args: &ExecArgs,
    files: &DriverFiles,
    profiles: Option<&ProfileFolder>,
    set: &[(&'static str, OsString)],
) -> Result<Command, Failure> {
    let mut command = command(args, &files.manifest(), profiles);
    command.envs(set.iter().map(|(name, value)| (name, value)));
    command.envs(files.search_path()?.map(|path| ("LD_LIBRARY_PATH", path)));
    Ok(command)
}

/// Gives this process to the program. Returns only if it cannot be started.
#[cfg(unix)]
fn replace_by(mut command: Command) -> std::io::Result<ExitStatus> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

/// Elsewhere, a process cannot become another program.
#[cfg(not(unix))]
fn replace_by(mut command: Command) -> std::io::Result<ExitStatus> {
    command.status()
}

/// Reports that the program cannot be started. Returns the status of shells, env and sudo: 127 if it is not found, 126
/// if it is found but not executable.
fn not_started(args: &ExecArgs, error: &std::io::Error) -> i32 {
    let (program, _) = split(args);
    output::report(&Failure::new(format!("{program}: {error}")));
    if is_shader(Path::new(program)) {
        output::note(format_args!("{program} is a shader: spelter run {program} runs it, and with --check checks it"));
    }
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
    // wgpu hides devices without a conformance version, unless its instance has a flag: programs that read wgpu's
    // variables set it, and others need the claim.
    let for_wgpu = [("WGPU_ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER", "1"), ("SPELTER_CONFORMANCE", CLAIMED)];
    command.envs(for_wgpu.into_iter().filter(|(name, _)| args.graphics && variable(name).is_none()));
    command.envs(profiles.map(|folder| ("SPELTER_PROFILE", folder.first())));
    // An absolute path, since the program may change its working directory before it creates a device.
    command.envs(args.trace.as_ref().map(|path| ("SPELTER_TRACE", std::path::absolute(path).unwrap_or(path.clone()))));
    command
}

/// The exit status as shells report it: 128 plus the signal if a signal ended the program.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + signal(status).unwrap_or(0))
}

/// The signal that ended the program.
#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Elsewhere, there are no signals.
#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// The folder in which the loader searches for manifests.
fn folder(scope: &InstallScope) -> Result<PathBuf, Failure> {
    if scope.system {
        return Ok(PathBuf::from("/etc/vulkan/icd.d"));
    }
    Ok(library::user_folder("XDG_DATA_HOME", ".local/share")?.join("vulkan/icd.d"))
}

/// Where `icd install` keeps a library that this program carries.
fn kept_library(scope: &InstallScope) -> Result<PathBuf, Failure> {
    let folder = if scope.system {
        PathBuf::from("/usr/local/lib")
    } else {
        library::user_folder("XDG_DATA_HOME", ".local/share")?
    };
    Ok(folder.join("spelter").join(library::name()))
}
