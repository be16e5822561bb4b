//! Checked mode through the API: what a program with `SPELTER_CHECK` reports, where, and with which exit status. Each
//! case is a process of its own, since the variables are read once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics; what a messenger heard is printed for the parent"
)]

use crate::common;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Gpu, Program, rerun};
use ash::vk;
use serde_json::Value as Json;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn alarm(seconds: c_uint) -> c_uint;
    fn exit(status: c_int) -> !;
}

/// Names the case that this process is.
const CASE: &str = "SPELTER_TEST_CASE";

const RACE: &str = "
    var<workgroup> tile: array<u32, 64>;
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
        tile[l] = l;
        // workgroupBarrier();
        a[l] = tile[l / 2u];
    }";

/// What a case prints, and the lines of its file.
struct Ended {
    output: Output,
    lines: Vec<Json>,
}

impl Ended {
    fn findings(&self) -> Vec<&Json> {
        self.lines.iter().filter(|line| line["id"].is_string()).collect()
    }

    /// The last summary of each process.
    fn summaries(&self) -> Vec<&Json> {
        self.lines.iter().filter(|line| line["summary"].is_object()).map(|line| &line["summary"]).collect()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("checked-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a case in checked mode, with more variables.
fn run(name: &str, case: &str, set: &[(&str, &str)]) -> Ended {
    let file = folder(name).join("found.jsonl");
    let mut child = rerun(std::env::current_exe().unwrap(), module_path!(), "a_case_of_another_process");
    child.env(CASE, case).env("SPELTER_CHECK", "1").env("SPELTER_CHECK_JSON", &file).envs(set.iter().copied());
    let output = child.output().unwrap();
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Ended { output, lines }
}

#[test]
fn a_race_is_reported_as_text_and_json_and_to_messengers() {
    let ended = run("race", "race", &[]);
    assert_eq!(ended.output.status.code(), Some(66), "{}", ended.stderr());
    let stderr = ended.stderr();
    for part in [
        "error[SPELTER-RACE-RAW]: data race (read after write) in workgroup variable `tile`, bytes",
        "= write by workgroup (0, 0, 0), invocation (",
        "because nothing orders",
        "in `frame/blur: main`, command buffer 0 of submission 1 of queue 0",
    ] {
        assert!(stderr.contains(part), "{part}\n{stderr}");
    }
    assert_eq!(stderr.matches("error[").count(), 1, "the second dispatch is counted only\n{stderr}");
    let findings = ended.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((&findings[0]["id"], &findings[0]["confirmed"]), (&"SPELTER-RACE-RAW".into(), &true.into()));
    assert_eq!(findings[0]["submission"]["label"], "frame/blur");
    let summary = *ended.summaries().last().unwrap();
    assert_eq!((&summary["errors"], &summary["checked"]["dispatches"]), (&1.into(), &2.into()));
    let fingerprint = findings[0]["fingerprint"].as_str().unwrap();
    assert!(summary["counts"][fingerprint].as_u64() > findings[0]["count"].as_u64(), "{summary}");
    let stdout = ended.stdout();
    let heard: Vec<_> = stdout.lines().filter_map(|line| line.split("HEARD ").nth(1)).collect();
    assert_eq!(heard.len(), 1, "{stdout}");
    let expected = "SPELTER-RACE-RAW number:true labels:blur,frame queue:compute commands:recorded pipeline:reverse \
        in:wait error[SPELTER-RACE-RAW]";
    assert!(heard[0].starts_with(expected), "{}", heard[0]);
}

#[test]
fn each_of_two_kernels_with_the_same_name_and_instructions_is_reported() {
    // Most entry points are named `main`, and variants of a shader have the same words.
    let ended = run("variants", "variants", &[]);
    let findings = ended.findings();
    assert_eq!(findings.len(), 2, "{}", ended.stderr());
    for access in ["first", "second"] {
        let of = |finding: &Json| (finding[access]["kernel"].clone(), finding[access]["word"].clone());
        assert_eq!(of(findings[0]), of(findings[1]));
    }
    assert_ne!(findings[0]["fingerprint"], findings[1]["fingerprint"]);
    assert_eq!(ended.stderr().matches("error[").count(), 2, "{}", ended.stderr());
    assert_eq!(ended.summaries().last().unwrap()["errors"], 2);
}

#[test]
fn a_right_program_is_silent() {
    let ended = run("right", "right", &[]);
    assert_eq!((ended.output.status.code(), ended.stderr().as_str()), (Some(0), ""));
    assert_eq!(ended.findings().len(), 0);
    let summary = *ended.summaries().last().unwrap();
    assert_eq!((&summary["errors"], &summary["checked"]["dispatches"]), (&0.into(), &2.into()));
}

#[test]
fn what_is_reported_and_the_status_are_variables() {
    let known = folder("known").join("known.txt");
    std::fs::write(&known, "# the tile\nmemory:workgroup*\n").unwrap();
    let ended = run("suppressed", "race", &[("SPELTER_CHECK_SUPPRESSIONS", known.to_str().unwrap())]);
    assert_eq!((ended.output.status.code(), ended.findings().len()), (Some(0), 0), "{}", ended.stderr());
    assert!(ended.summaries().last().unwrap()["suppressed"].as_u64() > Some(0));
    assert!(!ended.stdout().contains("HEARD"));
    let ended = run("only", "race", &[("SPELTER_CHECK_ONLY", "BARRIER,RACE-WAW")]);
    assert_eq!((ended.output.status.code(), ended.findings().len()), (Some(0), 0), "{}", ended.stderr());
    let ended = run("shard", "race", &[("SPELTER_CHECK_SHARD", "1/1"), ("SPELTER_CHECK_EXITCODE", "0")]);
    assert_eq!((ended.output.status.code(), ended.findings().len()), (Some(0), 1), "{}", ended.stderr());
    let ended = run("status", "race", &[("SPELTER_CHECK_EXITCODE", "3"), ("SPELTER_QUIET", "1")]);
    assert_eq!((ended.output.status.code(), ended.stderr().as_str()), (Some(3), ""));
    let ended = run("off", "race", &[("SPELTER_CHECK", "0")]);
    assert_eq!((ended.output.status.code(), ended.lines.len()), (Some(0), 0), "{}", ended.stderr());
    let ended = run("bad", "right", &[("SPELTER_CHECK_ONLY", "nonsense")]);
    let complaint = "spelter: SPELTER_CHECK_ONLY=nonsense: `nonsense` is not a rule; the rules are SPELTER-RACE-RAW";
    assert!(ended.stderr().starts_with(complaint), "{}", ended.stderr());
    let ended = run("file", "race", &[("SPELTER_CHECK_JSON", "/no/such/folder/found.jsonl")]);
    assert_eq!(ended.output.status.code(), Some(66));
    assert!(ended.stdout().contains("SPELTER_CHECK_JSON: /no/such/folder/found.jsonl cannot be written"));
}

#[test]
fn findings_of_an_earlier_run_are_not_printed_again() {
    let first = run("first", "race", &[]);
    assert_eq!(first.stderr().matches("error[").count(), 1);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("checked-first/found.jsonl");
    let second = run("second", "race", &[("SPELTER_CHECK_KNOWN", file.to_str().unwrap())]);
    assert_eq!((second.stderr().as_str(), second.output.status.code()), ("", Some(66)));
    assert_eq!(second.findings()[0]["fingerprint"], first.findings()[0]["fingerprint"]);
}

#[test]
fn nothing_is_lost_if_the_device_is_not_destroyed() {
    for (case, code, summaries) in [("leaked", Some(66), 1), ("unwaited", Some(66), 1), ("killed", None, 0)] {
        let ended = run(case, case, &[]);
        assert_eq!(ended.output.status.code(), code, "{case}\n{}", ended.stderr());
        assert_eq!((ended.findings().len(), ended.summaries().len()), (1, summaries), "{case}");
        assert_eq!(ended.stderr().matches("error[SPELTER-RACE-RAW]").count(), 1, "{case}\n{}", ended.stderr());
    }
    assert_eq!(run("signal", "killed", &[]).output.status.signal(), Some(9));
}

#[test]
fn reads_through_a_mapped_pointer_are_errors_if_they_are_trapped() {
    let trap = [("SPELTER_CHECK_HOST", "trap")];
    let ended = run("trap-seen", "seen", &trap);
    assert_eq!((ended.output.status.code(), ended.stderr().as_str()), (Some(0), ""));
    let ended = run("trap-unseen", "unseen", &trap);
    assert_eq!(ended.output.status.code(), Some(66), "{}", ended.stderr());
    let findings = ended.findings();
    assert_eq!(findings.len(), 1, "{}", ended.stderr());
    assert_eq!((&findings[0]["id"], &findings[0]["severity"]), (&"SPELTER-HOST".into(), &"error".into()));
    // The test's own program: its name, and the instruction's offset.
    assert!(ended.stderr().contains("read by the host at") && ended.stderr().contains("+0x"), "{}", ended.stderr());
    let advised = run("trap-advise", "unseen", &[]);
    assert_eq!((advised.output.status.code(), &advised.findings()[0]["severity"]), (Some(0), &"note".into()));
}

/// A program that reads back has a note for each of its kernels, of which the first says what all do.
#[test]
fn the_first_note_on_reads_of_the_host_is_printed() {
    let ended = run("advise-twice", "unseen_twice", &[]);
    let rules: Vec<_> = ended.findings().iter().filter_map(|finding| finding["id"].as_str()).collect();
    assert_eq!((ended.output.status.code(), rules), (Some(0), vec!["SPELTER-HOST"; 2]), "{}", ended.stderr());
    assert_eq!(ended.stderr().matches("note[SPELTER-HOST]").count(), 1, "{}", ended.stderr());
}

#[test]
fn reads_before_the_host_waits_are_errors_if_they_are_trapped() {
    let ended = run("trap-early", "early", &[("SPELTER_CHECK_HOST", "trap")]);
    assert_eq!(ended.output.status.code(), Some(66), "{}", ended.stderr());
    let findings = ended.findings();
    assert_eq!((findings.len(), &findings[0]["id"]), (1, &"SPELTER-RACE-RAW".into()), "{}", ended.stderr());
    assert_eq!(findings[0]["conditions"][0], "the host has not waited for the command");
    // Without it nothing tells of the read.
    let advised = run("advise-early", "early", &[]);
    assert_eq!((advised.output.status.code(), advised.findings().len()), (Some(0), 0), "{}", advised.stderr());
}

#[test]
fn a_process_that_forks_while_it_checks_neither_hangs_nor_crashes() {
    let ended = run("forks-while-checking", "forks_while_checking", &[]);
    assert_eq!(ended.output.status.code(), Some(66), "{}\n{}", ended.stdout(), ended.stderr());
}

#[test]
fn a_forked_process_reports_only_what_it_finds_itself() {
    let ended = run("fork", "fork", &[]);
    assert_eq!(ended.output.status.code(), Some(66), "{}", ended.stderr());
    let processes: Vec<_> = ended.findings().iter().map(|finding| finding["process"].as_u64().unwrap()).collect();
    // The parent's, and that of the second child, which has a device of its own.
    assert_eq!(processes.len(), 2, "{}", ended.stderr());
    assert_ne!(processes[0], processes[1]);
    let started = ended.lines.iter().filter(|line| line["started"].is_object()).count();
    assert_eq!((started, ended.summaries().len()), (2, 2));
    assert_eq!(ended.stderr().matches("error[SPELTER-RACE-RAW]").count(), 2, "{}", ended.stderr());
}

#[test]
fn threads_report_each_finding_once() {
    let ended = run("threads", "threads", &[]);
    assert_eq!(ended.output.status.code(), Some(66), "{}", ended.stderr());
    assert_eq!((ended.findings().len(), ended.stderr().matches("error[").count()), (1, 1), "{}", ended.stderr());
    let summary = *ended.summaries().last().unwrap();
    assert_eq!(summary["checked"]["dispatches"], 64);
    // The race is known after the first dispatch, and four more show nothing new; of the others the second, fourth and
    // so on run again.
    assert_eq!(summary["checked"]["dispatches_repeated"], 10);
    assert_eq!(ended.stdout().matches("HEARD").count(), 1);
}

/// Not a test in itself: what the processes of the tests above do.
#[test]
fn a_case_of_another_process() {
    match std::env::var(CASE).as_deref() {
        Ok("race") => once(RACE),
        Ok("right") => once(&RACE.replace("// workgroupBarrier", "workgroupBarrier")),
        Ok("variants") => {
            let gpu = Gpu::new();
            run_once(&gpu, &RACE.replace("l / 2u", "l / 3u"));
            run_once(&gpu, &RACE.replace("l / 2u", "l / 5u"));
        }
        Ok("leaked") => {
            let (gpu, program) = submitted(true);
            std::mem::forget((gpu, program));
        }
        Ok("unwaited") => {
            let (gpu, program) = submitted(false);
            // The program sees by its own means that the work is done.
            while gpu.0.read()[63] != 31 {
                std::thread::yield_now();
            }
            std::mem::forget((gpu, program));
        }
        Ok("killed") => {
            let _kept = submitted(true);
            unsafe { kill(std::process::id().cast_signed(), 9) };
        }
        Ok("fork") => forks(),
        Ok("forks_while_checking") => forks_while_checking(),
        Ok("seen") => reads_mapped_memory("l / 2u", true),
        Ok("unseen") => reads_mapped_memory("l / 2u", false),
        Ok("unseen_twice") => {
            reads_mapped_memory("l / 2u", false);
            reads_mapped_memory("l >> 1u", false);
        }
        Ok("early") => reads_early(),
        Ok("threads") => threads(),
        _ => {}
    }
}

fn program(gpu: &Gpu, wgsl: &str) -> Program {
    gpu.program(wgsl, &[vk::DescriptorType::STORAGE_BUFFER], vk::DescriptorSetLayoutCreateFlags::empty())
}

/// A device on which the race has run, or runs.
fn submitted(wait: bool) -> ((common::Buffer, Gpu), Program) {
    let gpu = Gpu::new();
    let program = program(&gpu, RACE);
    let buffer = gpu.buffer(64);
    let set = gpu.set(gpu.descriptor_pool(), &program, &[&buffer]);
    let commands = [gpu.dispatch(program.pipeline, program.layout, set, 1)];
    let submit = vk::SubmitInfo::default().command_buffers(&commands);
    unsafe {
        gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()).unwrap();
        if wait {
            gpu.device.queue_wait_idle(gpu.queue).unwrap();
        }
    }
    ((buffer, gpu), program)
}

/// Runs a kernel, and waits for it.
fn run_once(gpu: &Gpu, wgsl: &str) {
    let program = program(gpu, wgsl);
    let buffer = gpu.buffer(64);
    let pool = gpu.descriptor_pool();
    let set = gpu.set(pool, &program, &[&buffer]);
    let commands = [gpu.dispatch(program.pipeline, program.layout, set, 1)];
    let submit = vk::SubmitInfo::default().command_buffers(&commands);
    unsafe {
        gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()).unwrap();
        gpu.device.queue_wait_idle(gpu.queue).unwrap();
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(buffer);
}

/// What a messenger prints of a message, and the call in which this thread is.
static CALL: Mutex<&str> = Mutex::new("none");

unsafe extern "system" fn print(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    device: *mut c_void,
) -> vk::Bool32 {
    let text = |at: *const c_char| {
        if at.is_null() { String::new() } else { unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned() }
    };
    let data = unsafe { &*data };
    let labels = (0..data.cmd_buf_label_count as usize)
        .map(|index| text(unsafe { (*data.p_cmd_buf_labels.add(index)).p_label_name }));
    let labels: Vec<_> = labels.collect();
    let named = |ty| {
        let objects = (0..data.object_count as usize).map(|index| unsafe { &*data.p_objects.add(index) });
        objects.filter(|object| object.object_type == ty).map(|object| text(object.p_object_name)).collect::<String>()
    };
    println!(
        "HEARD {} number:{} labels:{} queue:{} commands:{} pipeline:{} in:{} {}",
        text(data.p_message_id_name),
        data.message_id_number != 0,
        labels.join(","),
        named(vk::ObjectType::QUEUE),
        named(vk::ObjectType::COMMAND_BUFFER),
        named(vk::ObjectType::PIPELINE),
        CALL.lock().unwrap(),
        text(data.p_message),
    );
    if !device.is_null() {
        // A callback may call Vulkan.
        let device = unsafe { &*device.cast::<ash::Device>() };
        unsafe { device.device_wait_idle().unwrap() };
    }
    vk::FALSE
}

/// A messenger that prints what it hears.
fn listen(gpu: &Gpu) -> (ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT) {
    let utils = ash::ext::debug_utils::Instance::new(&gpu.entry, &gpu.instance);
    type S = vk::DebugUtilsMessageSeverityFlagsEXT;
    type T = vk::DebugUtilsMessageTypeFlagsEXT;
    let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(S::ERROR | S::WARNING)
        .message_type(T::GENERAL | T::VALIDATION)
        .pfn_user_callback(Some(print))
        .user_data((&raw const gpu.device).cast_mut().cast());
    let messenger = unsafe { utils.create_debug_utils_messenger(&info, None).unwrap() };
    (utils, messenger)
}

/// Runs a kernel twice, with names and labels.
fn once(wgsl: &str) {
    let gpu = Gpu::new();
    let (utils, messenger) = listen(&gpu);
    let names = ash::ext::debug_utils::Device::new(&gpu.instance, &gpu.device);
    let program = program(&gpu, wgsl);
    let buffer = gpu.buffer(64);
    let pool = gpu.descriptor_pool();
    let set = gpu.set(pool, &program, &[&buffer]);
    let label = |name| vk::DebugUtilsLabelEXT::default().label_name(name);
    let point = vk::PipelineBindPoint::COMPUTE;
    let commands = gpu.record(|device, commands| unsafe {
        names.cmd_begin_debug_utils_label(commands, &label(c"frame"));
        names.cmd_begin_debug_utils_label(commands, &label(c"blur"));
        device.cmd_bind_pipeline(commands, point, program.pipeline);
        device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
        device.cmd_dispatch(commands, 1, 1, 1);
    });
    let commands = commands.unwrap();
    let name = |info: vk::DebugUtilsObjectNameInfoEXT<'_>| unsafe {
        names.set_debug_utils_object_name(&info).unwrap();
    };
    let info = vk::DebugUtilsObjectNameInfoEXT::default;
    name(info().object_handle(gpu.queue).object_name(c"compute"));
    name(info().object_handle(commands).object_name(c"recorded"));
    name(info().object_handle(program.pipeline).object_name(c"reverse"));
    *CALL.lock().unwrap() = "submit";
    for _ in 0..2 {
        let commands = [commands];
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        unsafe {
            gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()).unwrap();
            *CALL.lock().unwrap() = "wait";
            gpu.device.queue_wait_idle(gpu.queue).unwrap();
        }
    }
    unsafe {
        gpu.device.destroy_descriptor_pool(pool, None);
        utils.destroy_debug_utils_messenger(messenger, None);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(buffer);
}

/// A dispatch that writes to mapped memory, and what `end` records after it.
fn writes_mapped_memory(
    gpu: &Gpu,
    program: &Program,
    end: impl FnOnce(vk::CommandBuffer),
) -> (common::Buffer, vk::CommandBuffer) {
    let buffer = gpu.buffer(4096);
    let set = gpu.set(gpu.descriptor_pool(), program, &[&buffer]);
    let (device, point) = (&gpu.device, vk::PipelineBindPoint::COMPUTE);
    let info = vk::CommandBufferAllocateInfo::default().command_pool(gpu.pool).command_buffer_count(1);
    unsafe {
        let commands = device.allocate_command_buffers(&info).unwrap()[0];
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).unwrap();
        device.cmd_bind_pipeline(commands, point, program.pipeline);
        device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
        device.cmd_dispatch(commands, 1, 1, 1);
        end(commands);
        device.end_command_buffer(commands).unwrap();
        (buffer, commands)
    }
}

/// The program knows from an event that the dispatch has run, and reads its result without a wait for it.
fn reads_early() {
    let gpu = Gpu::new();
    let program = program(&gpu, &RACE.replace("// workgroupBarrier", "workgroupBarrier"));
    unsafe {
        let event = gpu.device.create_event(&vk::EventCreateInfo::default(), None).unwrap();
        let (buffer, commands) = writes_mapped_memory(&gpu, &program, |commands| {
            gpu.make_visible_to_the_host(commands);
            gpu.device.cmd_set_event(commands, event, vk::PipelineStageFlags::ALL_COMMANDS);
        });
        let commands = [commands];
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()).unwrap();
        while !gpu.device.get_event_status(event).unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(buffer.mapped.add(63).read_volatile(), 31);
        gpu.device.queue_wait_idle(gpu.queue).unwrap();
        std::mem::forget((gpu, program, buffer));
    }
}

/// Reads what a dispatch wrote through a mapped pointer, and uses the rest of its page.
fn reads_mapped_memory(half: &str, visible: bool) {
    let gpu = Gpu::new();
    let right = RACE.replace("// workgroupBarrier", "workgroupBarrier").replace("l / 2u", half);
    let program = program(&gpu, &right);
    let (buffer, commands) = writes_mapped_memory(&gpu, &program, |commands| {
        if visible {
            gpu.make_visible_to_the_host(commands);
        }
    });
    let word = |index: usize| unsafe { buffer.mapped.add(index) };
    for round in 0..3 {
        // Words that no command accesses, in the page of the results and in the next one.
        unsafe {
            word(500).write_volatile(round);
            word(3000).write_volatile(round + 1);
        }
        gpu.run(commands);
        let read = (0..64).map(|index| unsafe { word(index).read_volatile() });
        assert!(read.eq((0..64).map(|index| index / 2)));
        assert_eq!(unsafe { (word(500).read_volatile(), word(3000).read_volatile()) }, (round, round + 1));
    }
    std::mem::forget((gpu, program, buffer));
}

/// A process with findings that forks twice: the first child has no device, the second one finds the race as well.
fn forks() {
    let _kept = submitted(true);
    for own in [false, true] {
        match unsafe { fork() } {
            0 => {
                if own {
                    std::mem::forget(submitted(true));
                }
                unsafe { exit(0) }
            }
            child => {
                let mut status = -1;
                assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
                // The status as `wait` gives it.
                assert_eq!(status, if own { 66 << 8 } else { 0 });
            }
        }
    }
}

/// Forks again and again while another thread submits dispatches and waits for them, so that locks of checked mode are
/// held at some of the forks. In the child the device is lost, no call hangs, and the process ends as others do; every
/// fourth child makes a device of its own and finds the race there.
fn forks_while_checking() {
    const FORKS: u32 = 40;
    /// Seconds after which the system ends a child that hangs.
    const HANGS: c_uint = 120;
    let gpu = Gpu::new();
    let program = program(&gpu, RACE);
    let buffer = gpu.buffer(64);
    let set = gpu.set(gpu.descriptor_pool(), &program, &[&buffer]);
    let commands = [gpu.dispatch(program.pipeline, program.layout, set, 8)];
    let more = gpu.buffer(64);
    let (stop, device) = (AtomicBool::new(false), &gpu.device);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let submit = [vk::SubmitInfo::default().command_buffers(&commands)];
            // Relaxed: nothing else is read with it.
            while !stop.load(Ordering::Relaxed) {
                unsafe {
                    device.queue_submit(gpu.queue, &submit, vk::Fence::null()).unwrap();
                    device.queue_wait_idle(gpu.queue).unwrap();
                }
            }
        });
        let fork_once = |number| match unsafe { fork() } {
            0 => unsafe {
                alarm(HANGS);
                assert_eq!(device.device_wait_idle(), Err(vk::Result::ERROR_DEVICE_LOST));
                device.unmap_memory(more.memory);
                device.map_memory(more.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).unwrap();
                if number % 4 == 3 {
                    std::mem::forget(submitted(true));
                }
                exit(0)
            },
            child => {
                let mut status = -1;
                assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
                status
            }
        };
        let ended: Vec<_> = (0..FORKS).map(fork_once).collect();
        stop.store(true, Ordering::Relaxed);
        ended
    });
    let expected = |number: u32| if number % 4 == 3 { 66 << 8 } else { 0 };
    assert_eq!(ended, (0..FORKS).map(expected).collect::<Vec<_>>());
    std::mem::forget((gpu, program, buffer, more));
}

/// A command buffer of a pool with one dispatch.
fn recorded(gpu: &Gpu, pool: vk::CommandPool, program: &Program, set: vk::DescriptorSet) -> vk::CommandBuffer {
    let (device, point) = (&gpu.device, vk::PipelineBindPoint::COMPUTE);
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    unsafe {
        let commands = device.allocate_command_buffers(&info).unwrap()[0];
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).unwrap();
        device.cmd_bind_pipeline(commands, point, program.pipeline);
        device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
        device.cmd_dispatch(commands, 1, 1, 1);
        gpu.make_visible_to_the_host(commands);
        device.end_command_buffer(commands).unwrap();
        commands
    }
}

/// Eight threads that each submit the race eight times, to one queue.
fn threads() {
    let gpu = Gpu::new();
    let (utils, messenger) = listen(&gpu);
    let program = program(&gpu, RACE);
    let (queue, kept) = (Mutex::new(gpu.queue), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let buffer = gpu.buffer(64);
                let set = gpu.set(gpu.descriptor_pool(), &program, &[&buffer]);
                let info = vk::CommandPoolCreateInfo::default();
                let pool = unsafe { gpu.device.create_command_pool(&info, None).unwrap() };
                let commands = recorded(&gpu, pool, &program, set);
                for _ in 0..8 {
                    let fence = unsafe { gpu.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap() };
                    let all = [commands];
                    let submit = vk::SubmitInfo::default().command_buffers(&all);
                    let queue = queue.lock().unwrap();
                    unsafe { gpu.device.queue_submit(*queue, &[submit], fence).unwrap() };
                    drop(queue);
                    unsafe {
                        gpu.device.wait_for_fences(&[fence], true, u64::MAX).unwrap();
                        gpu.device.destroy_fence(fence, None);
                    }
                }
                unsafe { gpu.device.destroy_command_pool(pool, None) };
                kept.lock().unwrap().push(buffer.raw);
            });
        }
    });
    unsafe {
        gpu.device.device_wait_idle().unwrap();
        utils.destroy_debug_utils_messenger(messenger, None);
    }
}
