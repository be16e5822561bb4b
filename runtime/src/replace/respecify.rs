//! Respecification: a resource gets an object of another size, in all its slots. Its contents become undefined.
//!
//! The object is made before the resource is locked, since it may take memory that other contexts must give up first.
//! Then the resource's description and its object change in one step under the resource's lock: a command that was
//! checked against the old size finds another object and is checked again.

use std::sync::Arc;

use super::{Garbage, exchange, replaced};
use crate::context_state::ContextState;
use crate::error::{Error, rule};
use crate::memory::{Spares, Template};
use crate::object::ResourceObject;
use crate::outcome::Action;
use crate::resource::Resource;
use crate::share::Share;
use crate::valid::Valid;

/// Gives a resource an object with another description, and the place of its spare storage.
pub(crate) fn respecify(
    share: &Share,
    state: &mut ContextState,
    resource: &Resource,
    template: Template,
    (new, spares): (ResourceObject, Spares),
) -> Result<(Action, Garbage), Error> {
    let mut inner = resource.state();
    let old = inner.object(resource, "resize")?.id();
    if inner.mappings.any() {
        return Err(Error::resource(format!("resize: {} is mapped", resource.described()), rule::RESIZED));
    }
    state.trace_instant(|| format!("resize {}", resource.described()));
    let (action, new) = (Action::Replaced { old, new: new.id() }, Arc::new(new));
    let before = resource.respecify(template, new.size(), spares);
    let lost = exchange((resource.id(), &mut inner), (new, Valid::new()), share.journal(), &mut state.journal_seen);
    // Until its batches have retired the old object counts as pending memory; its storage has the wrong size to be
    // used again.
    lost.iter().for_each(|old| old.recycle_into(&before));
    before.close();
    share.memory().counters.resizes.one();
    Ok((action, replaced(share, state, (resource, &mut inner), lost)))
}
