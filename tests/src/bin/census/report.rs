//! The table of the census: a row for each part of the compiler, a column for each project.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::subject::{Found, Shader};

/// Shaders that a part must change, in at least two other projects, to be worth its lines.
const MIN_SHADERS: usize = 10;

/// The column of this repository's kernels, which show what they test, and do not make a part general.
pub(crate) const OWN: &str = "own";

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
    ("hoist_shared_loads", &["simd/hoist_shared_loads.rs"]),
    ("unroll_and_jam", &["simd/unroll_and_jam"]),
    ("schedule", &["simd/schedule.rs", "simd/cost.rs"]),
    ("merge_simd_blocks", &["simd/merge_simd_blocks.rs"]),
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
    shaders: BTreeSet<Shader>,
    /// Shaders of which each part changed a variant.
    changed: BTreeMap<&'static str, BTreeSet<Shader>>,
}

impl Project {
    pub(crate) fn add(&mut self, found: Found) {
        self.kernels += found.kernels.len();
        self.rejected.extend(found.rejected);
        for (shader, parts) in found.kernels {
            for part in parts {
                self.changed.entry(part).or_default().insert(shader.clone());
            }
            self.shaders.insert(shader);
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
        let mut projects: Vec<_> = projects.into_iter().map(named).collect();
        projects.sort_by_key(|(name, _)| name == OWN);
        Self { projects }
    }

    /// The shaders that a part changed, by project.
    fn counts(&self, part: &str) -> Vec<usize> {
        self.projects.iter().map(|(_, project)| project.changed.get(part).map_or(0, BTreeSet::len)).collect()
    }

    /// Whether a part changes enough shaders, of at least two other projects.
    fn is_general(&self, part: &str) -> bool {
        let counts = self.projects.iter().zip(self.counts(part));
        let counts: Vec<usize> = counts.filter(|((name, _), _)| name != OWN).map(|(_, count)| count).collect();
        counts.iter().sum::<usize>() >= MIN_SHADERS && counts.iter().filter(|&&count| count > 0).count() >= 2
    }

    /// A table; parts below the threshold have a mark, rejected kernels a line each.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("| part | lines |");
        self.projects.iter().for_each(|(name, _)| _ = write!(text, " {name} |"));
        text += " general |\n| --- | ---: |";
        self.projects.iter().for_each(|_| text += " ---: |");
        text += " --- |\n";
        text += "| kernels | |";
        self.projects.iter().for_each(|(_, project)| _ = write!(text, " {} |", project.kernels));
        text += " |\n| shaders | |";
        self.projects.iter().for_each(|(_, project)| _ = write!(text, " {} |", project.shaders.len()));
        text += " |\n";
        for &(part, files) in PARTS {
            let counts = self.counts(part);
            let lines = lines(files).map_or(String::new(), |lines| lines.to_string());
            let _ = write!(text, "| {part} | {lines} |");
            counts.iter().for_each(|count| _ = write!(text, " {count} |"));
            let _ = writeln!(text, " {} |", if self.is_general(part) { "yes" } else { "**no**" });
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
            json!({ "part": name, "lines": lines(files), "shaders": by_project, "general": self.is_general(name) })
        };
        let project = |(name, project): &(String, Project)| {
            let Project { kernels, rejected, shaders, .. } = project;
            json!({ "project": name, "kernels": kernels, "shaders": shaders.len(), "rejected": rejected })
        };
        json!({
            "parts": PARTS.iter().map(part).collect::<Vec<_>>(),
            "projects": self.projects.iter().map(project).collect::<Vec<_>>(),
        })
    }
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

    /// A report in which `licm` changed as many shaders of each project.
    fn report(counts: &[(&'static str, usize)]) -> Report {
        let projects = counts.iter().map(|&(name, count)| {
            let shaders = (0..count).map(|number| Shader::new(format!("{number}.spv").as_ref(), "main"));
            let kernels = shaders.map(|shader| (shader, BTreeSet::from(["licm"]))).collect();
            let mut project = Project::default();
            project.add(Found { kernels, rejected: Vec::new() });
            (name, project)
        });
        Report::new(projects.collect())
    }

    #[test]
    fn a_part_is_general_with_ten_shaders_of_two_other_projects() {
        let general = |counts: &[_]| report(counts).is_general("licm");
        assert!(general(&[("a", 9), ("b", 1)]) && !general(&[("a", 10), ("b", 0)]) && !general(&[("a", 5), ("b", 4)]));
        assert!(!general(&[("a", 10), (OWN, 10)]) && !general(&[("a", 5), ("b", 1), (OWN, 10)]));
    }

    #[test]
    fn variants_count_once_and_own_kernels_are_the_last_column() {
        let mut project = Project::default();
        for file in ["blur.glsl.spv", "blur.hlsl.spv"] {
            let shader = Shader::new(file.as_ref(), "main");
            project.add(Found { kernels: vec![(shader, BTreeSet::from(["licm"]))], rejected: Vec::new() });
        }
        let text = Report::new(BTreeMap::from([("zeta", project), (OWN, Project::default())])).markdown();
        assert!(text.contains("| part | lines | zeta | own | general |"), "{text}");
        assert!(text.contains("| kernels | | 2 | 0 | |") && text.contains("| shaders | | 1 | 0 | |"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("| licm |") && line.contains("| 1 | 0 |")), "{text}");
    }
}
