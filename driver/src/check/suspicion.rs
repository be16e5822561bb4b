//! Warnings: suspicions that the axioms could not decide about, with what is known of the two accesses.

use std::collections::BTreeSet;

use spelter_shaders::check::observer::Memory;
use spelter_shaders::check::{self, Agents, Relation};
use spelter_shaders::ir::{Binding, InstData, Kernel, Place, Site, SiteAction, Value, Variable, VariableSpace};

use super::dispatch::{DispatchRun, common_bytes};
use super::explanation;
use super::finding::{FoundAccess, Hazard, Rule, Severity};
use super::log::Accessed;
use super::names::WorkgroupGrid;

/// Lines that a warning names for an access of which the line is not known.
const MAX_LINES: usize = 4;

impl DispatchRun<'_> {
    /// Reports an example that was not decided: about the two accesses that the axioms were asked about, if they are
    /// known, or else about what the detector knows. One that counts for nothing is reported if it is not known yet.
    pub(super) fn suspect(
        &self,
        example: &check::Candidate,
        why: &str,
        pair: Option<(Accessed, Accessed)>,
        count: u64,
    ) {
        let (names, kernel) = (&self.code.names.names, &self.code.needed.kernel);
        let mut reasons = vec![explanation::of_cause(example.cause).to_owned()];
        let hazard;
        let memory;
        let accesses;
        if let Some((first, second)) = pair {
            hazard = match (first.writes, second.writes) {
                (true, true) => Hazard::WriteAfterWrite,
                (true, false) => Hazard::ReadAfterWrite,
                (false, _) => Hazard::WriteAfterRead,
            };
            let (from, bytes) = common_bytes(&first, &second);
            let place = match second.memory {
                Memory::Device(_) => Memory::Device(from),
                Memory::Workgroup(_) => Memory::Workgroup(from as u32),
            };
            let common = names.memory(kernel, place, bytes, self.args.buffers);
            memory = names.as_accessed(common, kernel, second.site);
            accesses = (Some(self.access(first.site, first.by)), self.access(second.site, second.by));
        } else {
            hazard = match example.relation {
                Relation::Raw => Hazard::ReadAfterWrite,
                Relation::War => Hazard::WriteAfterRead,
                Relation::Waw => Hazard::WriteAfterWrite,
            };
            let common = names.memory(kernel, example.memory, example.bytes.into(), self.args.buffers);
            memory = names.as_accessed(common, kernel, example.second.site);
            let (first, lines) = self.earlier(example);
            reasons.extend(lines);
            accesses = (Some(first), self.access(example.second.site, example.second.invocation));
        }
        reasons.push(format!("not confirmed: {why}"));
        let rule = Rule::Race(hazard);
        let found = self.found(rule, Severity::Warning, Some(memory), accesses, reasons, count.max(1));
        if count > 0 || !self.code.checker.knows(&found) {
            self.code.checker.report(found);
        }
    }

    /// What is known of the earlier access of an example; and if several instructions may have made it, a sentence
    /// about them.
    fn earlier(&self, example: &check::Candidate) -> (FoundAccess, Option<String>) {
        let kernel = &self.code.needed.kernel;
        let sites = self.may_access(example);
        let grid = WorkgroupGrid { groups: self.args.num_workgroups, base: self.workgroups.base() };
        let triple = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        let group = |workgroup: u64| triple(grid.workgroup(workgroup));
        let (invocation, by) = match example.first.agents {
            Agents::Invocation { invocation, .. } => (Some(invocation), String::new()),
            Agents::Subgroup { workgroup, subgroup, .. } => {
                (None, format!(" by invocations of subgroup {subgroup} of workgroup {}", group(workgroup)))
            }
            Agents::Workgroup { workgroup, .. } => (None, format!(" by invocations of workgroup {}", group(workgroup))),
            Agents::Several { .. } => (None, " by several workgroups".to_owned()),
        };
        let positions: BTreeSet<_> = sites.iter().filter_map(|&site| self.code.names.access(site).position()).collect();
        let mut access = match sites.first().filter(|_| positions.len() == 1) {
            Some(&site) => self.code.names.access(site),
            None => FoundAccess {
                action: match (example.first.atomic, example.relation) {
                    (true, _) => "atomic access",
                    (false, Relation::War) => "read",
                    (false, Relation::Raw | Relation::Waw) => "write",
                }
                .to_owned(),
                ..FoundAccess::default()
            },
        };
        let what = access.action.clone();
        access.action.push_str(&by);
        access.invocation = invocation.map(|by| grid.invocation(by, kernel.workgroup_size));
        let lines = (2..=MAX_LINES).contains(&positions.len()).then(|| {
            let all: Vec<_> = positions.into_iter().collect();
            format!("the {what} was at {}", all.join(" or "))
        });
        (access, lines)
    }

    /// The instructions that may have made the earlier access of an example: those of its kind with a check, on memory
    /// that may be that of the example.
    pub(super) fn may_access(&self, example: &check::Candidate) -> BTreeSet<Site> {
        let kernel = &self.code.needed.kernel;
        let bindings = self.bindings_at(example.memory);
        let variable = match example.memory {
            Memory::Workgroup(offset) => variable_at(kernel, offset),
            Memory::Device(_) => None,
        };
        let is_there = |place: &Place| match (*place, example.memory) {
            (Place::Buffer { buffer, .. }, Memory::Device(_)) => may_be(kernel, buffer, &bindings),
            (Place::Variable { variable: of, .. }, Memory::Workgroup(_)) => variable == Some(of),
            _ => false,
        };
        let fits = |site: Site| match (&kernel.sites[site].action, example.relation) {
            (SiteAction::Read(_), Relation::War) => !example.first.atomic,
            (SiteAction::Write(_), Relation::Raw | Relation::Waw) => !example.first.atomic,
            (SiteAction::Atomic { op, .. }, Relation::Raw | Relation::Waw) => example.first.atomic && !op.is_load(),
            (SiteAction::Atomic { .. }, Relation::War) => example.first.atomic,
            _ => false,
        };
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        let accesses = insts.filter_map(|&inst| match &kernel.insts[inst] {
            InstData::Check { site, place, .. } | InstData::Sync { site, place: Some(place), .. } => {
                is_there(place).then_some(*site)
            }
            InstData::CheckImage { site, image, .. } => matches!(example.memory, Memory::Device(_))
                .then_some(*site)
                .filter(|_| may_be(kernel, *image, &bindings)),
            _ => None,
        });
        accesses.filter(|&site| fits(site)).collect()
    }

    /// The bindings with a descriptor that has this memory.
    fn bindings_at(&self, memory: Memory) -> BTreeSet<Binding> {
        let Memory::Device(address) = memory else { return BTreeSet::new() };
        let of_descriptors = self.code.needed.kernel.bindings.iter();
        let of_descriptors = of_descriptors.flat_map(|(binding, data)| (0..data.count).map(move |_| binding));
        let has = |range: &spelter_shaders::guest::GuestSlice| {
            (range.address() as u64..range.address() as u64 + range.len()).contains(&address)
        };
        of_descriptors.zip(self.args.buffers).filter(|(_, range)| has(range)).map(|(binding, _)| binding).collect()
    }
}

/// Whether memory may be that of one of the bindings: a pointer that is a value may be any.
fn may_be(kernel: &Kernel, memory: Value, bindings: &BTreeSet<Binding>) -> bool {
    match kernel.definition(memory) {
        Some(InstData::Buffer { binding, .. }) => bindings.contains(binding),
        _ => true,
    }
}

/// The workgroup variable at an offset in workgroup memory.
fn variable_at(kernel: &Kernel, offset: u32) -> Option<Variable> {
    let mut start = 0;
    let mut shared = kernel.variables.iter().filter(|(_, data)| data.space == VariableSpace::Workgroup);
    shared.find_map(|(variable, data)| {
        let range = start..start + data.bytes;
        start += data.bytes.next_multiple_of(16);
        range.contains(&offset).then_some(variable)
    })
}
