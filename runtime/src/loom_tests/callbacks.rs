//! Callbacks of fences: each is called once, whatever happens while it is polled, and no thread is left.

use std::sync::Arc;
use std::task::{Poll, Waker};

use loom::sync::Mutex;
use loom::thread;

use crate::callbacks::{Calls, Request};

/// A fence in small: whether it is done, and the wakers of pending polls.
#[derive(Default)]
struct Signal(Mutex<(bool, Vec<Waker>)>);

impl Signal {
    fn settle(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            std::mem::take(&mut state.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

struct CountedCall {
    signal: Arc<Signal>,
    calls: Arc<Mutex<u32>>,
}

impl Request for CountedCall {
    fn poll(&mut self, waker: &Waker) -> Poll<()> {
        let mut state = self.signal.0.lock().unwrap();
        if !state.0 {
            state.1.push(waker.clone());
            return Poll::Pending;
        }
        *self.calls.lock().unwrap() += 1;
        Poll::Ready(())
    }
}

/// Two requests of one signal, which is settled while the first or the second is entered or polled.
#[test]
fn every_function_is_called_once_and_the_thread_ends() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (calls, signal, count) = (Calls::new(), Arc::new(Signal::default()), Arc::new(Mutex::new(0)));
        let settler = thread::spawn({
            let signal = Arc::clone(&signal);
            move || signal.settle()
        });
        let mut servers = Vec::new();
        for _ in 0..2 {
            let request = CountedCall { signal: Arc::clone(&signal), calls: Arc::clone(&count) };
            let entered = calls.enter(request, |calls| {
                servers.push(thread::spawn(move || calls.serve()));
                Ok::<_, ()>(())
            });
            assert!(entered.is_ok());
        }
        settler.join().unwrap();
        // The threads end by themselves.
        servers.into_iter().for_each(|server| server.join().unwrap());
        assert_eq!(*count.lock().unwrap(), 2);
    });
}
