//! Checks of typed buffers and push constants against the program's blocks: each type is compared once.

use std::any::TypeId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::Program;
use crate::error::Error;
use crate::ids::Slot;
use crate::layout::{ElementType, of_buffer, of_push, with_rule};
use crate::sync::Mutex;

/// What was compared: a buffer's type with a group and binding, or that of push constants with the block from a byte
/// on, or with all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Binding(u32, u32),
    Push(Option<u64>),
}

/// By place and type, the problem; none if they agree.
type Problems = HashMap<(Place, TypeId), Option<Arc<str>>, FixedState>;

/// What was compared so far. Locked last: no other lock is taken while it is held.
#[derive(Debug, Default)]
pub(super) struct Compared {
    found: Mutex<Problems>,
}

impl Program {
    /// Checks that the bytes `range` of a buffer of values of this type are what the program declares for the slot.
    pub(crate) fn check_element(
        &self,
        slot: Slot,
        ty: ElementType,
        range: &Range<u64>,
        described: impl Fn() -> String,
    ) -> Result<(), Error> {
        let Range { start, end } = range;
        let problem = if start.checked_rem(ty.size()).is_some_and(|rest| rest > 0) {
            let of = format!("{ty:?}, which has {} bytes", ty.size());
            Some(with_rule(&format!("bytes {start}..{end} begin inside of a {of}")).into())
        } else {
            self.compared(Place::Binding(slot.group, slot.binding), ty)?
        };
        problem.map_or(Ok(()), |problem| Err(Error::slot(slot, format!("{}: {problem}", described()))))
    }

    /// Checks that push constants of this type are what the program declares from byte `start` on, or as a whole.
    pub(crate) fn check_push_type(&self, start: Option<u64>, ty: ElementType) -> Result<(), Error> {
        let problem = self.compared(Place::Push(start), ty)?;
        problem.map_or(Ok(()), |problem| Err(Error::Push(problem.to_string())))
    }

    fn compared(&self, place: Place, ty: ElementType) -> Result<Option<Arc<str>>, Error> {
        let key = (place, ty.id());
        if let Some(known) = self.inner.compared.found.lock().get(&key) {
            return Ok(known.clone());
        }
        let problem = match place {
            Place::Binding(group, binding) => of_buffer(self.block(group, binding)?.layout(), ty),
            Place::Push(start) => of_push(self.push_block()?.layout(), start, ty),
        };
        let problem = problem.map(|problem| Arc::from(with_rule(&problem)));
        self.inner.compared.found.lock().insert(key, problem.clone());
        Ok(problem)
    }
}
