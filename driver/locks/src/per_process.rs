//! State of a process that its forked processes do not share: each makes its own.
//!
//! The state of a process is in statics, under locks. A forked process has copies of them, perhaps locked by threads
//! that it does not have, and would wait for ever. So such a static is a [`PerProcess`], which has the state together
//! with the process that made it: a thread that finds another process's makes a new one. What a thread of the parent
//! was changing at the fork is lost to the child; what none was changing it may take over.

use crate::process::ProcessId;
use crate::published::Published;
use crate::{Mutex, RwLock};

/// A state that every process makes for itself, at the first use.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    state: Published<Owned<T>>,
    make: fn() -> T,
    inherit: Option<fn(&T) -> T>,
}

/// A state and the process that it is of.
#[derive(Debug)]
struct Owned<T> {
    process: ProcessId,
    state: T,
}

/// Held while a state is inherited: it is taken from the parent's, so only one thread may do that.
static INHERITING: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);

impl<T: Send + Sync + 'static> PerProcess<T> {
    /// A state that begins anew in each process. Two threads may make it at once, of which one's counts.
    pub const fn new(make: fn() -> T) -> Self {
        Self { state: Published::new(), make, inherit: None }
    }

    /// A state that begins in a forked process with what `inherit` makes of the parent's. That must wait for no lock of
    /// the parent's state, and must use no other state that inherits.
    pub const fn inheriting(make: fn() -> T, inherit: fn(&T) -> T) -> Self {
        Self { state: Published::new(), make, inherit: Some(inherit) }
    }

    /// The state of the calling process. It waits for no thread of a parent.
    #[inline]
    pub fn get(&self) -> &'static T {
        self.existing().unwrap_or_else(|| self.first())
    }

    /// The state of the calling process, if it has one.
    #[inline]
    pub fn existing(&self) -> Option<&'static T> {
        self.state.get().filter(|owned| owned.process.is_current()).map(|owned| &owned.state)
    }

    #[cold]
    fn first(&self) -> &'static T {
        let _alone = self.inherit.map(|_| INHERITING.get().lock());
        let before = self.state.get();
        // Another thread may have been first.
        if let Some(owned) = before.filter(|owned| owned.process.is_current()) {
            return &owned.state;
        }
        let state = match (before, self.inherit) {
            (Some(parents), Some(inherit)) => inherit(&parents.state),
            _ => (self.make)(),
        };
        let own = Box::new(Owned { process: ProcessId::current(), state });
        // What replaced the parent's state in the meantime is of this process: no other changes its memory.
        &self.state.replace(before, own).unwrap_or_else(|other| other).state
    }
}

impl<T: Default> Mutex<T> {
    /// What a forked process takes over from its parent's lock: the value, unless a thread of the parent was using it.
    pub fn inherit(&self) -> Self {
        Self::new(self.try_lock().map(|mut value| std::mem::take(&mut *value)).unwrap_or_default())
    }
}

impl<T: Default + Clone> RwLock<T> {
    /// What a forked process takes over from its parent's lock: the value, or a copy if threads of the parent were
    /// reading it; nothing if one was writing.
    pub fn inherit(&self) -> Self {
        let taken = self.try_write().map(|mut value| std::mem::take(&mut *value));
        Self::new(taken.or_else(|| self.try_read().map(|value| value.clone())).unwrap_or_default())
    }
}
