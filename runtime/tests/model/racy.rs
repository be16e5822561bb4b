//! Steps that race by the rules of Vulkan: those that read undefined words, which come in no order with writes of
//! them, and dispatches that write words through one descriptor which another one shows. Checked mode reports them
//! rightly, so they are left out there.
//!
//! A step is tried on the reference: what it reads is noted, and what it changes is put back.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::model::kernels::Word;
use crate::model::reference::Reference;
use crate::model::resource::Handle;
use crate::model::step::Step;

/// What a step that is tried did.
#[derive(Default)]
struct Trial {
    races: bool,
    /// The words that were overwritten, in order.
    undo: Vec<(Handle, u64, Vec<Word>)>,
}

thread_local! {
    static TRIAL: RefCell<Option<Trial>> = const { RefCell::new(None) };
}

/// A command is about to overwrite these words.
pub(crate) fn overwrites(handle: &Handle, range: &Range<u64>) {
    TRIAL.with_borrow_mut(|trial| {
        if let Some(trial) = trial {
            trial.undo.push((Rc::clone(handle), range.start, handle.get(range)));
        }
    });
}

/// A command, or the host, reads these words.
pub(crate) fn reads(words: &[Word]) {
    if words.iter().any(Option::is_none) {
        races();
    }
}

/// A command races.
pub(crate) fn races() {
    TRIAL.with_borrow_mut(|trial| trial.iter_mut().for_each(|trial| trial.races = true));
}

impl Reference {
    /// Whether a step races with others, or its commands do.
    pub(crate) fn races(&mut self, step: &Step) -> bool {
        let commands =
            matches!(step, Step::Dispatch { .. } | Step::Copy { .. } | Step::CopyImage { .. } | Step::Submit { .. });
        if !commands && !matches!(step, Step::Read { .. } | Step::ReadImage { .. }) {
            return false;
        }
        TRIAL.set(Some(Trial::default()));
        self.step(step);
        let trial = TRIAL.take().unwrap_or_default();
        trial.undo.into_iter().rev().for_each(|(handle, at, words)| handle.put(at, &words));
        trial.races
    }
}
