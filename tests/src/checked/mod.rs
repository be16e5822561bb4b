//! Random programs for checked mode: each is executed under a seeded schedule, which calls an observer as an engine
//! does, and its whole execution is a trace of the memory model, whose races are therefore known.
//!
//! ```
//! use spelter_shaders::check::observer::{Invocation, Observer, Target};
//! use spelter_shaders::ir::{Scope, Site};
//! use spelter_tests::checked::{Program, Schedule};
//!
//! #[derive(Default)]
//! struct Count(usize);
//!
//! impl Observer for Count {
//!     fn access(&mut self, _: Invocation, _: Site, _: Target) {
//!         self.0 += 1;
//!     }
//!     fn atomic(&mut self, _: Invocation, _: Site, _: Target, _: bool) {
//!         self.0 += 1;
//!     }
//!     fn fence(&mut self, _: Invocation, _: Site) {
//!         self.0 += 1;
//!     }
//!     fn arrive(&mut self, _: Invocation, _: Site) {
//!         self.0 += 1;
//!     }
//!     fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}
//!     fn end(&mut self, _: Invocation) {}
//! }
//!
//! let program = Program::random(7);
//! let mut count = Count::default();
//! let execution = program.run(Schedule::new(1), &mut count);
//! assert_eq!(execution.trace.len(), count.0, "event n is the n-th call that is not a release or an end");
//! for (first, second) in execution.races() {
//!     assert!(program.sites.is_valid(execution.sites[first]) && first < second);
//! }
//! ```

mod compare;
mod detection;
mod execution;
mod generate;
mod kernels;
mod operations;
mod run;
pub mod sync;

use cranelift_entity::PrimaryMap;
use spelter_memory_model::event::Operation;
use spelter_shaders::check::observer::Target;
use spelter_shaders::ir::{Site, SiteData};

pub use compare::{SliceCounts, compare};
pub use detection::Detection;
pub use execution::Execution;
pub use kernels::{Counts, Defect, Engines};
pub use run::Schedule;

/// The size of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of workgroups.
    pub workgroups: u64,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Invocations of a subgroup, the last one excepted; `SubgroupId` is `LocalInvocationIndex` divided by it.
    pub subgroup_size: u32,
}

/// A program: what each invocation does, with no values. Whether a compare-exchange succeeds is part of it.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its launch.
    pub shape: Shape,
    /// Its instructions, as an instrumented kernel has them.
    pub sites: PrimaryMap<Site, SiteData>,
    /// What each of them is in the memory model.
    effects: PrimaryMap<Site, Effect>,
    /// The steps of each invocation, by workgroup, then by local index.
    steps: Vec<Vec<Step>>,
}

/// What an instruction is in the memory model, apart from the location.
#[derive(Clone, Debug)]
struct Effect {
    operation: Operation,
    /// A compare-exchange that fails.
    unequal: Option<Operation>,
}

/// An instruction that an invocation executes.
#[derive(Clone, Copy, Debug)]
struct Step {
    site: Site,
    /// The memory; `None` for barriers.
    target: Option<Target>,
    /// Whether a compare-exchange finds the value that it compares with.
    equal: bool,
}
