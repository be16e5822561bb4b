//! Values that are made when they are first needed, without that a thread waits for another: one that two threads make
//! at once counts once. A process that is forked while a thread makes one makes its own, where a `OnceLock` would wait
//! for a thread that the process does not have.
//!
//! # Safety
//!
//! A [`Published`] holds null or a pointer from `Box::leak`. Boxes whose pointer it ever held are never freed, so
//! references to them are valid for ever. Values are shared with all threads, so their types are `Send` and `Sync`.

use std::sync::atomic::{AtomicPtr, Ordering};

/// A place for a value that is replaced as a whole and never freed.
#[derive(Debug)]
pub(crate) struct Published<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Published<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire: pairs with the Release of the exchange in `replace`, so that the value is seen.
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: it is null or from a leaked box.
        unsafe { value.as_ref() }
    }

    /// Replaces the value `before`, unless another thread has: then the new one is dropped and that thread's returned.
    pub(crate) fn replace(&self, before: Option<&'static T>, new: Box<T>) -> Result<&'static T, &'static T> {
        let before = before.map_or(std::ptr::null_mut(), |before| std::ptr::from_ref(before).cast_mut());
        let new = Box::into_raw(new);
        // Release: pairs with the loads; Acquire, for the other thread's value: pairs with its Release.
        match self.0.compare_exchange(before, new, Ordering::Release, Ordering::Acquire) {
            // SAFETY: the box is leaked: `self` holds its pointer now.
            Ok(_) => Ok(unsafe { &*new }),
            Err(other) => {
                // SAFETY: it is the box from above, which nothing else has.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: not null: a place is null only before its first value, and then `before` is null too.
                Err(unsafe { &*other })
            }
        }
    }
}

/// A value that is computed when it is first needed, perhaps by several threads at once, of which one's counts.
#[derive(Debug)]
pub struct Computed<T>(Published<T>);

impl<T: Send + Sync + 'static> Default for Computed<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync + 'static> Computed<T> {
    /// Not computed yet.
    pub const fn new() -> Self {
        Self(Published::new())
    }

    /// The value, if it is computed.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        self.0.get()
    }

    /// The value. While it is computed, other threads compute it too.
    #[inline]
    pub fn get_or_compute(&self, compute: impl FnOnce() -> T) -> &'static T {
        self.get().unwrap_or_else(|| self.set(compute()).unwrap_or_else(|other| other))
    }

    /// Sets the value, unless there is one: then that is the error.
    #[cold]
    pub fn set(&self, value: T) -> Result<&'static T, &'static T> {
        self.0.replace(None, Box::new(value))
    }
}
