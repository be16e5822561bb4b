//! The table of the census: a row for each part of the compiler, a column for each project.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::subject::Found;

/// Kernels that a part must change, in at least two projects, to be worth its lines.
const MIN_KERNELS: usize = 10;

/// A part of the compiler: its name, and its files or folders below `shaders/src`.
type Part = (&'static str, &'static [&'static str]);

/// All parts, in the order in which they run.
pub(crate) const PARTS: &[Part] = &[
    ("cfg", &["opt/cfg"]),
    ("mem2reg", &["opt/mem2reg"]),
    ("constant_arrays", &["opt/constant_arrays.rs"]),
    ("peephole", &["opt/peephole"]),
    ("gvn", &["opt/gvn.rs"]),
    ("meld", &["opt/meld"]),
    ("unroll", &["opt/unroll", "analysis/trip_count.rs"]),
    ("forward", &["opt/forward"]),
    ("if_conversion", &["opt/if_conversion.rs"]),
    ("range_simplify", &["opt/range_simplify"]),
    ("licm", &["opt/licm"]),
    ("dce", &["opt/dce.rs"]),
    ("contract", &["opt/contract.rs"]),
    ("math", &["lower/math"]),
    ("unify_exits", &["vectorize/prepare/unify_exits"]),
    ("merge_workgroups", &["vectorize/prepare/merge_workgroups.rs"]),
    ("widen_loop_loads", &["vectorize/prepare/widen_loop_loads.rs"]),
    ("uniform", &[]),
    ("contiguous", &[]),
    // The three kinds of interleave groups.
    ("strided", &["vectorize/access/interleave.rs", "vectorize/access/emit_groups.rs"]),
    ("constant offsets", &[]),
    ("adjacent words", &[]),
    ("segments", &["vectorize/access/segments.rs"]),
    ("per lane", &[]),
    ("image samples", &["vectorize/sample"]),
    ("context slots", &["vectorize/subgroup_loop/context_slots.rs", "vectorize/subgroup_loop/context_slots"]),
    ("trip-count bound", &["vectorize/subgroup_loop/bound.rs"]),
    ("simd licm", &["simd/licm.rs"]),
    ("unroll_and_jam", &["simd/unroll_and_jam"]),
    ("schedule", &["simd/schedule.rs", "simd/cost.rs"]),
    ("simd merge_blocks", &["simd/merge_blocks.rs"]),
    ("workgroup_loop", &["simd/workgroup_loop.rs"]),
    ("software prefetch", &["back/x86/select/prefetch.rs"]),
    ("non-temporal stores", &["back/x86/select/nontemporal.rs"]),
    ("uniform atomics", &["back/x86/select/avx512/uniform_atomic.rs", "back/x86/select/avx2/uniform_atomic.rs"]),
    ("atomic scans", &["back/x86/select/avx512/atomic_scan.rs", "back/x86/select/avx2/atomic_scan.rs"]),
];

/// The results for one project.
#[derive(Debug, Default)]
pub(crate) struct Project {
    kernels: usize,
    rejected: Vec<String>,
    /// Kernels that each part changed.
    changed: BTreeMap<&'static str, usize>,
}

impl Project {
    pub(crate) fn add(&mut self, found: Found) {
        self.kernels += found.kernels.len();
        self.rejected.extend(found.rejected);
        for part in found.kernels.into_iter().flatten() {
            *self.changed.entry(part).or_default() += 1;
        }
    }
}

/// The whole census.
pub(crate) struct Report {
    projects: Vec<(String, Project)>,
}

impl Report {
    pub(crate) fn new(projects: BTreeMap<&str, Project>) -> Self {
        let named = |(name, mut project): (&str, Project)| {
            project.rejected.sort();
            (name.to_owned(), project)
        };
        Self { projects: projects.into_iter().map(named).collect() }
    }

    fn counts(&self, part: &str) -> Vec<usize> {
        self.projects.iter().map(|(_, project)| project.changed.get(part).copied().unwrap_or(0)).collect()
    }

    /// A table; parts below the threshold have a mark, rejected kernels a line each.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("| part | lines |");
        self.projects.iter().for_each(|(name, _)| _ = write!(text, " {name} |"));
        text += " general |\n| --- | ---: |";
        self.projects.iter().for_each(|_| text += " ---: |");
        text += " --- |\n| kernels | |";
        self.projects.iter().for_each(|(_, project)| _ = write!(text, " {} |", project.kernels));
        text += " |\n";
        for &(part, files) in PARTS {
            let counts = self.counts(part);
            let lines = lines(files).map_or(String::new(), |lines| lines.to_string());
            let _ = write!(text, "| {part} | {lines} |");
            counts.iter().for_each(|count| _ = write!(text, " {count} |"));
            let _ = writeln!(text, " {} |", if is_general(&counts) { "yes" } else { "**no**" });
        }
        for (name, project) in self.projects.iter().filter(|(_, project)| !project.rejected.is_empty()) {
            let _ = writeln!(text, "\n{name}: {} without machine code", project.rejected.len());
            project.rejected.iter().for_each(|reason| _ = writeln!(text, "- {reason}"));
        }
        text
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> Value {
        let part = |&(name, files): &Part| {
            let counts = self.counts(name);
            let by_project: BTreeMap<_, _> =
                self.projects.iter().map(|(name, _)| name.as_str()).zip(counts.iter().copied()).collect();
            json!({ "part": name, "lines": lines(files), "kernels": by_project, "general": is_general(&counts) })
        };
        let project = |(name, project): &(String, Project)| json!({ "project": name, "kernels": project.kernels, "rejected": project.rejected });
        json!({
            "parts": PARTS.iter().map(part).collect::<Vec<_>>(),
            "projects": self.projects.iter().map(project).collect::<Vec<_>>(),
        })
    }
}

/// Whether a part changes enough kernels, of at least two projects.
fn is_general(counts: &[usize]) -> bool {
    counts.iter().sum::<usize>() >= MIN_KERNELS && counts.iter().filter(|&&count| count > 0).count() >= 2
}

/// Lines of files and folders below `shaders/src`; `None` for parts without files of their own.
fn lines(files: &[&str]) -> Option<usize> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shaders/src");
    (!files.is_empty()).then(|| files.iter().map(|file| lines_of(&source.join(file))).sum())
}

fn lines_of(path: &Path) -> usize {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        return entries.map(|entry| lines_of(&entry.path())).sum();
    }
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_files() {
        for (part, files) in PARTS.iter().filter(|(_, files)| !files.is_empty()) {
            assert!(lines(files).is_some_and(|lines| lines > 10), "{part}: {files:?}");
        }
    }

    #[test]
    fn a_part_is_general_with_ten_kernels_of_two_projects() {
        assert!(is_general(&[9, 1]) && !is_general(&[9, 0]) && !is_general(&[10, 0]) && !is_general(&[5, 4]));
    }
}
