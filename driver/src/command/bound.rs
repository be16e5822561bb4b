//! What stands behind a kernel's bindings: sets as they were bound.
//!
//! Most sets are looked at when a dispatch is recorded. Those whose layout lets them be updated after they were bound
//! (`VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT`) are looked at again by each submission.

use std::any::Any;
use std::sync::Arc;

use crate::descriptor::{Contents, Resolved, Sources, WeakSet};
use crate::exec::{DispatchWork, Phase, Recording, Work};
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
pub(super) fn resolve_late(recording: &Arc<Recording>) -> Arc<Recording> {
    if !recording.late {
        return Arc::clone(recording);
    }
    let mut keep_alive: Vec<Arc<dyn Any + Send + Sync>> = vec![Arc::clone(recording) as _];
    // Dispatches that follow one another often share their sources.
    let mut last: Option<(Arc<Sources>, Resolved)> = None;
    let mut resolve = |dispatch: &DispatchWork| {
        let Some(sources) = &dispatch.late else { return dispatch.clone() };
        let known = last.take().filter(|(known, _)| Arc::ptr_eq(known, sources));
        let (_, resolved) = last.insert(known.unwrap_or_else(|| {
            let resolved = Arc::clone(sources).resolve(|contents| keep_alive.push(contents as _));
            (Arc::clone(sources), resolved)
        }));
        let Resolved { buffers, images, .. } = resolved.clone();
        DispatchWork { buffers, images, ..dispatch.clone() }
    };
    let mut renew = |work: &Work| match work {
        Work::Dispatch(dispatch) => Work::Dispatch(resolve(dispatch)),
        other => other.clone(),
    };
    let phases = recording.phases.iter().map(|phase| phase.iter().map(&mut renew).collect::<Phase>()).collect();
    Arc::new(Recording { phases, keep_alive, late: false, labels: recording.labels.clone() })
}
