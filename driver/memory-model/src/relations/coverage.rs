//! Which accesses an availability or visibility operation covers.
//!
//! "A memory barrier or atomic operation via agent A that includes MakeAvailable in its semantics performs an
//! availability operation whose source scope includes agent A and all references in the storage classes in that
//! instruction's storage class semantics, and all memory locations." "A memory write instruction that includes
//! MakePointerAvailable … performs an availability operation whose source scope includes the agent and reference used
//! to perform the write and the memory locations written by the instruction." The same, mirrored, for visibility.
//!
//! Deviations:
//! 1. Covered-by-availability and covered-by-visibility are two relations; the Khronos model has one for both (A5).
//! 2. Before 2025 the Khronos model let either flag of a barrier cover both sides of it
//!    ([`Coverage::Symmetric`](crate::Coverage::Symmetric)).
//! 3. An operation of the API covers every access of its kind of agent: the code that builds the trace must take the
//!    stages, accesses and ranges of a barrier into account.

use crate::event::{Action, Domain, Trace};
use crate::model::{Coverage, Inclusion, Model};
use crate::relation::Relation;
use crate::row::Row;

use super::Sets;
use super::classes::ByClass;

/// What decides which accesses an operation covers, apart from the location.
pub(super) struct Covering<'a, R: Row> {
    pub(super) trace: &'a Trace,
    pub(super) sets: &'a Sets<R>,
    pub(super) classes: &'a ByClass<R>,
    pub(super) same_reference: &'a Relation<R>,
}

impl<R: Row> Covering<'_, R> {
    /// Pairs of an access and an availability operation that covers it, and pairs of a visibility operation and an
    /// access that it covers, for the bytes that two accesses share by `same_location`. Order and domains are not
    /// considered here.
    pub(super) fn covers(&self, model: Model, same_location: &Relation<R>) -> (Relation<R>, Relation<R>) {
        let trace = self.trace;
        let n = trace.len();
        let through = same_location.clone().and(self.same_reference);
        let flagged = |is_flagged: fn(bool, bool) -> bool| {
            R::of(n, |event| {
                trace.operation(event).access().is_some_and(|access| is_flagged(access.available, access.visible))
            })
        };
        let availability = self.availability(model, &through, &flagged(|available, _| available));
        let visibility = self.visibility(model, &through, &flagged(|_, visible| visible));
        match model.inclusion {
            Inclusion::Split => (availability, visibility),
            Inclusion::Joint => {
                // Instructions cover in both directions, as in the single relation of the Khronos model.
                let either = flagged(|available, visible| available || visible);
                let instructions = through.clone().from(&either).or(&through.to(&either));
                let joint = availability.or(&visibility).or(&instructions);
                (joint.clone(), joint)
            }
        }
    }

    /// The operations whose semantics have the flag that `made` tests, by availability and visibility.
    fn makers(&self, made: impl Fn(bool, bool) -> bool) -> R {
        R::of(self.trace.len(), |event| {
            let operation = self.trace.operation(event);
            made(operation.make_available, operation.make_visible)
        })
    }

    fn availability(&self, model: Model, through: &Relation<R>, flagged: &R) -> Relation<R> {
        let symmetric = model.coverage == Coverage::Symmetric;
        let makers = self.makers(|available, visible| available || symmetric && visible);
        let mut covers = through.clone().to(flagged);
        for (domain, accesses) in self.sets.by_domain.iter().enumerate() {
            for access in accesses.iter() {
                let Some(found) = self.trace.operation(access).access() else { continue };
                let mut by = makers.and(self.classes.semantics(found.class));
                remove(&mut by, access);
                by.add(&self.sets.api_available[domain]);
                if symmetric {
                    by.add(&self.sets.api_visible[domain]);
                }
                covers.row_mut(access).add(&by);
            }
        }
        covers
    }

    fn visibility(&self, model: Model, through: &Relation<R>, flagged: &R) -> Relation<R> {
        let symmetric = model.coverage == Coverage::Symmetric;
        let mut covers = through.clone().from(flagged);
        for by in self.makers(|available, visible| visible || symmetric && available).iter() {
            let mut accesses = self.classes.accesses_in(self.trace.operation(by).semantics);
            remove(&mut accesses, by);
            covers.row_mut(by).add(&accesses);
        }
        for by in 0..self.trace.len() {
            let domain = match self.trace.operation(by).action {
                Action::Visible(domain) => domain,
                Action::Available(domain) if symmetric => domain,
                _ => continue,
            };
            covers.row_mut(by).add(&self.sets.by_domain[usize::from(domain == Domain::Host)]);
        }
        covers
    }
}

/// Removes one event from a set.
fn remove<R: Row>(set: &mut R, event: usize) {
    let mut own = R::default();
    own.insert(event);
    set.drop(&own);
}
