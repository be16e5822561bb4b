//! Availability and visibility chains.
//!
//! "An availability operation AV that happens-after W and that includes (A,R,L) in its source scope makes (W,L)
//! available to the memory domains in its destination scope", and likewise visibility. Today's appendix adds chains:
//! sequences of availability operations to growing domains, each of which happens before the next and is followed by
//! one that an agent of the domain reached so far performs; visibility chains shrink in the same way.
//!
//! Deviations:
//! 1. By the text ([`Chains::Text`](crate::Chains::Text)) every element must cover the access: its storage class, for
//!    semantics, or its reference and location, for instructions. The appendix requires it of the first element only,
//!    but an operation on other memory does not affect the write.
//! 2. In the Khronos model ([`Chains::Alloy`](crate::Chains::Alloy)) an element must cover the previous element as if
//!    that were the access. A fence accesses nothing, so fences never follow each other there (A2).
//! 3. Without the device feature ([`Chains::Single`](crate::Chains::Single)) each chain has one element.

use crate::model::Chains;
use crate::relation::Relation;
use crate::row::Row;

use super::{Frame, Layer};

/// For each shader domain, subgroup to device: pairs of a write and an operation that makes it available to the domain.
pub(super) fn availability<R: Row>(
    frame: &Frame<R>,
    layer: &Layer<R>,
    happens_before: &Relation<R>,
) -> [Relation<R>; 4] {
    let first = frame.program_order.clone().reflexive().and(&layer.availability_covers).from(&frame.sets.writes);
    let available = &frame.sets.available;
    let step = |at: usize| happens_before.clone().and(&frame.shares[at]);
    match frame.model.chains {
        Chains::Single => std::array::from_fn(|at| first.clone().to(&available[at])),
        Chains::Text => {
            let mut reached = first;
            std::array::from_fn(|at| {
                let here = reached.clone().to(&available[at]);
                if at < 3 {
                    reached = here.then(&step(at)).and(&layer.availability_covers).or(&reached);
                }
                here
            })
        }
        Chains::Alloy => {
            let mut chain = Relation::new(frame.n).reflexive();
            std::array::from_fn(|at| {
                let here = chain.clone().to(&available[at]);
                if at < 3 {
                    let next = here.then(&step(at).and(&layer.availability_covers)).reflexive();
                    chain = chain.then(&next);
                }
                first.then(&here)
            })
        }
    }
}

/// For each shader domain, subgroup to device: pairs of an operation and a read to which it makes the domain's values
/// visible.
pub(super) fn visibility<R: Row>(frame: &Frame<R>, layer: &Layer<R>, happens_before: &Relation<R>) -> [Relation<R>; 4] {
    let last = frame.program_order.clone().reflexive().and(&layer.visibility_covers);
    let visible = &frame.sets.visible;
    let step = |at: usize| happens_before.clone().and(&frame.shares[at]);
    match frame.model.chains {
        Chains::Single => std::array::from_fn(|at| last.clone().from(&visible[at])),
        Chains::Text => {
            let mut reached = last;
            std::array::from_fn(|at| {
                let here = reached.clone().from(&visible[at]);
                if at < 3 {
                    reached = step(at).then(&here).and(&layer.visibility_covers).or(&reached);
                }
                here
            })
        }
        Chains::Alloy => {
            let mut chain = Relation::new(frame.n).reflexive();
            std::array::from_fn(|at| {
                let here = chain.clone().from(&visible[at]);
                if at < 3 {
                    let next = step(at).and(&layer.visibility_covers).then(&here).reflexive();
                    chain = next.then(&chain);
                }
                here.then(&last)
            })
        }
    }
}
