//! The executor: queues' batches, run by worker threads. `README.md` has the protocol.

mod plan;
mod run;
pub(crate) mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use spelter_shaders::back::Scratch;

use crate::error::DeviceError;
use crate::exec::plan::Plan;
use crate::exec::work::Batch;

pub(crate) use work::{DispatchWork, Groups, MAX_GROUPS, Phase, Recording, Work};

pub(crate) struct ExecutorOptions {
    pub(crate) workers: usize,
    pub(crate) time_limit: Duration,
}

pub(crate) struct Executor {
    stop: AtomicU32,
    lost: Arc<AtomicBool>,
}

impl Executor {
    pub(crate) fn new(_options: ExecutorOptions) -> Arc<Self> {
        Arc::new(Self { stop: AtomicU32::new(0), lost: Arc::default() })
    }
    pub(crate) fn queue(self: &Arc<Self>) -> Arc<QueueState> {
        Arc::new(QueueState {
            executor: Arc::clone(self),
            serial: Mutex::new((0, Scratch::default())),
            retired: AtomicU64::new(0),
        })
    }
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

pub(crate) struct QueueState {
    executor: Arc<Executor>,
    serial: Mutex<(u64, Scratch)>,
    retired: AtomicU64,
}

impl QueueState {
    pub(crate) fn submit(self: &Arc<Self>, batch: Batch) -> Result<u64, DeviceError> {
        let mut guard = self.serial.lock();
        let (serial, scratch) = &mut *guard;
        *serial += 1;
        let mut plan = Plan::default();
        for phase in batch.recordings.iter().flat_map(|r| &r.phases) {
            plan.count(phase);
            if let Err(halt) = run::run(phase, &plan, 0..plan.units(), &self.executor.stop, scratch) {
                self.executor.lost.store(true, Ordering::Release);
                return Err(DeviceError::DeviceLost(format!("{halt:?}")));
            }
        }
        let fence = batch.fence.clone();
        drop(batch);
        self.retired.store(*serial, Ordering::Release);
        if let Some(fence) = fence {
            fence.signal();
        }
        Ok(*serial)
    }
    pub(crate) fn wait_idle(&self) -> Result<(), DeviceError> {
        drop(self.serial.lock());
        Ok(())
    }
    pub(crate) fn retired(&self) -> u64 {
        self.retired.load(Ordering::Acquire)
    }
}
