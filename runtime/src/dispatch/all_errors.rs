//! All errors of a dispatch at once. A dispatch stops at its first error, since most have none; this looks again, at
//! everything that the caller chose.

use super::sets::SetOfGroup;
use super::{Counts, Dispatch};
use crate::error::Error;
use crate::set::Looked;

impl Dispatch<'_> {
    /// The errors of a dispatch that was refused, `first` among them. Only the caller's mistakes are searched for: if
    /// memory is exhausted or the device is lost, that is the error.
    pub(super) fn all_errors(&mut self, counts: Counts<'_>, first: Error) -> Error {
        let is_mistake = matches!(
            first,
            Error::Binding { .. } | Error::Push(_) | Error::Range(_) | Error::Resource(_) | Error::Misuse(_)
        );
        if !is_mistake || self.check_program().is_err() {
            return first;
        }
        let mut all: Vec<Error> = self.push_errors().collect();
        all.extend(counts.errors(self.context));
        all.extend(self.sets.iter().filter_map(|(group, set)| self.check_set(*group, set).err()));
        all.extend(self.bound.iter().filter_map(|(slot, own)| self.check_known(*slot, own).err()));
        self.add_descriptor_errors(&mut all);
        if !all.contains(&first) {
            all.insert(0, first.clone());
        }
        let mut distinct: Vec<Error> = Vec::with_capacity(all.len());
        for error in all {
            if !distinct.contains(&error) {
                distinct.push(error);
            }
        }
        if distinct.len() > 1 { Error::Several(distinct) } else { first }
    }

    /// The error of each descriptor of the program, and of each set that does not fit.
    fn add_descriptor_errors(&self, all: &mut Vec<Error>) {
        let mut looked = Looked::default();
        let mut state = self.context.inner().lock();
        let of_groups: Vec<_> = match self.recording {
            Some(_) => (0..self.program.sets().len() as u32).map(|group| self.sets.get(group).cloned()).collect(),
            None => self.sets.of_program(&state.group_sets, self.program).into_iter().map(|set| set.cloned()).collect(),
        };
        for (group, layout) in (0u32..).zip(self.program.sets()) {
            let set = of_groups.get(group as usize).and_then(Option::as_ref);
            if set.is_some_and(|set| self.check_set(group, set).is_err()) {
                continue; // the set itself is the error
            }
            let from = match set.map(|set| SetOfGroup::look(set, (self.program, group, layout), &mut looked)) {
                Some(Err(error)) => {
                    all.push(error);
                    continue;
                }
                Some(Ok(from)) => Some(from),
                None => None,
            };
            let slots = layout.bindings.iter().flat_map(|info| info.slots().map(move |slot| (*info, slot)));
            all.extend(slots.enumerate().filter_map(|(at, (info, slot))| match self.recording {
                Some(_) => self.own_binding(info, slot, from.as_ref().map(|from| (from, at))).err(),
                None => self.found(&mut state, info, slot, from.as_ref().map(|from| (from, at))).err(),
            }));
        }
    }
}
