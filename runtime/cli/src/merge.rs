//! `spelter merge`: puts the results of the shards of a job array together.

use std::path::Path;

use serde_json::json;
use spelter_jobs::Merged;

use crate::args::MergeArgs;
use crate::failure::Failure;
use crate::file;
use crate::output::Output;

/// The largest file of results that is read, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Ranges of missing jobs that are listed.
const MAX_SHOWN: usize = 20;

/// Prints what the files have and lack. A missing job is a failure.
pub(crate) fn run(args: &MergeArgs, output: &mut Output) -> Result<(), Failure> {
    args.out.as_deref().map_or(Ok(()), file::check_target)?;
    if let Some(out) = args.out.as_deref().and_then(|out| out.canonicalize().ok())
        && args.files.iter().any(|file| file.canonicalize().is_ok_and(|file| file == out))
    {
        return Err(Failure::file(&out, "is one of the files that are put together: --out needs another name"));
    }
    let read = |path: &std::path::PathBuf| Ok((path.display().to_string(), text(path)?));
    let files = args.files.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let merged = Merged::read(files.iter().map(|(name, text)| (name.as_str(), text.as_str())), args.any_build);
    let merged = merged.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(path) = &args.out {
        std::fs::write(path, merged.text()).map_err(|error| Failure::file(path, error))?;
    }
    let (array, missing) = (merged.array(), merged.missing());
    if args.json {
        output.json(&json!({
            "command": array.name, "settings": array.settings, "jobs": array.jobs, "build": merged.build(), "done": merged.done(),
            "missing": missing.iter().map(|(first, last)| [*first, *last]).collect::<Vec<_>>(),
            "totals": merged.totals(),
        }))?;
    } else {
        output.line(format!("{}: {} of {} jobs", array.name, merged.done(), array.jobs))?;
        merged.totals().iter().try_for_each(|(name, total)| output.line(format!("{total} {name}")))?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    let range = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let mut shown: Vec<String> = missing.iter().take(MAX_SHOWN).map(range).collect();
    if missing.len() > MAX_SHOWN {
        shown.push("…".to_owned());
    }
    let count = array.jobs - merged.done();
    Err(Failure::new(format!("{count} of {} jobs are missing: {}", array.jobs, shown.join(", "))))
}

fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(file::read(path, MAX_BYTES)?).map_err(|_| Failure::file(path, "not a text"))
}
