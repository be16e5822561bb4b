//! Independent programs through the Vulkan loader: `vulkaninfo`, the kernels of vkpeer with and without the validation
//! layer and compared with lavapipe, ncnn, wgpu, Dawn.
//!
//! Needs the loader and `vulkaninfo`, the folder of vkpeer in `SPELTER_VKPEER`, a Python with ncnn, wgpu and numpy in
//! `SPELTER_PYTHON`, and for Dawn node and a folder with npm's package `webgpu` in `SPELTER_DAWN`. What is absent is
//! reported as ignored, with the reason on standard error; where `CI` is set it fails, but for Dawn.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing test panics, and reports what it did not run")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe"
)]

#[path = "programs/violation.rs"]
mod violation;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed, Trial};

type Test = fn(&Path) -> Result<(), Failed>;

/// What a test needs and the machine lacks, if anything.
type Missing = fn() -> Option<&'static str>;

/// Tests by name, with what they need.
const TESTS: [(&str, Test, Missing); 11] = [
    ("the_table_of_ratios", table_of_ratios, || None),
    ("only_commands_are_exported", symbols, || without("nm")),
    ("vulkaninfo", vulkaninfo, || without("vulkaninfo")),
    ("peers_kernels", peers, without_peer),
    ("peers_kernels_against_lavapipe", against_lavapipe, || without_peer().or(without_lavapipe())),
    ("peers_kernels_under_validation", validated, || without_peer().or(without_layer())),
    ("ncnn", ncnn, without_python),
    ("wgpu", wgpu, without_python),
    ("ncnn_without_a_loader", ncnn_without_a_loader, without_python),
    ("wgpu_without_a_loader", wgpu_without_a_loader, without_python),
    ("dawn", dawn, without_dawn),
];

/// Not in a package of Debian's: absent without being a failure where `CI` is set.
const OPTIONAL: [&str; 1] = ["dawn"];

/// Makes this program one that breaks valid usage, if it is set.
const VIOLATE: &str = "SPELTER_TEST_VIOLATION";

fn main() {
    if std::env::var_os(VIOLATE).is_some() {
        return violation::run();
    }
    let mut arguments = Arguments::from_args();
    // Sequential: some are timed.
    arguments.test_threads.get_or_insert(1);
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
        Trial::test(name, run).with_ignored_flag(missing.is_some() && (!strict || OPTIONAL.contains(&name)))
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

/// The manifest of lavapipe in Debian.
const LAVAPIPE: &str = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

fn without_lavapipe() -> Option<&'static str> {
    (!Path::new(LAVAPIPE).exists()).then_some("lavapipe (mesa-vulkan-drivers) is not installed")
}

fn without_python() -> Option<&'static str> {
    let absent = std::env::var_os("SPELTER_PYTHON").is_none();
    absent.then_some("SPELTER_PYTHON does not name a Python with ncnn, wgpu and numpy")
}

fn without_dawn() -> Option<&'static str> {
    let is_installed = |folder: std::ffi::OsString| Path::new(&folder).join("node_modules/webgpu").is_dir();
    if !std::env::var_os("SPELTER_DAWN").is_some_and(is_installed) {
        return Some("SPELTER_DAWN does not name a folder where `npm install webgpu` was run");
    }
    without("node").map(|_| "node is not installed")
}

/// An empty folder for a test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The driver library that cargo built.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let library = here.parent().unwrap().join("libvulkan_spelter.so");
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

/// The release build of the driver (`cargo build --release -p spelter-icd`) and true, or the debug build and false:
/// figures of the debug build say little.
fn fastest_library() -> (PathBuf, bool) {
    let debug = library();
    let release = debug.ancestors().nth(3).map(|target| target.join("release/libvulkan_spelter.so"));
    match release.filter(|library| library.is_file()) {
        Some(library) => (library, true),
        None => (debug, false),
    }
}

/// A program whose loader finds only this driver.
fn on_spelter(folder: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    on_library(folder, &library(), program)
}

fn on_library(folder: &Path, library: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let manifest = folder.join("spelter_icd.json");
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
    let of_loader: Vec<_> = names.extract_if(.., |name| name.starts_with("vk_icd")).collect();
    let wanted =
        ["vk_icdGetInstanceProcAddr", "vk_icdGetPhysicalDeviceProcAddr", "vk_icdNegotiateLoaderICDInterfaceVersion"];
    // What the loader exports for Vulkan 1.3, without window systems.
    let core = names.len() == 215 && names.iter().all(|name| name.starts_with("vk"));
    if of_loader == wanted && core { Ok(()) } else { Err(format!("exported: {of_loader:?} {names:?}").into()) }
}

/// A command that runs a program with the driver as `libvulkan.so.1` and no way to find another one.
fn without_a_loader(folder: &Path, mut command: Command) -> Command {
    for name in ["libvulkan.so.1", "libvulkan.so"] {
        std::os::unix::fs::symlink(library(), folder.join(name)).unwrap();
    }
    command.env("LD_LIBRARY_PATH", folder).env_remove("VK_DRIVER_FILES").env_remove("VK_ICD_FILENAMES");
    command
}

fn vulkaninfo(folder: &Path) -> Result<(), Failed> {
    let (shown, errors) = good(on_spelter(folder, "vulkaninfo").env("XDG_RUNTIME_DIR", folder))?;
    for part in ["Spelter (", "VkPhysicalDeviceVulkan13Features", "VkQueueFamilyProperties", "driverName"] {
        if !shown.contains(part) {
            return Err(format!("no {part} in\n{shown}").into());
        }
    }
    // Versions of 2023 require a swapchain of every device, and there is no display.
    let its_own =
        |line: &str| line.contains("swapchain") || line.contains("extensions in list") || line.contains("DISPLAY");
    let warnings: Vec<_> = errors.lines().filter(|line| !line.trim().is_empty() && !its_own(line)).collect();
    if warnings.is_empty() { Ok(()) } else { Err(warnings.join("\n").into()) }
}

/// Builds vkpeer from its folder.
fn build_peer() -> Result<PathBuf, Failed> {
    let source = std::env::var_os("SPELTER_VKPEER").map(PathBuf::from).ok_or("SPELTER_VKPEER")?;
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vkpeer");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    good(Command::new(cargo).args(["build", "--release", "--quiet", "--target-dir"]).arg(&target).current_dir(source))?;
    Ok(target.join("release/vkpeer"))
}

/// Checks that every kernel passed.
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

/// The goals: the geometric mean of the ratios, and the least ratio of any kernel.
const WANTED: [f64; 2] = [20.0, 1.5];

/// The ratios that the release build must reach, also on a busy machine.
const REQUIRED: [f64; 2] = [10.0, 1.0];

/// Runs on both drivers until the required ratios are reached.
const ATTEMPTS: usize = 3;

/// Prints a table of each kernel's time on both drivers, which run one after the other. Every kernel has to pass on
/// Spelter. Its speed depends on the load of the machine, so the goals are reported and half of them is required.
fn against_lavapipe(folder: &Path) -> Result<(), Failed> {
    let (peer, (library, is_release)) = (build_peer()?, fastest_library());
    for _ in 0..ATTEMPTS {
        let (ours, _) = good(&mut on_library(folder, &library, &peer))?;
        check_peer(&ours)?;
        let mut lavapipe = Command::new(&peer);
        let lavapipe = lavapipe.current_dir(folder).env("VK_DRIVER_FILES", LAVAPIPE).env("VK_ICD_FILENAMES", LAVAPIPE);
        // Lavapipe may fail a kernel, which then has no ratio.
        let theirs = String::from_utf8_lossy(&lavapipe.output()?.stdout).into_owned();
        let ratios = Ratios::new(&ours, &theirs).ok_or("no kernel has a time on both")?;
        eprintln!("programs: {} against lavapipe, times of the fastest run:\n{}", library.display(), ratios.table);
        if ratios.reach(REQUIRED) {
            return Ok(());
        }
        if !is_release {
            eprintln!("programs: NOT REQUIRED of a driver that was built without optimisation");
            return Ok(());
        }
    }
    Err(format!("below a mean of {} or {} for a kernel, {ATTEMPTS} times", REQUIRED[0], REQUIRED[1]).into())
}

/// The value of a field of a line of JSON, without quotes.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    rest.split([',', '}']).next().map(|value| value.trim_matches('"'))
}

/// The milliseconds of each kernel that passed.
fn times(shown: &str) -> Vec<(&str, f64)> {
    let well = shown.lines().filter(|line| field(line, "status") == Some("ok"));
    well.filter_map(|line| Some((field(line, "kernel")?, field(line, "min_ms")?.parse().ok()?))).collect()
}

/// The speed relative to lavapipe.
struct Ratios {
    /// Kernel, both times, ratio; then the geometric mean and the least.
    table: String,
    mean: f64,
    least: f64,
}

impl Ratios {
    /// `None` if no kernel has a time on both drivers.
    fn new(ours: &str, theirs: &str) -> Option<Self> {
        let theirs = times(theirs);
        let mut table = format!("{:<20} {:>12} {:>12} {:>8}\n", "kernel", "Spelter ms", "lavapipe ms", "ratio");
        let mut all: Vec<(f64, &str)> = Vec::new();
        for (kernel, our) in times(ours) {
            let Some((_, their)) = theirs.iter().find(|(other, _)| *other == kernel) else { continue };
            let ratio = their / our;
            all.push((ratio, kernel));
            table += &format!("{kernel:<20} {our:>12.4} {their:>12.4} {ratio:>8.1}\n");
        }
        let mean = (all.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / all.len() as f64).exp();
        let (least, slowest) = *all.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        table += &format!("{} kernels, geometric mean {mean:.1}, least {least:.2} ({slowest})\n", all.len());
        let mut ratios = Self { table, mean, least };
        if !ratios.reach(WANTED) {
            ratios.table +=
                &format!("BELOW WHAT IS WANTED: a mean of {} and no kernel below {}\n", WANTED[0], WANTED[1]);
        }
        Some(ratios)
    }

    fn reach(&self, [mean, least]: [f64; 2]) -> bool {
        self.mean >= mean && self.least >= least
    }
}

/// The arithmetic of the table, which is tested even without the programs.
fn table_of_ratios(_: &Path) -> Result<(), Failed> {
    let ours = r#"{"kernel":"a","status":"ok","min_ms":2.0}
{"kernel":"b","status":"ok","min_ms":1.0}
{"kernel":"c","status":"wrong"}"#;
    let theirs = r#"{"kernel":"b","status":"ok","min_ms":1.0,"unit":"x"}
{"kernel":"a","status":"ok","min_ms":200}"#;
    let ratios = Ratios::new(ours, theirs).ok_or("no table")?;
    let right =
        ratios.table.contains("2 kernels, geometric mean 10.0, least 1.00 (b)") && ratios.table.contains("BELOW");
    let right = right && ratios.reach([9.99, 1.0]) && !ratios.reach([10.1, 1.0]) && !ratios.reach([9.99, 1.1]);
    if right && Ratios::new(ours, "").is_none() { Ok(()) } else { Err(ratios.table.into()) }
}

/// Runs a program under the validation layer with synchronization validation. Returns its output and the messages of
/// the layer.
fn under_validation(folder: &Path, program: &Path, more: &[(&str, &str)]) -> Result<(String, String), Failed> {
    std::fs::create_dir_all(folder)?;
    let settings = "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
        khronos_validation.report_flags = error,warn\n\
        khronos_validation.log_filename = messages.txt\n\
        khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n";
    std::fs::write(folder.join("vk_layer_settings.txt"), settings)?;
    let mut command = on_spelter(folder, program);
    command.env("VK_INSTANCE_LAYERS", LAYER).env("VK_LOADER_DEBUG", "layer").envs(more.iter().copied());
    let (shown, errors) = good(&mut command)?;
    // The loader reports the layers that it inserts.
    let there = errors.lines().any(|line| line.contains("nsert") && line.contains(LAYER));
    if !there {
        return Err(format!("the layer was not loaded:\n{errors}").into());
    }
    Ok((shown, std::fs::read_to_string(folder.join("messages.txt")).unwrap_or_default()))
}

const LAYER: &str = "VK_LAYER_KHRONOS_validation";

fn validated(folder: &Path) -> Result<(), Failed> {
    // First checks that the layer reports errors at all.
    let own = std::env::current_exe()?;
    let (_, messages) = under_validation(&folder.join("violation"), &own, &[(VIOLATE, "1")])?;
    for rule in ["VUID-VkBufferCreateInfo-size-00912", "SYNC-HAZARD-WRITE-AFTER-WRITE"] {
        if !messages.contains(rule) {
            return Err(format!("the layer did not report {rule}, but:\n{messages}").into());
        }
    }
    let (shown, messages) = under_validation(folder, &build_peer()?, &[])?;
    check_peer(&shown)?;
    if messages.trim().is_empty() { Ok(()) } else { Err(messages.into()) }
}

fn python(folder: &Path, script: &str) -> Result<Command, Failed> {
    let python = std::env::var_os("SPELTER_PYTHON").ok_or("SPELTER_PYTHON")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(script);
    let mut command = on_spelter(folder, python);
    command.arg(script);
    Ok(command)
}

fn ncnn(folder: &Path) -> Result<(), Failed> {
    check_ncnn(&mut python(folder, "network.py")?)
}

fn ncnn_without_a_loader(folder: &Path) -> Result<(), Failed> {
    check_ncnn(&mut without_a_loader(folder, python(folder, "network.py")?))
}

fn check_ncnn(command: &mut Command) -> Result<(), Failed> {
    let (shown, _) = good(command)?;
    if shown.contains("network: ok on Spelter") { Ok(()) } else { Err(shown.into()) }
}

fn dawn(folder: &Path) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/dawn.mjs");
    let mut command = on_spelter(folder, "node");
    let (shown, _) = good(command.arg(script).env("SPELTER_ADVERTISE_GRAPHICS", "1"))?;
    if shown.contains("dawn: 8 of 8 ok on Spelter") { Ok(()) } else { Err(shown.into()) }
}

fn wgpu(folder: &Path) -> Result<(), Failed> {
    check_wgpu(&mut python(folder, "kernels.py")?)
}

fn wgpu_without_a_loader(folder: &Path) -> Result<(), Failed> {
    check_wgpu(&mut without_a_loader(folder, python(folder, "kernels.py")?))
}

/// The variables are those of `spelter exec --graphics`: the script asks wgpu for nothing special.
fn check_wgpu(command: &mut Command) -> Result<(), Failed> {
    let (shown, _) = good(command.env("SPELTER_ADVERTISE_GRAPHICS", "1").env("SPELTER_CONFORMANCE", "1.3.0.0"))?;
    if shown.contains("13 ok on Spelter") { Ok(()) } else { Err(shown.into()) }
}
