//! The commands that a command buffer has now. Threads submit them while one records others in their place, and while
//! submissions record them again because a descriptor set was written. Also the search for cycles of execution.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use crate::sync::{AtomicBool, Mutex, Ordering};

/// The present commands.
#[derive(Debug)]
pub(super) struct Current<T> {
    /// A leaf lock.
    contents: Mutex<Arc<T>>,
    /// Whether a call records others.
    recording: AtomicBool,
}

impl<T> Current<T> {
    pub(super) fn new(contents: Arc<T>) -> Self {
        Self { contents: Mutex::new(contents), recording: AtomicBool::new(false) }
    }

    pub(super) fn get(&self) -> Arc<T> {
        Arc::clone(&self.contents.lock())
    }

    /// Puts others in their place. Returns the old ones.
    #[must_use = "dropped when no lock is held"]
    pub(super) fn replace(&self, new: Arc<T>) -> Arc<T> {
        std::mem::replace(&mut *self.contents.lock(), new)
    }

    /// Puts `new` in the place of `old`, from which it was made, unless others are there by now. Returns whether it
    /// did; the caller drops `old` when no lock is held.
    pub(super) fn renew(&self, old: &Arc<T>, new: &Arc<T>) -> bool {
        let mut current = self.contents.lock();
        let is_same = Arc::ptr_eq(&current, old);
        if is_same {
            *current = Arc::clone(new);
        }
        is_same
    }

    /// The right to record others, until it is dropped; `None` if another call has it.
    pub(super) fn exclusive(&self) -> Option<Exclusive<'_>> {
        // Acquire: pairs with the Release in `drop`; what the call before recorded is visible.
        let free = !self.recording.swap(true, Ordering::Acquire);
        free.then_some(Exclusive(&self.recording))
    }
}

/// The right to record a command buffer again, until this is dropped.
pub(super) struct Exclusive<'a>(&'a AtomicBool);

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Current::exclusive`.
        self.0.store(false, Ordering::Release);
    }
}

/// Whether `from` is one for which `is_target` is true, or executes one, directly or through others.
pub(super) fn reaches<N, K: Eq + Hash>(
    from: N,
    is_target: impl Fn(&N) -> bool,
    key: impl Fn(&N) -> K,
    nested: impl Fn(&N) -> Vec<N>,
) -> bool {
    let (mut waiting, mut seen) = (vec![from], HashSet::new());
    while let Some(one) = waiting.pop() {
        if is_target(&one) {
            return true;
        }
        if seen.insert(key(&one)) {
            waiting.extend(nested(&one));
        }
    }
    false
}
