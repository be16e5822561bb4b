//! Two contexts that share a descriptor set, while it is written or its resource gets another object: the code of
//! `set/place.rs`. The steps are those of `SetInner::look`, `SetInner::resolve` and `ContextState::dispatch_sets`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::thread;

use super::super::exchange;
use super::{Held, enter, held, object};
use crate::gate::Gate;
use crate::ids::Access::Read;
use crate::ids::ResourceId;
use crate::journal::Journal;
use crate::loom_tests::{Stored, TestContext, TestSubmission};
use crate::replace::Refusal;
use crate::set::{FillTarget, Place};
use crate::sync::Mutex;
use crate::valid::Valid;

/// A driver set: the address of the object that its descriptor names.
struct DriverSet {
    /// Loom tests that no write of the driver set meets a batch that reads it.
    cell: UnsafeCell<()>,
    /// Not loom's: it orders nothing.
    names: AtomicUsize,
}

impl DriverSet {
    fn new(object: &Arc<Stored>) -> Arc<Self> {
        Arc::new(Self { cell: UnsafeCell::new(()), names: AtomicUsize::new(address(object)) })
    }

    fn write(&self, object: &Arc<Stored>) {
        self.cell.with_mut(|_| self.names.store(address(object), Ordering::Relaxed));
    }

    /// A batch uses it.
    fn run(&self, object: &Arc<Stored>) {
        self.cell.with(|_| assert_eq!(self.names.load(Ordering::Relaxed), address(object)));
    }
}

fn address(object: &Arc<Stored>) -> usize {
    Arc::as_ptr(object).addr()
}

/// A set with one descriptor.
struct Set {
    resource: Arc<Held>,
    object: Arc<Stored>,
    last_change: u64,
    seen: u64,
    place: Place<Arc<DriverSet>, TestSubmission>,
}

#[derive(Clone)]
struct Shared {
    set: Arc<Mutex<Set>>,
    journal: Arc<Journal>,
}

impl Shared {
    fn new(resource: &Arc<Held>) -> Self {
        resource.lock().bound = true;
        let (resource, object) = (Arc::clone(resource), object(resource));
        let set = Set { resource, object, last_change: 1, seen: 0, place: Place::default() };
        Self { set: Arc::new(Mutex::new(set)), journal: Arc::new(Journal::new()) }
    }

    /// `SetInner::look`.
    fn look(&self) -> (Arc<Held>, Arc<Stored>, u64) {
        let mut set = self.set.lock();
        if self.journal.count() != set.seen {
            (set.seen, _) = self.journal.since(set.seen);
            let current = object(&set.resource);
            if !Arc::ptr_eq(&current, &set.object) {
                (set.object, set.last_change) = (current, set.last_change + 1);
            }
        }
        (Arc::clone(&set.resource), Arc::clone(&set.object), set.last_change)
    }

    /// Records a dispatch in the context's first batch; then the batch runs.
    fn dispatch(&self, context: &TestContext) {
        let (driver_set, named) = loop {
            let (resource, named, last_change) = self.look();
            let mut set = self.set.lock();
            if set.last_change != last_change {
                continue;
            }
            let fill = |target: FillTarget<'_, Arc<DriverSet>>| match target {
                FillTarget::This(this, _) => {
                    this.write(&named);
                    Ok::<_, ()>(Arc::clone(this))
                }
                FillTarget::Another(..) | FillTarget::First => Ok(DriverSet::new(&named)),
            };
            let (driver_set, _) = set.place.take(last_change, (&context.clock, 1), fill).expect("it is filled");
            drop(set);
            let entered = enter(&mut resource.lock(), &named, context, (&(0..8), Read), &Gate::default());
            match entered {
                Ok(_) => break (driver_set, named),
                Err(Refusal::Again) => {}
                Err(_) => panic!("readers do not conflict"),
            }
        };
        context.submit(1);
        driver_set.run(&named);
        context.retire(1);
    }
}

#[test]
fn a_set_that_one_context_writes_is_not_written_under_the_batch_of_another() {
    loom::model(|| {
        let shared = Shared::new(&held(0..8));
        let other = thread::spawn({
            let shared = shared.clone();
            move || shared.dispatch(&TestContext::new(1))
        });
        // `SetInner::put`: another resource, and the next dispatch needs it.
        let resource = held(0..8);
        let mut set = shared.set.lock();
        (set.object, set.resource, set.last_change) = (object(&resource), resource, set.last_change + 1);
        drop(set);
        shared.dispatch(&TestContext::new(2));
        other.join().unwrap();
    });
}

#[test]
fn a_rename_is_found_by_each_context_that_dispatches_the_set() {
    // All interleavings take minutes.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let resource = held(0..8);
        let shared = Shared::new(&resource);
        let other = thread::spawn({
            let shared = shared.clone();
            move || shared.dispatch(&TestContext::new(1))
        });
        let new = Stored::new();
        let mut state = resource.lock();
        exchange((ResourceId(1), &mut state), (Arc::clone(&new), Valid::new()), &shared.journal, &mut 0);
        drop(state);
        shared.dispatch(&TestContext::new(2));
        assert!(Arc::ptr_eq(&shared.look().1, &new), "the set names the new object");
        other.join().unwrap();
    });
}
