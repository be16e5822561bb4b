//! What the call that runs on this thread is about, for the messages that may come of it: whose instance it belongs to, which
//! objects it names, and what was wrong with it and yet no reason to refuse it.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk::ObjectType;

use crate::error::Error;

/// The instance that messengers and objects belong to; 0 is nobody's.
pub(crate) type Owner = u64;

/// Objects of a call that are remembered; those after them are not told of.
const MAX_OBJECTS: usize = 8;

/// Faults of a call that are told.
const MAX_FAULTS: usize = 4;

thread_local! {
    static FAULTS: RefCell<Vec<Error>> = const { RefCell::new(Vec::new()) };
    static OWNER: Cell<Owner> = const { Cell::new(0) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static OBJECTS: [Cell<(ObjectType, u64)>; MAX_OBJECTS] = const { [const { Cell::new((ObjectType::UNKNOWN, 0)) }; MAX_OBJECTS] };
}

/// A number for a new instance.
pub(crate) fn new_owner() -> Owner {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The call breaks a rule, and goes on: this is told when it ends.
pub(crate) fn fault(error: Error) {
    // A thread that ends may have no place for it any more.
    let _ = FAULTS.try_with(|faults| {
        let mut faults = faults.borrow_mut();
        if faults.len() < MAX_FAULTS {
            faults.push(error);
        }
    });
}

/// The rules that the call broke and that nobody was told of yet.
pub(crate) fn take_faults() -> Vec<Error> {
    FAULTS.try_with(|faults| std::mem::take(&mut *faults.borrow_mut())).unwrap_or_default()
}

/// A call. A callback may call Vulkan while its own call runs: what was before comes back.
pub(crate) struct Call {
    before: (Owner, usize),
}

impl Call {
    pub(crate) fn begin() -> Self {
        Self { before: (OWNER.replace(0), COUNT.replace(0)) }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        OWNER.set(self.before.0);
        COUNT.set(self.before.1);
    }
}

/// The call is one of that instance's.
pub(crate) fn belong(owner: Owner) {
    if owner != 0 {
        OWNER.set(owner);
    }
}

/// The call names an object, live or not.
pub(crate) fn note(ty: ObjectType, handle: u64) {
    let count = COUNT.get();
    if count < MAX_OBJECTS && handle != 0 {
        OBJECTS.with(|objects| {
            if !objects[..count].iter().any(|seen| seen.get() == (ty, handle)) {
                objects[count].set((ty, handle));
                COUNT.set(count + 1);
            }
        });
    }
}

/// Whose call it is.
pub(crate) fn owner() -> Owner {
    OWNER.get()
}

/// The objects that the call named so far.
pub(crate) fn objects() -> Vec<(ObjectType, u64)> {
    OBJECTS.with(|objects| objects[..COUNT.get()].iter().map(Cell::get).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_nest() {
        let outer = Call::begin();
        belong(3);
        note(ObjectType::BUFFER, 7);
        note(ObjectType::BUFFER, 7);
        {
            let _inner = Call::begin();
            assert_eq!((owner(), objects()), (0, vec![]));
            belong(4);
        }
        belong(0);
        assert_eq!((owner(), objects().len()), (3, 1));
        (0..20).for_each(|handle| note(ObjectType::IMAGE, handle));
        assert_eq!(objects().len(), MAX_OBJECTS);
        drop(outer);
        assert_eq!(owner(), 0);
    }
}
