//! Mutexes and condition variables over those of a library: of `std`, or of loom, which then explores this code.

/// Defines `Mutex` and `Condvar` by the module `$sync`. `$constant`: `const`, if the constructors of that are.
macro_rules! define_locks {
    ($sync:ident $(, $constant:tt)?) => {
        use std::fmt;
        use std::sync::PoisonError;
        use std::time::{Duration, Instant};

        use $sync::atomic::{AtomicU32, Ordering};

        /// Mutual exclusion without poisoning.
        #[derive(Default)]
        pub struct Mutex<T>($sync::Mutex<T>);

        impl<T> Mutex<T> {
            /// An unlocked mutex.
            pub $($constant)? fn new(value: T) -> Self {
                Self($sync::Mutex::new(value))
            }

            /// Waits for the lock.
            pub fn lock(&self) -> $sync::MutexGuard<'_, T> {
                self.0.lock().unwrap_or_else(PoisonError::into_inner)
            }

            /// The lock, unless it is held.
            pub fn try_lock(&self) -> Option<$sync::MutexGuard<'_, T>> {
                $crate::attempt::taken(self.0.try_lock())
            }

            /// The value, without locking: the reference proves that no other thread has one.
            pub fn get_mut(&mut self) -> &mut T {
                self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
            }

            /// The value.
            pub fn into_inner(self) -> T {
                self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
            }
        }

        impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        /// A condition variable that makes no system call unless a thread waits.
        ///
        /// Between the change of a condition and the notification, a notifier must take the mutex that the waiters
        /// pass, if the change is not made under it. Waiters may wake without a notification.
        #[derive(Debug)]
        pub struct Condvar {
            /// The threads between the start and the end of a wait. Relaxed is enough, since it is increased under the
            /// mutex, before the waiter gives it back. If the notifier took the mutex before the waiter did, the
            /// waiter's test sees the change. If it took the mutex after the waiter gave it back, it sees the count.
            waiters: AtomicU32,
            inner: $sync::Condvar,
        }

        impl Default for Condvar {
            fn default() -> Self {
                Self::new()
            }
        }

        impl Condvar {
            /// No thread waits.
            pub $($constant)? fn new() -> Self {
                Self { waiters: AtomicU32::new(0), inner: $sync::Condvar::new() }
            }

            /// Gives the mutex back, waits for a notification and takes the mutex.
            pub fn wait<'a, T>(&self, guard: $sync::MutexGuard<'a, T>) -> $sync::MutexGuard<'a, T> {
                self.waiters.fetch_add(1, Ordering::Relaxed);
                let guard = self.inner.wait(guard).unwrap_or_else(PoisonError::into_inner);
                self.waiters.fetch_sub(1, Ordering::Relaxed);
                guard
            }

            /// As [`Condvar::wait`], for at most this time. Also returns whether it is over. (In a model no time
            /// passes.)
            pub fn wait_for<'a, T>(
                &self,
                guard: $sync::MutexGuard<'a, T>,
                limit: Duration,
            ) -> ($sync::MutexGuard<'a, T>, bool) {
                self.waiters.fetch_add(1, Ordering::Relaxed);
                let (guard, result) =
                    self.inner.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner);
                self.waiters.fetch_sub(1, Ordering::Relaxed);
                (guard, result.timed_out())
            }

            /// As [`Condvar::wait_for`], until a time, or without an end.
            pub fn wait_until<'a, T>(
                &self,
                guard: $sync::MutexGuard<'a, T>,
                deadline: Option<Instant>,
            ) -> ($sync::MutexGuard<'a, T>, bool) {
                let Some(deadline) = deadline else { return (self.wait(guard), false) };
                match deadline.saturating_duration_since(Instant::now()) {
                    // Without a system call: programs poll.
                    Duration::ZERO => (guard, true),
                    left => self.wait_for(guard, left),
                }
            }

            /// Wakes a thread that waits, if one does.
            #[inline]
            pub fn notify_one(&self) {
                if self.waiters.load(Ordering::Relaxed) != 0 {
                    self.inner.notify_one();
                }
            }

            /// Wakes all threads that wait.
            #[inline]
            pub fn notify_all(&self) {
                if self.waiters.load(Ordering::Relaxed) != 0 {
                    self.inner.notify_all();
                }
            }
        }
    };
}

pub(crate) use define_locks;
