//! Programs that nobody here wrote, through the Vulkan loader: `vulkaninfo`, the peers' kernels with and without the
//! validation layer, ncnn, wgpu.
//!
//! Needs the loader and `vulkaninfo`, the folder of vkpeer in `SPELTER_VKPEER`, and a Python with ncnn, wgpu and numpy in
//! `SPELTER_PYTHON`. What is absent is reported as ignored, with the reason on standard error; where `CI` is set it fails.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing test panics, and says what it did not run")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed, Trial};

type Test = fn(&Path) -> Result<(), Failed>;

/// What a test lacks, if anything.
type Missing = fn() -> Option<&'static str>;

/// Tests by name, with what they need.
const TESTS: [(&str, Test, Missing); 6] = [
    ("only_three_symbols_are_exported", symbols, || without("nm")),
    ("vulkaninfo", vulkaninfo, || without("vulkaninfo")),
    ("peers_kernels", peers, without_peer),
    ("peers_kernels_under_validation", validated, || without_peer().or(without_layer())),
    ("ncnn", ncnn, without_python),
    ("wgpu", wgpu, without_python),
];

fn main() {
    let arguments = Arguments::from_args();
    let strict = std::env::var_os("CI").is_some();
    let trials = TESTS.map(|(name, test, missing)| {
        let missing = missing();
        if let Some(missing) = missing {
            eprintln!("programs: {name}: NOT RUN: {missing}");
        }
        let run = move || match missing {
            Some(missing) => Err(missing.into()),
            None => test(&folder(name)),
        };
        Trial::test(name, run).with_ignored_flag(missing.is_some() && !strict)
    });
    libtest_mimic::run(&arguments, trials.into()).exit();
}

fn without(program: &'static str) -> Option<&'static str> {
    let found = Command::new(program).arg("--help").output().is_ok();
    if found { None } else { Some("nm or vulkaninfo is not installed") }
}

fn without_peer() -> Option<&'static str> {
    if std::env::var_os("SPELTER_VKPEER").is_none() {
        return Some("SPELTER_VKPEER does not name the folder of vkpeer");
    }
    without("glslc").map(|_| "glslc is not installed")
}

fn without_layer() -> Option<&'static str> {
    let there = Path::new("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json").exists();
    (!there).then_some("the Khronos validation layer is not installed")
}

fn without_python() -> Option<&'static str> {
    let absent = std::env::var_os("SPELTER_PYTHON").is_none();
    absent.then_some("SPELTER_PYTHON does not name a Python with ncnn, wgpu and numpy")
}

/// An empty folder for a test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The driver, where cargo puts it.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let library = here.parent().unwrap().join("libvulkan_spelter.so");
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

/// A program whose loader knows this driver only.
fn on_spelter(folder: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let manifest = folder.join("spelter_icd.json");
    let library = library();
    let text = format!(
        r#"{{"file_format_version":"1.0.1","ICD":{{"library_path":"{}","api_version":"1.3.281"}}}}"#,
        library.display()
    );
    std::fs::write(&manifest, text).unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder).env("VK_DRIVER_FILES", &manifest).env("VK_ICD_FILENAMES", &manifest);
    command
}

fn good(command: &mut Command) -> Result<(String, String), Failed> {
    let Output { status, stdout, stderr } = command.output()?;
    let (out, errors) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
    if status.success() { Ok((out, errors)) } else { Err(format!("{command:?}: {status}\n{out}\n{errors}").into()) }
}

fn symbols(_: &Path) -> Result<(), Failed> {
    let (shown, _) = good(Command::new("nm").args(["-D", "--defined-only"]).arg(library()))?;
    let mut names: Vec<_> = shown.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    let wanted =
        ["vk_icdGetInstanceProcAddr", "vk_icdGetPhysicalDeviceProcAddr", "vk_icdNegotiateLoaderICDInterfaceVersion"];
    if names == wanted { Ok(()) } else { Err(format!("exported: {names:?}").into()) }
}

fn vulkaninfo(folder: &Path) -> Result<(), Failed> {
    let (shown, errors) = good(on_spelter(folder, "vulkaninfo").env("XDG_RUNTIME_DIR", folder))?;
    for part in ["Spelter (", "VkPhysicalDeviceVulkan13Features", "VkQueueFamilyProperties", "driverName"] {
        if !shown.contains(part) {
            return Err(format!("no {part} in\n{shown}").into());
        }
    }
    // Versions of 2023 want a swapchain from every device, and set no display here.
    let its_own =
        |line: &str| line.contains("swapchain") || line.contains("extensions in list") || line.contains("DISPLAY");
    let warnings: Vec<_> = errors.lines().filter(|line| !line.trim().is_empty() && !its_own(line)).collect();
    if warnings.is_empty() { Ok(()) } else { Err(warnings.join("\n").into()) }
}

/// vkpeer, built from its folder.
fn build_peer() -> Result<PathBuf, Failed> {
    let source = std::env::var_os("SPELTER_VKPEER").map(PathBuf::from).ok_or("SPELTER_VKPEER")?;
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vkpeer");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    good(Command::new(cargo).args(["build", "--release", "--quiet", "--target-dir"]).arg(&target).current_dir(source))?;
    Ok(target.join("release/vkpeer"))
}

/// Every kernel is right.
fn check_peer(shown: &str) -> Result<(), Failed> {
    let kernels: Vec<_> = shown.lines().filter(|line| line.contains(r#""kernel":"#)).collect();
    let wrong: Vec<_> = kernels.iter().filter(|line| !line.contains(r#""status":"ok""#)).collect();
    if !shown.contains(r#""device":"Spelter"#) || kernels.len() < 18 || !wrong.is_empty() {
        return Err(format!("{} kernels, of which not ok: {wrong:#?}\n{shown}", kernels.len()).into());
    }
    Ok(())
}

fn peers(folder: &Path) -> Result<(), Failed> {
    let (shown, _) = good(&mut on_spelter(folder, build_peer()?))?;
    check_peer(&shown)
}

fn validated(folder: &Path) -> Result<(), Failed> {
    let settings = "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
        khronos_validation.report_flags = error,warn\n\
        khronos_validation.log_filename = messages.txt\n\
        khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n";
    std::fs::write(folder.join("vk_layer_settings.txt"), settings)?;
    let mut command = on_spelter(folder, build_peer()?);
    let (shown, _) = good(command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation"))?;
    check_peer(&shown)?;
    let said = std::fs::read_to_string(folder.join("messages.txt")).unwrap_or_default();
    if said.trim().is_empty() { Ok(()) } else { Err(said.into()) }
}

fn python(folder: &Path, script: &str) -> Result<Command, Failed> {
    let python = std::env::var_os("SPELTER_PYTHON").ok_or("SPELTER_PYTHON")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(script);
    let mut command = on_spelter(folder, python);
    command.arg(script);
    Ok(command)
}

fn ncnn(folder: &Path) -> Result<(), Failed> {
    let (shown, _) = good(&mut python(folder, "network.py")?)?;
    if shown.contains("network: ok on Spelter") { Ok(()) } else { Err(shown.into()) }
}

fn wgpu(folder: &Path) -> Result<(), Failed> {
    let (shown, _) = good(python(folder, "kernels.py")?.env("SPELTER_ADVERTISE_GRAPHICS", "1"))?;
    if shown.contains("13 ok on Spelter") { Ok(()) } else { Err(shown.into()) }
}
