//! Calls functions when fences are done, on one thread of the process.
//!
//! Not on the worker that completes a batch: the function may wait for another batch, which then would wait for that
//! worker; and not on the thread that asked, which may never come back to the crate. The thread starts with the first
//! request and ends when none is left, so a process whose fences are done has no thread more than before.
//!
//! The protocol. [`Calls`] has, under one lock, the requests, the numbers of those to be polled, and whether a thread
//! serves them. A request and its number are entered in one step; whichever step finds that no thread serves starts
//! one. The thread takes a number and its request, and polls the request outside of the lock with a waker of that
//! number; a pending one is put back. A waker enters its number under the lock and notifies: if that happens while the
//! request is polled, the number stays in the list and the thread polls again when it has put the request back. The
//! thread ends in the step that finds no request, so a later request starts another one. Loom explores this code
//! (`loom_tests/callbacks.rs`); no atomic is involved.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use foldhash::fast::FixedState;

use crate::sync::{Condvar, Mutex};

/// What is polled until it has been called.
pub(crate) trait Request: Send {
    /// Calls the function if what it waits for has happened; otherwise the waker is woken when it may have.
    fn poll(&mut self, waker: &Waker) -> Poll<()>;
}

/// The requests of a process.
pub(crate) struct Calls<R> {
    state: Mutex<CallsState<R>>,
    woken: Condvar,
}

struct CallsState<R> {
    requests: HashMap<u64, RequestState<R>, FixedState>,
    /// The numbers of requests to be polled.
    ready: VecDeque<u64>,
    next: u64,
    /// Whether a thread serves them.
    served: bool,
}

/// A request.
enum RequestState<R> {
    Waiting(R),
    /// The thread polls it.
    Polled,
}

/// Wakes one request.
struct RequestWaker<R> {
    calls: Arc<Calls<R>>,
    number: u64,
}

impl<R: Request + 'static> Wake for RequestWaker<R> {
    fn wake(self: Arc<Self>) {
        let mut state = self.calls.state.lock();
        if state.requests.contains_key(&self.number) {
            state.ready.push_back(self.number);
            drop(state);
            self.calls.woken.notify_all();
        }
    }
}

impl<R: Request + 'static> Calls<R> {
    pub(crate) fn new() -> Arc<Self> {
        let (requests, ready) = (HashMap::default(), VecDeque::new());
        let state = CallsState { requests, ready, next: 0, served: false };
        Arc::new(Self { state: Mutex::new(state), woken: Condvar::default() })
    }

    /// Enters a request. If no thread serves, `start` starts one, which calls [`Calls::serve`]; without one the request
    /// is taken back.
    pub(crate) fn enter<E>(
        self: &Arc<Self>,
        request: R,
        start: impl FnOnce(Arc<Self>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.requests.insert(number, RequestState::Waiting(request));
        state.ready.push_back(number);
        if state.served {
            self.woken.notify_all();
            return Ok(());
        }
        // Under the lock, so that no other request relies on a thread that does not start.
        let started = start(Arc::clone(self));
        state.served = started.is_ok();
        let refused = if started.is_ok() { None } else { state.requests.remove(&number) };
        drop(state);
        drop(refused); // when no lock is held
        started
    }

    /// Polls requests until none is left.
    pub(crate) fn serve(self: Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            let Some(number) = state.ready.pop_front() else {
                if state.requests.is_empty() {
                    state.served = false;
                    return;
                }
                state = self.woken.wait(state);
                continue;
            };
            // A request that is done may have been woken before.
            let Some(slot) = state.requests.get_mut(&number) else { continue };
            let RequestState::Waiting(mut request) = std::mem::replace(slot, RequestState::Polled) else { continue };
            drop(state);
            let waker = Waker::from(Arc::new(RequestWaker { calls: Arc::clone(&self), number }));
            let polled = request.poll(&waker);
            let mut done = Some(request);
            state = self.state.lock();
            match polled {
                Poll::Pending => {
                    if let (Some(slot), Some(request)) = (state.requests.get_mut(&number), done.take()) {
                        *slot = RequestState::Waiting(request);
                    }
                }
                Poll::Ready(()) => {
                    state.requests.remove(&number);
                }
            }
            if done.is_some() {
                drop(state);
                drop(done); // when no lock is held
                state = self.state.lock();
            }
        }
    }
}
