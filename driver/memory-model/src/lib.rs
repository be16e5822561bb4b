//! The Vulkan memory model, executable: which outcomes a program may have, which of its accesses race, and why.
//!
//! A GPU has many caches, and nobody keeps them coherent for you. The memory model is the contract that says when a
//! value written by one thread must be seen by another. This page is an introduction to it; each claim is a test that
//! runs. The law is the appendix "Memory Model" of the Vulkan specification, and every file below `relations` opens
//! with the sentence of it that the file implements.
//!
//! # Who does what
//!
//! An **agent** executes operations: a shader invocation, a thread of the host, a command of the API. An agent's own
//! operations are in **program order**. A **reference** is what an agent reaches memory through: a descriptor, a
//! variable, a host pointer. Two descriptors of one buffer are two references, and what one wrote the other need not see,
//! even in one invocation. A **scope** names a set of invocations: subgroup, workgroup, queue family, device.
//!
//! ```
//! use spelter_memory_model::{answer, format::Format};
//!
//! let options = answer::Options::default();
//! let read = |text: &str| Format::Khronos.read("one", text).unwrap().program;
//! // One invocation, one reference: the load sees the store, whatever else is said about them.
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
//! # Message passing: the test that everybody should know
//!
//! One invocation writes `x`, then raises the flag `y`. Another sees the flag, then reads `x`. Does it read 1?
//! Three things must come together, and each is easily forgotten:
//!
//! 1. **Order.** The flag is atomic; raising it *releases*, seeing it *acquires*. The release *synchronizes-with* the
//!    acquire if they are in each other's scopes, and orders memory whose **storage class** both name in their semantics.
//! 2. **Availability and visibility.** The write of `x` sits in the writer's cache until an *availability* operation
//!    moves it to a memory domain that both share, and the reader reads its own stale copy until a *visibility*
//!    operation refreshes it. `MakeAvailable` and `MakeVisible` say so, on the barrier or on the access.
//! 3. **Non-private.** An access that does not say `NonPrivatePointer` is not meant for others, and no barrier in a
//!    shader orders it.
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
//! assert!(races(&right.replace("semsc0", "semsc1")), "the semantics are those of other memory");
//! assert!(races(&right.replace("NEWSG", "NEWWG\nNEWSG")), "the scope is too small for two workgroups");
//! ```
//!
//! # Coherence: atomics on one location agree
//!
//! Atomics on one location, through one reference, in each other's scopes are **mutually ordered**: their writes have
//! a *scoped modification order* on which all of them agree. Two readers never see two writes in different orders,
//! unless the scopes are too small; then the accesses are like plain ones, and race.
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
//! Each of two invocations raises its own flag and then looks at the other's. Both may see nothing: Vulkan has no
//! sequentially consistent atomics, so no fence forbids this, and no race is reported for it either.
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
//! A control barrier makes invocations wait for each other. Only if it also releases and acquires, with the class of
//! the memory, does it order memory; barriers before and after it may do that in its place. The idiom `memoryBarrierBuffer(); barrier();` puts the acquire before the wait:
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
//! Synchronization composes through threads, but only within one set of storage classes: *happens-before* is the union of
//! program order and of *inter-thread-happens-before* for each set of classes, and not its closure. What an invocation
//! learned by semantics of one class, it does not pass on by semantics of another:
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
//! Availability composes through **chains**: a write that was made available to a workgroup is carried to the device by
//! another invocation of that workgroup, if the device has the feature.
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
//! assert!(races(&chain.replace("semav.scopedev", "scopedev"), "spec"), "nobody carries it to the device");
//! let apart = chain.replacen("NEWSG", "NEWWG\nNEWSG", 1);
//! assert!(races(&apart, "spec"), "the carrier must be of the workgroup");
//! ```
//!
//! # Using it
//!
//! * [`format`](mod@format) reads litmus tests; [`program::unroll`] takes a program's paths apart.
//! * [`answer`](mod@answer) decides questions, finds races, lists outcomes; [`search::search`] is beneath it, and calls back with
//!   every consistent execution.
//! * No text says what the host does: tests with host agents are built as [`program::Program`]s.
//! * For a run that is known already, build an [`event::Trace`], a [`relations::Frame`] over it (with
//!   [`row::SparseRow`] there may be thousands of events), a [`relations::Choice`] of what was read, and ask
//!   [`relations::Frame::order`], [`axioms::violation`] and [`relations::races`]. No search is needed.
//! * [`Model`] says whose reading is followed where the sources disagree.

pub mod answer;
pub mod axioms;
mod cut;
pub mod describe;
pub mod dot;
pub mod event;
pub mod explain;
pub mod format;
pub mod generate;
mod model;
pub mod program;
pub mod relation;
pub mod relations;
pub mod repair;
pub mod row;
pub mod search;
pub mod wellformed;

pub use model::{Chains, Coherence, Coverage, FromReads, HappensBefore, Inclusion, Model, Overwrite, ScopedOrder};
