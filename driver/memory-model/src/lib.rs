//! An executable Vulkan memory model: which outcomes a program may have, which of its accesses race, and why.
//!
//! A GPU has many caches, and the hardware does not keep all of them coherent. The memory model defines when a value
//! written by one thread must be visible to another. This page is an introduction; each claim is a test. The normative
//! text is the appendix "Memory Model" of the Vulkan specification, and every file in `relations` begins with the
//! sentences of it that the file implements.
//!
//! # Agents, references and scopes
//!
//! An **agent** executes operations: a shader invocation, a thread of the host, a command of the API. An agent's own
//! operations are in **program order**. A **reference** is the object through which an agent accesses memory: a
//! descriptor, a variable, a host pointer. Two descriptors of the same buffer are two references, and writes through
//! one need not be visible through the other, even in one invocation. A **scope** names a set of invocations: subgroup,
//! workgroup, queue family, device.
//!
//! ```
//! use spelter_memory_model::{answer, format::Format};
//!
//! let options = answer::Options::default();
//! let read = |text: &str| Format::Khronos.read("one", text).unwrap().program;
//! // One invocation, one reference: the load sees the store, whatever their other attributes.
//! let one = read("st.sc0 x = 1\nld.sc0 x");
//! assert!(answer::find_race(&one, None, &options).unwrap().is_none());
//! let outcomes = answer::summarize(&one, &options, 10).unwrap().outcomes;
//! assert_eq!(outcomes.into_keys().collect::<Vec<_>>(), ["x=1"]);
//! // The same location through two references: a race of one invocation with itself.
//! let two = read("st.nonpriv.sc0 x = 1\nld.nonpriv.sc0 y\nSLOC x y");
//! assert!(answer::find_race(&two, None, &options).unwrap().is_some());
//! let outcomes = answer::summarize(&two, &options, 10).unwrap().outcomes;
//! assert_eq!(outcomes.into_keys().collect::<Vec<_>>(), ["y=0", "y=1"]);
//! ```
//!
//! # Message passing: the most important test
//!
//! One invocation writes `x`, then sets the flag `y`. Another sees the flag, then reads `x`. Does it read 1? Three
//! conditions are necessary, and each is easily forgotten:
//!
//! 1. **Order.** The flag is atomic; setting it *releases*, seeing it *acquires*. The release *synchronizes-with* the
//!    acquire if they are in each other's scopes, and orders memory whose **storage class** both have in their
//!    semantics.
//! 2. **Availability and visibility.** The write of `x` stays in the writer's cache until an *availability* operation
//!    makes it available to a memory domain that both share, and the reader reads its own stale copy until a
//!    *visibility* operation makes the value visible. `MakeAvailable` and `MakeVisible` request them, on the barrier or
//!    on the access.
//! 3. **Non-private.** An access without `NonPrivatePointer` is private to its invocation, and no barrier in a shader
//!    orders it.
//!
//! ```
//! use spelter_memory_model::{answer, format::Format};
//!
//! let races = |text: &str| {
//!     let test = Format::Khronos.read("mp", text).unwrap();
//!     answer::find_race(&test.program, None, &answer::Options::default()).unwrap().is_some()
//! };
//! let right = "
//! st.nonpriv.sc0 x = 1
//! st.atom.rel.semav.scopewg.sc0.semsc0 y = 1
//! NEWSG
//! NEWTHREAD
//! ld.atom.acq.semvis.scopewg.sc0.semsc0 y = 1
//! ld.nonpriv.sc0 x";
//! assert!(!races(right));
//! assert!(races(&right.replace("rel.semav.", "rel.")), "nothing makes x available");
//! assert!(races(&right.replace("acq.semvis.", "acq.")), "nothing makes x visible");
//! assert!(races(&right.replace("nonpriv.", "")), "x is private");
//! assert!(races(&right.replace("semsc0", "semsc1")), "the semantics have another storage class");
//! assert!(races(&right.replace("NEWSG", "NEWWG\nNEWSG")), "the scope is too small for two workgroups");
//! ```
//!
//! # Coherence: atomics on one location agree
//!
//! Atomics on one location, through one reference, in each other's scopes are **mutually ordered**: their writes have a
//! *scoped modification order* on which all of them agree. Two readers never see two writes in different orders. If the
//! scopes are too small, the accesses race like plain ones.
//!
//! ```
//! # use spelter_memory_model::{answer, format::Format};
//! # let find = |text: &str| {
//! #     let test = Format::Khronos.read("corr", text).unwrap();
//! #     let options = answer::Options::default();
//! #     (answer::answer(&test.program, &test.questions[0], &options).unwrap().holds,
//! #         answer::find_race(&test.program, None, &options).unwrap().is_some())
//! # };
//! let coherent = "
//! st.atom.scopedev.sc0 x = 1
//! NEWWG
//! NEWSG
//! NEWTHREAD
//! st.atom.scopedev.sc0 x = 2
//! NEWWG
//! NEWSG
//! NEWTHREAD
//! ld.atom.scopedev.sc0 x = 1
//! ld.atom.scopedev.sc0 x = 2
//! NEWWG
//! NEWSG
//! NEWTHREAD
//! ld.atom.scopedev.sc0 x = 2
//! ld.atom.scopedev.sc0 x = 1
//! NOSOLUTION consistent[X]";
//! // (the outcome is possible, some execution races)
//! assert_eq!(find(coherent), (false, false));
//! assert_eq!(find(&coherent.replace("scopedev", "scopewg")), (true, true));
//! ```
//!
//! # Store buffering: what acquire and release do not give
//!
//! Each of two invocations sets its own flag and then reads the other's. Both may read 0: Vulkan has no sequentially
//! consistent atomics, so no fence forbids this, and it is not a race either.
//!
//! ```
//! # use spelter_memory_model::{answer, format::Format};
//! let text = "
//! st.atom.rel.scopedev.sc0.semsc0 x = 1
//! ld.atom.acq.scopedev.sc0.semsc0 y = 0
//! NEWSG
//! NEWTHREAD
//! st.atom.rel.scopedev.sc0.semsc0 y = 1
//! ld.atom.acq.scopedev.sc0.semsc0 x = 0
//! SATISFIABLE consistent[X] && #dr=0";
//! let test = Format::Khronos.read("sb", text).unwrap();
//! let options = answer::Options::default();
//! assert!(answer::answer(&test.program, &test.questions[0], &options).unwrap().holds);
//! assert!(answer::find_race(&test.program, None, &options).unwrap().is_none());
//! // Nor do fences between the two.
//! let fence = "membar.acq.rel.semav.semvis.scopedev.semsc0\nld.atom";
//! let fenced = Format::Khronos.read("sb", &text.replace("ld.atom", fence)).unwrap();
//! assert!(answer::answer(&fenced.program, &fenced.questions[0], &options).unwrap().holds);
//! ```
//!
//! # Barriers: the acquire belongs after the wait
//!
//! A control barrier makes invocations wait for each other. It orders memory only if it also releases and acquires,
//! with the storage class of the memory; memory barriers before and after it may do that instead. The idiom
//! `memoryBarrierBuffer(); barrier();` has the acquire before the wait:
//!
//! ```
//! # use spelter_memory_model::{answer, format::Format};
//! # let races = |text: &str| {
//! #     let test = Format::Khronos.read("barrier", text).unwrap();
//! #     answer::find_race(&test.program, None, &answer::Options::default()).unwrap().is_some()
//! # };
//! let program = |before: &str, after: &str| format!("
//! st.nonpriv.sc0 x = 1
//! {before}
//! cbar.scopewg 0
//! {after}
//! NEWSG
//! NEWTHREAD
//! {before}
//! cbar.scopewg 0
//! {after}
//! ld.nonpriv.sc0 x");
//! let ordered = |class: &str| {
//!     let barrier = format!("cbar.acq.rel.semav.semvis.scopewg.{class} 0");
//!     program("", "").replace("cbar.scopewg 0", &barrier)
//! };
//! assert!(races(&program("", "")) && !races(&ordered("semsc0")) && races(&ordered("semsc1")));
//! let both = "membar.acq.rel.semav.semvis.scopedev.semsc0";
//! assert!(races(&program(both, "")));
//! assert!(!races(&program(both, both)));
//! ```
//!
//! # Transitivity: happens-before is several orders
//!
//! Synchronization is transitive across threads, but only within one set of storage classes: *happens-before* is the
//! union of program order and of *inter-thread-happens-before* for each set of classes, without transitive closure. An
//! order established by semantics of one class does not extend through semantics of another:
//!
//! ```
//! use spelter_memory_model::{answer, format::Format};
//!
//! let races = |text: &str, model: &str| {
//!     let test = Format::Khronos.read("three", text).unwrap();
//!     let options = answer::Options { model: model.parse().unwrap(), ..answer::Options::default() };
//!     answer::find_race(&test.program, None, &options).unwrap().is_some()
//! };
//! let passed_on = "
//! st.av.scopewg.sc0 x = 1
//! st.atom.rel.scopewg.sc0.semsc0 f = 1
//! NEWSG
//! NEWTHREAD
//! ld.atom.acq.scopewg.sc0.semsc0 f = 1
//! st.atom.rel.scopewg.sc0.semsc0 g = 1
//! NEWSG
//! NEWTHREAD
//! ld.atom.acq.scopewg.sc0.semsc0 g = 1
//! ld.vis.scopewg.sc0 x";
//! assert!(!races(passed_on, "spec"));
//! let other_class = passed_on.lines().map(|line| match line.split_once(" g = ") {
//!     Some(_) => line.replace(".sc0.semsc0", ".sc1.semsc1"),
//!     None => line.to_owned(),
//! });
//! let other_class = other_class.collect::<Vec<_>>().join("\n");
//! assert!(races(&other_class, "spec"));
//! // The specification's glossary says that happens-before is transitive; the appendix does not (A4).
//! assert!(!races(&other_class, "spec,happens-before=transitive"));
//! // Program order and an edge of another class make no happens-before either, for two invocations.
//! let flag = "
//! st.av.scopewg.sc0 x = 1
//! st.atom.rel.scopewg.sc1.semsc1 f = 1
//! NEWSG
//! NEWTHREAD
//! ld.atom.acq.scopewg.sc1.semsc1 f = 1
//! ld.vis.scopewg.sc0 x";
//! assert!(races(flag, "spec") && !races(flag, "spec,happens-before=transitive"));
//! ```
//!
//! Availability is transitive through **chains**: if a write was made available to a workgroup, another invocation of
//! that workgroup can make it available to the device, if the device has the feature.
//!
//! ```
//! # use spelter_memory_model::{answer, format::Format};
//! # let races = |text: &str, model: &str| {
//! #     let test = Format::Khronos.read("chain", text).unwrap();
//! #     let options = answer::Options { model: model.parse().unwrap(), ..answer::Options::default() };
//! #     answer::find_race(&test.program, None, &options).unwrap().is_some()
//! # };
//! let chain = "
//! st.nonpriv.sc0 x = 1
//! st.atom.rel.semav.scopewg.sc0.semsc0 f = 1
//! NEWSG
//! NEWTHREAD
//! ld.atom.acq.scopewg.sc0.semsc0 f = 1
//! st.atom.rel.semav.scopedev.sc0.semsc0 g = 1
//! NEWWG
//! NEWSG
//! NEWTHREAD
//! ld.atom.acq.semvis.scopedev.sc0.semsc0 g = 1
//! ld.nonpriv.sc0 x";
//! assert!(!races(chain, "spec"));
//! assert!(races(chain, "spec,chains=single"), "without the feature a chain has one element");
//! assert!(races(&chain.replace("semav.scopedev", "scopedev"), "spec"), "nothing makes it available to the device");
//! let apart = chain.replacen("NEWSG", "NEWWG\nNEWSG", 1);
//! assert!(races(&apart, "spec"), "the invocation in between must be in the workgroup");
//! ```
//!
//! # Using it
//!
//! * [`format`](mod@format) reads litmus tests; [`program::unroll`] enumerates a program's paths.
//! * [`answer`](mod@answer) decides questions, finds races and lists outcomes, by [`search::search`], which visits
//!   every consistent execution.
//! * The text formats have no host operations: tests with host agents are built as [`program::Program`]s.
//! * To check a recorded run, build an [`event::Trace`] and a [`relations::Choice`] with the sources of reads. No
//!   search is needed: [`slice::Slice`] decides up to 128 events, [`explain::of_trace`] and [`repair::of_trace`] tell
//!   why two accesses race and what prevents it. For thousands of events, build a [`relations::Frame`] with
//!   [`row::SparseRow`], and use [`relations::Frame::order`], [`axioms::violation`] and [`relations::races`].
//! * [`Model`] selects a reading where the sources disagree.

pub mod answer;
pub mod axioms;
pub mod compact;
pub mod describe;
pub mod dot;
pub mod event;
pub mod explain;
pub mod format;
pub mod generate;
mod model;
pub mod names;
pub mod program;
pub mod relation;
pub mod relations;
pub mod repair;
pub mod row;
pub mod search;
mod site;
pub mod slice;
pub mod wellformed;

pub use model::{Chains, Coherence, Coverage, FromReads, HappensBefore, Inclusion, Model, Overwrite, ScopedOrder};
