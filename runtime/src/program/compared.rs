//! Checks of typed buffers and push constants against the program's blocks: each type is compared once.

use std::any::TypeId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::Program;
use crate::error::Error;
use crate::ids::Slot;
use crate::layout::{BufferType, ElementType, of_buffer, of_push, with_rule};
use crate::sync::Mutex;

/// What a type was compared with: the block at a group and binding, or the block of push constants: from a byte on, or
/// all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ComparedBlock {
    Binding(u32, u32),
    Push(Option<u64>),
}

/// The type of values, and of those in an array after them.
type Types = (TypeId, Option<TypeId>);

/// The problem that each comparison found, by place and types; `None` if they agree.
type Problems = HashMap<(ComparedBlock, Types), Option<Arc<str>>, FixedState>;

/// What was compared so far. Locked last: no other lock is taken while it is held.
#[derive(Debug, Default)]
pub(super) struct Compared {
    found: Mutex<Problems>,
}

impl Program {
    /// Checks that the bytes `range` of a buffer with contents of this type are what the program declares for the slot.
    pub(crate) fn check_contents(
        &self,
        slot: Slot,
        ty: BufferType,
        range: &Range<u64>,
        described: impl Fn() -> String,
    ) -> Result<(), Error> {
        let Range { start, end } = range;
        let begins_element = match ty.step() {
            Some(step) => start.checked_rem(step).is_none_or(|rest| rest == 0),
            None => *start == 0,
        };
        let problem = if begins_element {
            let block = || Ok(of_buffer(self.block(slot.group, slot.binding)?.layout(), ty));
            self.compared(ComparedBlock::Binding(slot.group, slot.binding), ty.id(), block)?
        } else {
            let element = ty.step().map(|step| format!("{ty:?}, which has {step} bytes"));
            let element = element.unwrap_or_else(|| format!("{ty:?}"));
            Some(with_rule(&format!("bytes {start}..{end} begin inside of a {element}")).into())
        };
        problem.map_or(Ok(()), |problem| Err(Error::slot(slot, format!("{}: {problem}", described()))))
    }

    /// Checks that push constants of this type are what the program declares from byte `start` on, or as a whole.
    pub(crate) fn check_push_type(&self, start: Option<u64>, ty: ElementType) -> Result<(), Error> {
        let block = || Ok(of_push(self.push_block()?.layout(), start, ty));
        let problem = self.compared(ComparedBlock::Push(start), (ty.id(), None), block)?;
        problem.map_or(Ok(()), |problem| Err(Error::Push(problem.to_string())))
    }

    /// The problem that was found at the place for these types, or else that which `compare` finds.
    fn compared(
        &self,
        place: ComparedBlock,
        types: Types,
        compare: impl FnOnce() -> Result<Option<String>, Error>,
    ) -> Result<Option<Arc<str>>, Error> {
        let key = (place, types);
        if let Some(known) = self.inner.compared.found.lock().get(&key) {
            return Ok(known.clone());
        }
        let problem = compare()?.map(|problem| Arc::from(with_rule(&problem)));
        self.inner.compared.found.lock().insert(key, problem.clone());
        Ok(problem)
    }
}
