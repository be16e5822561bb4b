//! The call that runs on this thread, for its messages: the instance that it belongs to, the objects that it names, and
//! the valid usage that it breaks without failing.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk::ObjectType;

use crate::c::callback::Message;
use crate::error::Error;

/// The number of an instance, as the owner of messengers and objects; 0 if it is unknown.
pub(crate) type Owner = u64;

/// Adds to a message what the live object of a handle knows (`Object::describe`).
pub(crate) type Describe = fn(handle: u64, message: &mut Message);

/// An object that a call names.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) ty: ObjectType,
    pub(crate) handle: u64,
    pub(crate) describe: Describe,
}

/// Objects of a call that messages name; later ones are left out.
const MAX_OBJECTS: usize = 8;

/// Violations of a call that are reported.
const MAX_VIOLATIONS: usize = 4;

const NO_OBJECT: Named = Named { ty: ObjectType::UNKNOWN, handle: 0, describe: |_, _| () };

thread_local! {
    static VIOLATIONS: RefCell<Vec<Error>> = const { RefCell::new(Vec::new()) };
    static OWNER: Cell<Owner> = const { Cell::new(0) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static OBJECTS: [Cell<Named>; MAX_OBJECTS] = const { [const { Cell::new(NO_OBJECT) }; MAX_OBJECTS] };
}

/// A number for a new instance.
pub(crate) fn new_owner() -> Owner {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Records broken valid usage for which the call does not fail; it is reported when the call ends.
pub(crate) fn add_violation(error: Error) {
    // The thread may be ending, its locals destroyed.
    let _ = VIOLATIONS.try_with(|violations| {
        let mut violations = violations.borrow_mut();
        if violations.len() < MAX_VIOLATIONS {
            violations.push(error);
        }
    });
}

/// The violations that were not reported yet.
pub(crate) fn take_violations() -> Vec<Error> {
    VIOLATIONS.try_with(|violations| std::mem::take(&mut *violations.borrow_mut())).unwrap_or_default()
}

/// A call in progress. A callback may call Vulkan while its own call runs, so dropping this restores the outer call.
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

/// Sets the instance that the call belongs to.
pub(crate) fn set_owner(owner: Owner) {
    if owner != 0 {
        OWNER.set(owner);
    }
}

/// Adds an object, live or not, that the call names.
pub(crate) fn add_object(ty: ObjectType, handle: u64, describe: Describe) {
    let count = COUNT.get();
    if count < MAX_OBJECTS && handle != 0 {
        OBJECTS.with(|objects| {
            let is_same = |seen: Named| (seen.ty, seen.handle) == (ty, handle);
            if !objects[..count].iter().map(Cell::get).any(is_same) {
                objects[count].set(Named { ty, handle, describe });
                COUNT.set(count + 1);
            }
        });
    }
}

/// The instance that the call belongs to.
pub(crate) fn owner() -> Owner {
    OWNER.get()
}

/// The objects that the call has named so far.
pub(crate) fn objects() -> Vec<Named> {
    OBJECTS.with(|objects| objects[..COUNT.get()].iter().map(Cell::get).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_nest() {
        let outer = Call::begin();
        set_owner(3);
        add_object(ObjectType::BUFFER, 7, |_, _| ());
        add_object(ObjectType::BUFFER, 7, |_, _| ());
        {
            let _inner = Call::begin();
            assert_eq!((owner(), objects().len()), (0, 0));
            set_owner(4);
        }
        set_owner(0);
        assert_eq!((owner(), objects().len()), (3, 1));
        (0..20).for_each(|handle| add_object(ObjectType::IMAGE, handle, |_, _| ()));
        assert_eq!(objects().len(), MAX_OBJECTS);
        drop(outer);
        assert_eq!(owner(), 0);
    }
}
