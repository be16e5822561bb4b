//! `spelter demo`: a gallery of programs, each checked against a reference and measured.

mod check;
mod histogram;
mod mandelbrot;
mod matmul;
mod nbody;
mod pathtracer;
mod reduce;
mod saxpy;
mod scan;
mod scene;
mod stage;
mod trace;

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde_json::json;
use spelter::Context;

use crate::args::DemoArgs;
use crate::bar::bar;
use crate::columns;
use crate::device;
use crate::failure::Failure;
use crate::output::Output;
use stage::{Done, Stage};

/// A program of the gallery.
struct Demo {
    name: &'static str,
    about: &'static str,
    run: fn(&Stage<'_>) -> Result<Done, Failure>,
}

/// The gallery, in the order of execution.
const GALLERY: [Demo; 8] = [
    Demo { name: "saxpy", about: "y = a x + y", run: saxpy::run },
    Demo { name: "reduce", about: "a sum, by a tree in shared memory", run: reduce::run },
    Demo { name: "scan", about: "prefix sums over several workgroups", run: scan::run },
    Demo { name: "histogram", about: "counts of bytes, with shared atomics", run: histogram::run },
    Demo { name: "matmul", about: "a matrix product, in shared tiles", run: matmul::run },
    Demo { name: "nbody", about: "bodies that attract each other", run: nbody::run },
    Demo { name: "mandelbrot", about: "a picture with smooth colours", run: mandelbrot::run },
    Demo { name: "pathtracer", about: "spheres of glass, metal and clay", run: pathtracer::run },
];

/// Runs the chosen demos.
pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> Result<(), Failure> {
    let chosen = chosen(&args.names);
    if args.list {
        return list(&chosen, args.json, output);
    }
    if args.out.exists() && !args.out.is_dir() {
        return Err(Failure::file(&args.out, "not a directory"));
    }
    let context = device::context(&args.device)?;
    for demo in chosen {
        let bar = progress(demo.name, args.json);
        let done = (demo.run)(&Stage::new(&context, &bar));
        bar.finish_and_clear();
        let done = done.map_err(|failure| Failure::new(format!("demo {}: {failure}", demo.name)))?;
        let saved = save(demo.name, &done, &args.out)?;
        report(demo.name, &done, saved.as_deref(), args.json, &context, output)?;
        output.flush()?;
    }
    Ok(())
}

/// The named demos, in the order of the names; all if there are no names.
fn chosen(names: &[String]) -> Vec<&'static Demo> {
    if names.is_empty() {
        return GALLERY.iter().collect();
    }
    names.iter().filter_map(|name| GALLERY.iter().find(|demo| demo.name == name)).collect()
}

fn list(demos: &[&Demo], json: bool, output: &mut Output) -> Result<(), Failure> {
    if json {
        return demos.iter().try_for_each(|demo| output.json(&json!({ "name": demo.name, "about": demo.about })));
    }
    let rows: Vec<_> = demos.iter().map(|demo| (demo.name, demo.about.to_owned())).collect();
    output.table(&rows)
}

/// A progress bar on standard error if that is a terminal, hidden otherwise.
fn progress(name: &'static str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    bar(1, "{msg:10} {bar:32} {elapsed}").with_message(name)
}

fn save(name: &str, done: &Done, folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let Some(picture) = &done.picture else { return Ok(None) };
    std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let path = folder.join(format!("{name}.png"));
    picture.save(&path)?;
    Ok(Some(path))
}

fn report(
    name: &str,
    done: &Done,
    saved: Option<&Path>,
    json: bool,
    context: &Context,
    output: &mut Output,
) -> Result<(), Failure> {
    if json {
        return output.json(&json!({
            "name": name,
            "correct": true,
            "seconds": done.runs.median(),
            "best_seconds": done.runs.least(),
            "spread": done.runs.spread(),
            "runs": done.runs.all().len(),
            "rate": done.rate,
            "unit": done.unit,
            "note": done.note,
            "picture": saved.map(|path| path.display().to_string()),
            "workers": context.device().properties().workers,
        }));
    }
    let saved = saved.map(|path| format!(" → {}", path.display())).unwrap_or_default();
    let (good, name) = (output.good("ok"), output.strong(&format!("{name:10}")));
    let note = output.faint(&done.note);
    output.line(format!(
        "{good}  {name} {:>9} {:12} spread {:>6} {:>9}  {note}{saved}",
        figures(done.rate),
        done.unit,
        columns::percent(done.runs.spread()),
        columns::seconds(done.runs.median()),
    ))
}

/// About three significant digits.
fn figures(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n if n >= 1.0 => format!("{n:.2}"),
        n => format!("{n:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::GALLERY;
    use crate::args::DEMOS;

    #[test]
    fn the_command_line_names_all_programs_of_the_gallery() {
        assert_eq!(GALLERY.map(|demo| demo.name), DEMOS);
    }
}
