//! `spelter check`: runs any Vulkan program in checked mode, and reports what its processes found.

use spelter::check::report;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use super::folder::Folder;
use super::merge::Merged;
use super::{check_targets, note_gaps, orders, with_files, write_files};
use crate::args::CheckCommandArgs;
use crate::failure::Failure;
use crate::file;
use crate::icd;
use crate::output;

/// Runs the program as often as the options say. Returns the exit status: that of the program, of its first run that
/// failed if there are several; that of the options if there are errors; one of its own if all runs succeeded and not
/// all was checked.
pub(crate) fn run(args: &CheckCommandArgs) -> Result<u8, Failure> {
    // Errors in files are reported before the program runs.
    with_files(args.reported.filter(), &args.reported.suppressions)?;
    check_targets(&args.files)?;
    if let Some(path) = &args.json {
        file::check_target(path)?;
    }
    let folder = Folder::create()?;
    let (merged, status) = orders::run(args, &folder, &variables(args, &folder)?)?;
    if let Some(path) = &args.json {
        let mut text = String::new();
        merged.findings.iter().for_each(|finding| _ = writeln!(text, "{finding}"));
        _ = writeln!(text, "{}", merged.summary());
        std::fs::write(path, text).map_err(|error| Failure::file(path, error))?;
    }
    let program = args.command.first().map_or("", String::as_str);
    write_files(&args.files, &merged.findings, Path::new(program))?;
    print(&merged, args.graphics, status);
    Ok(orders::status_of(args, &merged, status))
}

/// The variables that tell the driver what to do.
fn variables(args: &CheckCommandArgs, folder: &Folder) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let findings = folder.findings().into_os_string();
    let mut set = vec![
        ("SPELTER_CHECK", args.profile.name().into()),
        ("SPELTER_CHECK_JSON", findings.clone()),
        // A finding that another process or run has printed is not printed again.
        ("SPELTER_CHECK_KNOWN", findings),
        // The status of this program counts.
        ("SPELTER_CHECK_EXITCODE", "0".into()),
    ];
    if let Some(shard) = args.dispatches() {
        set.push(("SPELTER_CHECK_SHARD", shard.to_string().into()));
    }
    if let Some(bytes) = args.check_memory {
        set.push(("SPELTER_CHECK_MEMORY", bytes.to_string().into()));
    }
    if args.host != "advise" {
        set.push(("SPELTER_CHECK_HOST", args.host.clone().into()));
    }
    if !args.reported.only.is_empty() {
        let names: Vec<_> = args.reported.only.iter().map(ToString::to_string).collect();
        set.push(("SPELTER_CHECK_ONLY", names.join(",").into()));
    }
    if !args.reported.suppress.is_empty() || !args.reported.suppressions.is_empty() {
        let filter = with_files(args.reported.filter(), &args.reported.suppressions)?;
        set.push(("SPELTER_CHECK_SUPPRESSIONS", folder.suppressions(&filter)?.into_os_string()));
    }
    Ok(set)
}

/// Prints the summary of runs that ended with this status. The findings were printed while the program ran.
fn print(merged: &Merged, graphics: bool, status: u8) {
    let stats = merged.stats();
    note_gaps(&stats);
    if merged.without_counts > 0 {
        let problem = "processes ended without their counts, which are missing below";
        output::note(format_args!("{} of {} {problem}", merged.without_counts, merged.processes));
    }
    if merged.unfinished > 0 {
        let problem = "processes ended before all that they submitted had run and was checked";
        output::note(format_args!("{} of {} {problem}", merged.unfinished, merged.processes));
    }
    if merged.runs == 0 {
        output::note("the shard has no order of --many-seeds: nothing ran");
        return;
    }
    if merged.processes == 0 {
        // A program that could not be started was reported.
        if !matches!(status, 126 | 127) {
            icd::report_no_device("nothing was checked: ", graphics);
            output::note("SPELTER_CHECK=1 cargo test checks tests with the crates spelter and spelter-wgpu");
        }
        return;
    }
    if merged.is_without_commands() && merged.without_counts == 0 {
        output::note("no dispatch and no transfer ran on a device of Spelter: nothing was checked");
        icd::hint_at_graphics(graphics);
    }
    match merged.host_notes() {
        0 | 1 => {}
        count => output::note(format_args!(
            "{count} notes of SPELTER-HOST, of which each process prints the first; --json has all"
        )),
    }
    let (suppressed, not_shown, is_partial) = (merged.suppressed, merged.not_shown, merged.is_partial());
    let summary = report::summary(|severity| merged.count(severity), suppressed, not_shown, is_partial);
    let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let dispatches = plural(merged.checked("dispatches"), "dispatch", "dispatches");
    let processes = plural(merged.processes as u64, "process", "processes");
    let skipped = match merged.checked("skipped") {
        0 => String::new(),
        skipped => format!(", {skipped} not checked (--shard)"),
    };
    let transfers = match merged.checked("transfers") {
        0 => String::new(),
        transfers => format!(", {}", plural(transfers, "transfer", "transfers")),
    };
    output::note(format_args!("checked: {summary}; {dispatches}{skipped}{transfers}, {processes}"));
}
