//! `spelter check --many-seeds`: runs of a program in many orders, which a file of results may keep as a job array.

use std::ffi::OsString;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use serde_json::{Value, json};
use spelter::check::Severity;
use spelter_jobs::{JobArray, Results, digest, earlier, jobs_left};
use vulkan_spelter::options::UNCHECKED_STATUS;

use super::folder::Folder;
use super::merge::Merged;
use super::with_files;
use crate::args::CheckCommandArgs;
use crate::environment;
use crate::failure::Failure;
use crate::icd;
use crate::output;

/// Runs the program in each order of the shard that the file of results lacks. Returns what all orders found, those of
/// the file included, with the status of the first one that failed.
pub(super) fn run(
    args: &CheckCommandArgs,
    folder: &Folder,
    variables: &[(&'static str, OsString)],
) -> Result<(Merged, u8), Failure> {
    let wrong = |error: spelter_jobs::Error| Failure::new(error.to_string());
    let (array, shard) = (job_array(args)?, args.orders());
    let open = |path: &PathBuf| {
        let program = args.command.first().and_then(|name| program_file(name));
        Results::open_of_program(path, &array, shard, program.as_deref(), args.any_build)
    };
    let opened = args.results.as_ref().map(open).transpose();
    let mut results = opened.map_err(wrong)?;
    let (mut all, mut status, mut read) = (Merged::default(), 0, 0);
    let result = |result: &Value| result["findings"].is_array().then(|| result.clone());
    let mut recorded = earlier(results.as_ref(), result).map_err(wrong)?;
    // The status of a program that was stopped, and so has no result.
    let mut stopped = 0;
    for order in jobs_left(results.as_ref(), &array, shard) {
        let ended = icd::run_checked(&in_order(args, order, array.jobs), variables)?;
        let found = Merged::new(&folder.new_lines(&mut read)?);
        if let Some(results) = &mut results {
            if ended.is_interrupted {
                output::note(format_args!("order {order} has no result, since the program was stopped"));
                stopped = ended.status;
                all.append(found);
                break;
            }
            let mut result = found.result();
            result["program"] = json!({ "status": ended.status });
            let failed = status_of(args, &found, ended.status) != 0;
            results.record(order, &result, failed).map_err(wrong)?;
            recorded.push((order, result));
        } else {
            all.append(found);
            status = first_failure(status, ended.status);
        }
    }
    recorded.sort_by_key(|(order, _)| *order);
    for (_, result) in recorded {
        all.append(Merged::from_result(&result));
        status = first_failure(status, result["program"]["status"].as_u64().unwrap_or(0) as u8);
    }
    Ok((all, first_failure(stopped, status)))
}

/// The exit status for what runs found, with the status of the first program that failed.
pub(super) fn status_of(args: &CheckCommandArgs, merged: &Merged, status: u8) -> u8 {
    let has_errors = merged.count(Severity::Error) > 0;
    match status {
        _ if has_errors && args.error_exitcode != 0 => args.error_exitcode,
        0 if !has_errors && merged.is_partial() && !args.allow_unchecked => UNCHECKED_STATUS,
        _ => status,
    }
}

/// The first of two statuses that is not 0.
fn first_failure(earlier: u8, later: u8) -> u8 {
    if earlier == 0 { later } else { earlier }
}

/// The options of a run in an order; order 0 is the usual one.
fn in_order(args: &CheckCommandArgs, order: u64, orders: u64) -> crate::args::ExecArgs {
    let mut exec = args.exec();
    if order > 0 {
        let schedule = spelter::Schedule::Random(order);
        exec.device.schedule = Some(schedule);
        output::note(format_args!("run {} of {orders}, --schedule {schedule}", order + 1));
    }
    exec
}

/// The orders as a job array.
fn job_array(args: &CheckCommandArgs) -> Result<JobArray, Failure> {
    let CheckCommandArgs { command, check_memory, graphics, time_limit, host, .. } = args;
    let filter = with_files(args.reported.filter(), &args.reported.suppressions)?;
    let options = digest(&format!("{:?}", (filter, check_memory, graphics, time_limit, host)));
    let backend = environment::inherited_backend()?.name();
    let settings =
        json!({ "command": command, "profile": args.profile.name(), "options": options, "backend": backend });
    Ok(JobArray { name: "check --many-seeds".to_owned(), settings, jobs: args.many_seeds.unwrap_or(1).into() })
}

/// The file of the program that a command's first word names, as a shell finds it.
fn program_file(name: &str) -> Option<PathBuf> {
    let is_path = name.contains(MAIN_SEPARATOR);
    let folders =
        if is_path { vec![PathBuf::new()] } else { std::env::split_paths(&std::env::var_os("PATH")?).collect() };
    folders.into_iter().map(|folder| folder.join(name)).find(|path| Path::is_file(path))
}
