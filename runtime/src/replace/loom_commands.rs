//! Command buffers under every interleaving: submissions of one command buffer by two contexts, and a rename meanwhile.
//! What is recorded is an object's number here; registration, loss and entry are the code that runs in production.

use std::sync::{Arc, Weak};

use loom::thread;

use super::loom_tests::{Held, enter, held, object, run};
use super::{Refusal, exchange};
use crate::gate::Gate;
use crate::ids::Access::Write;
use crate::ids::{ObjectId, ResourceId};
use crate::journal::Journal;
use crate::loom_tests::{Stored, TestContext, wait_until};
use crate::recordings::{LostRecording, NamesObjects, Recordings};
use crate::serial::{MustPrecede, Object};
use crate::sync::Mutex;
use crate::valid::Valid;

/// A command buffer with one resource, and the object with which it was recorded.
struct Commands {
    kept: Mutex<Option<ObjectId>>,
}

impl NamesObjects for Commands {
    fn forget(&self, object: ObjectId) -> Option<LostRecording> {
        let mut kept = self.kept.lock();
        kept.take_if(|known| *known == object).map(|known| Box::new(known) as LostRecording)
    }
}

/// A command buffer, its resource, and the table of objects.
struct Stage {
    commands: Arc<Commands>,
    resource: Arc<Held>,
    recordings: Recordings,
}

impl Stage {
    fn new() -> Arc<Self> {
        let commands = Arc::new(Commands { kept: Mutex::new(None) });
        Arc::new(Self { commands, resource: held(0..8), recordings: Recordings::default() })
    }

    /// `Contents::renew` and `Contents::keep`.
    fn renew(&self) -> Arc<Stored> {
        self.resource.lock().recorded = true;
        let object = object(&self.resource);
        let this: Weak<Commands> = Arc::downgrade(&self.commands);
        let mut kept = self.commands.kept.lock();
        if *kept != Some(object.id()) {
            self.recordings.remove(Arc::as_ptr(&self.commands).addr(), kept.iter().copied());
            self.recordings.add(&(this as Weak<dyn NamesObjects>), std::iter::once(object.id()));
            *kept = Some(object.id());
        }
        object
    }

    /// `Plan::submit` in the loop of `ContextInner::record`. Returns the object that the batch uses. `known` are the
    /// objects that the resource may have.
    fn submit(&self, context: &TestContext, known: &[Arc<Stored>]) -> Arc<Stored> {
        let mut checked = false;
        loop {
            let kept = *self.commands.kept.lock();
            let kept = known.iter().find(|object| !checked && Some(object.id()) == kept);
            let object = kept.cloned().unwrap_or_else(|| self.renew());
            let mut state = self.resource.lock();
            match enter(&mut state, &object, context, (&(0..8), Write), &Gate::default()) {
                Ok(_) => return object,
                Err(Refusal::Again) => checked = true,
                Err(Refusal::MustPrecede(MustPrecede::Done(point))) => {
                    drop(state);
                    wait_until(|| point.clock.retired() >= point.serial);
                }
                Err(_) => panic!("no other thread copies, and all writes conflict"),
            }
        }
    }
}

#[test]
fn two_contexts_submit_one_command_buffer() {
    loom::model(|| {
        let stage = Stage::new();
        let other = thread::spawn({
            let stage = Arc::clone(&stage);
            move || {
                let context = TestContext::new(1);
                run(&context, &stage.submit(&context, &[object(&stage.resource)]));
            }
        });
        let context = TestContext::new(2);
        run(&context, &stage.submit(&context, &[object(&stage.resource)]));
        other.join().unwrap();
        assert_eq!(*stage.commands.kept.lock(), Some(object(&stage.resource).id()));
    });
}

#[test]
fn a_submission_and_a_rename_leave_no_lost_object_in_the_command_buffer() {
    for recorded_before in [false, true] {
        loom::model(move || {
            let (stage, new) = (Stage::new(), Stored::new());
            let old = object(&stage.resource);
            if recorded_before {
                stage.renew();
            }
            // `replace::swap`
            let other = thread::spawn({
                let (stage, new) = (Arc::clone(&stage), Arc::clone(&new));
                move || {
                    let mut state = stage.resource.lock();
                    let lost = exchange((ResourceId(1), &mut state), (new, Valid::new()), &Journal::new(), &mut 0);
                    let recorded = state.recorded;
                    let lost = lost.filter(|_| recorded).map(|lost| stage.recordings.lose(lost.id()));
                    drop(state);
                    drop(lost);
                }
            });
            let context = TestContext::new(1);
            let used = stage.submit(&context, &[Arc::clone(&old), Arc::clone(&new)]);
            other.join().unwrap();
            let kept = *stage.commands.kept.lock();
            assert!(kept.is_none() || kept == Some(new.id()), "the command buffer keeps the object that was lost");
            // A batch that uses the old object was first: the rename found it in use.
            assert!(Arc::ptr_eq(&used, &new) || old.usage.is_busy(Write));
            // The next submission uses the new one.
            assert!(Arc::ptr_eq(&stage.submit(&context, &[old, Arc::clone(&new)]), &new));
        });
    }
}
