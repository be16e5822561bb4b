//! A lock for one writer or several readers, without poisoning.

use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::attempt;

/// A lock for one writer or several readers.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    /// Waits until no thread writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`RwLock::read`], unless it would wait.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        attempt::taken(self.0.try_read())
    }

    /// As [`RwLock::read`], for about this time at most.
    pub fn try_read_for(&self, limit: Duration) -> Option<RwLockReadGuard<'_, T>> {
        attempt::until(limit, || self.try_read())
    }

    /// As [`RwLock::write`], for about this time at most.
    pub fn try_write_for(&self, limit: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        attempt::until(limit, || self.try_write())
    }

    /// As [`RwLock::write`], unless it would wait.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        attempt::taken(self.0.try_write())
    }
}
