//! What stands behind a kernel's bindings: sets as they were bound.
//!
//! Most sets are looked at when a dispatch is recorded. Those whose layout lets them be updated after they were bound
//! (`VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT`) are looked at again by each submission.

use std::any::Any;
use std::sync::Arc;

use crate::descriptor::{Contents, WeakSet};
use crate::exec::{Bound, DispatchWork, Recording, Work};
use crate::host_memory::OutOfHostMemory;
use crate::pipeline::PipelineLayout;

/// A set as it was bound.
pub(super) struct BoundSet {
    pub(super) layout: PipelineLayout,
    pub(super) set: WeakSet,
    /// Whether it may be updated until it is submitted.
    pub(super) late: bool,
    pub(super) contents: Arc<Contents>,
    /// Dynamic offset of each slot; empty if there are none.
    pub(super) offsets: Arc<[u32]>,
    /// Offsets as they were given.
    pub(super) given: Box<[u32]>,
}

impl BoundSet {
    /// Whether a kernel finds the same behind both.
    pub(super) fn sees_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.contents, &other.contents)
            && self.late == other.late
            && (!self.late || self.set.is(&other.set))
            && self.layout.is(&other.layout)
            && self.given == other.given
    }
}

/// The recording as it is to run now: with the descriptors that late sets hold at this moment.
pub(super) fn resolve_late(recording: &Arc<Recording>) -> Result<Arc<Recording>, OutOfHostMemory> {
    if !recording.late {
        return Ok(Arc::clone(recording));
    }
    let mut keep_alive: Vec<Arc<dyn Any + Send + Sync>> = vec![Arc::clone(recording) as _];
    // Dispatches that follow one another often have the same bound.
    let mut last: Option<(Arc<Bound>, Arc<Bound>)> = None;
    let mut resolve = |dispatch: &DispatchWork| {
        let Some(sources) = &dispatch.bound.late else { return dispatch.clone() };
        let known = last.take().filter(|(known, _)| Arc::ptr_eq(known, &dispatch.bound));
        let (_, bound) = last.insert(known.unwrap_or_else(|| {
            let (buffers, images) = sources.resolve(|contents| keep_alive.push(contents as _)).share();
            let renewed = Bound { buffers, images, ..(*dispatch.bound).clone() };
            (Arc::clone(&dispatch.bound), Arc::new(renewed))
        }));
        DispatchWork { bound: Arc::clone(bound), ..dispatch.clone() }
    };
    let phases = recording.phases.map(|work| match work {
        Work::Dispatch(dispatch) => Work::Dispatch(resolve(dispatch)),
        other => other.clone(),
    })?;
    Ok(Arc::new(Recording { phases, keep_alive, late: false, labels: recording.labels.clone() }))
}
