//! Repairs of a barrier that not all invocations of the workgroup reach: it moves past the branch that it is in, or
//! the code around it becomes two branches, or is conditional in place of a return.

use spelter_shaders::check::NonUniformBarrier;

use super::barrier_words::{around, barrier_at};
use super::change::Changed;
use super::place::Text;
use super::trial::Trials;
use crate::check::dispatch::DispatchRun;
use crate::check::finding::Repair;

impl DispatchRun<'_> {
    /// Where a barrier would be executed by all invocations, if others had ended when some waited at it. Nothing may
    /// race then that does not without the change: the barrier must still be between what it ordered.
    pub(in crate::check) fn moved_barrier(&self, found: &NonUniformBarrier) -> Option<Repair> {
        if found.other.1.is_some() {
            return None;
        }
        let sites = &self.code.needed.kernel.sites;
        let site = &sites[found.site];
        let (kernel, language) = (self.code.kernel(), self.code.names.names.language());
        let text = Text::new(kernel);
        // If the barrier has several copies, no one place in the text replaces all of them.
        let [at] = text.of_site(site)[..] else { return None };
        let data = text.data(at);
        let inst = text.inst(at)?;
        let name = barrier_at(kernel, inst);
        let workgroup = self.access(found.site, found.waits).invocation.map(|invocation| invocation.workgroup);
        let mut trials = Trials::of_barrier(self, site, workgroup)?;
        for (after, branch) in text.after_branches(at) {
            let mut changed = Changed::new(kernel, language);
            changed.insert(after, [data.clone()]);
            changed.remove(at);
            if trials.adds_nothing(&changed.finish()) {
                let branch = branch.map_or(String::new(), |line| format!(" at {line}"));
                let text = format!(
                    "{name} after the branch{branch} in place of within it, where all invocations of the workgroup \
                     execute it"
                );
                return Some(Repair { text, line: kernel.line_of(inst).cloned() });
            }
        }
        let others = text.around(at)?;
        let mut changed = Changed::new(kernel, language);
        changed.insert_around(at, &others.edges, [data.clone()]);
        changed.remove(at);
        trials.adds_nothing(&changed.finish()).then(|| {
            let text = format!("{name} where all invocations of the workgroup execute it{}", around(&others));
            Repair { text, line: kernel.line_of(inst).cloned() }
        })
    }
}
