//! Descriptor sets as they were bound, and their resolution for dispatches.
//!
//! Most sets are resolved when a dispatch is recorded. Sets whose layout allows updates after binding
//! (`VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT`) are resolved again by each submission.

use std::any::Any;
use std::sync::Arc;

use crate::descriptor::{Contents, WeakSet};
use crate::exec::{DispatchState, DispatchWork, Recording, Work};
use crate::host_memory::OutOfHostMemory;
use crate::pipeline::PipelineLayout;

/// A bound set, with its contents at that time.
pub(super) struct BoundSet {
    pub(super) layout: PipelineLayout,
    pub(super) set: WeakSet,
    /// Whether it may be updated until the command buffer is submitted.
    pub(super) late: bool,
    pub(super) contents: Arc<Contents>,
    /// Dynamic offset of each slot; empty if there are none.
    pub(super) offsets: Arc<[u32]>,
    /// Dynamic offsets as passed by the program.
    pub(super) given: Box<[u32]>,
}

impl BoundSet {
    /// Whether a kernel sees the same descriptors through both.
    pub(super) fn sees_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.contents, &other.contents)
            && self.late == other.late
            && (!self.late || self.set.is(&other.set))
            && self.layout.is(&other.layout)
            && self.given == other.given
    }
}

/// The recording to run in this submission: with the descriptors that late sets hold now.
pub(super) fn resolve_late(recording: &Arc<Recording>) -> Result<Arc<Recording>, OutOfHostMemory> {
    if !recording.late {
        return Ok(Arc::clone(recording));
    }
    let mut keep_alive: Vec<Arc<dyn Any + Send + Sync>> = vec![Arc::clone(recording) as _];
    // Consecutive dispatches often share their dispatch state: resolve it once.
    let mut last: Option<(Arc<DispatchState>, Arc<DispatchState>)> = None;
    let mut resolve = |dispatch: &DispatchWork| {
        let Some(sources) = &dispatch.state.late else { return dispatch.clone() };
        let known = last.take().filter(|(known, _)| Arc::ptr_eq(known, &dispatch.state));
        let (_, state) = last.insert(known.unwrap_or_else(|| {
            let (buffers, images) = sources.resolve(&mut |contents| keep_alive.push(contents));
            let renewed = DispatchState { buffers, images, ..(*dispatch.state).clone() };
            (Arc::clone(&dispatch.state), Arc::new(renewed))
        }));
        DispatchWork { state: Arc::clone(state), ..dispatch.clone() }
    };
    let phases = recording.phases.map(|work| match work {
        Work::Dispatch(dispatch) => Work::Dispatch(resolve(dispatch)),
        other => other.clone(),
    })?;
    Ok(Arc::new(Recording {
        phases,
        keep_alive,
        late: false,
        labels: recording.labels.clone(),
        dependencies: recording.dependencies.clone(),
        debug_name: recording.debug_name.clone(),
    }))
}
