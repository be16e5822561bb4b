//! Which flag guards the memory of a race, among the races of one replay: an invocation that sees the flag relies on
//! the data. The races of the flag and of the data get one repair.

use std::cell::{Cell, OnceCell};

use super::confirm::Confirmed;
use super::dispatch::DispatchRun;
use super::log::Log;
use super::repair::{self, Flag};

/// Races for which a flag is sought, and races whose memory it may guard, at most: each costs a look at the whole
/// record.
const MAX_GUARDED: usize = 64;

/// The races of a replay, with the flags that guard their memory.
pub(super) struct Guards<'r> {
    log: &'r Log,
    races: Vec<&'r Confirmed>,
    /// Of the first races.
    flags: OnceCell<Vec<Vec<Flag>>>,
    /// Other races that may yet be looked at.
    left: Cell<usize>,
}

impl<'r> Guards<'r> {
    pub(super) fn new(log: &'r Log, races: impl IntoIterator<Item = &'r Confirmed>) -> Self {
        Self { log, races: races.into_iter().collect(), flags: OnceCell::new(), left: Cell::new(MAX_GUARDED) }
    }
}

impl DispatchRun<'_> {
    /// The flags that guard the memory of a race, or that the race is about, and a race of what they guard.
    pub(super) fn flags<'r>(&self, of: &Guards<'r>, race: &'r Confirmed) -> Option<(Vec<Flag>, Option<&'r Confirmed>)> {
        let kernel = self.code.kernel();
        of.left.set(of.left.get().checked_sub(1)?);
        let own = repair::guarding(of.log, race, kernel);
        if !own.is_empty() {
            return Some((own, Some(race)));
        }
        let guarding = |race: &&Confirmed| repair::guarding(of.log, race, kernel);
        // The flags of all races of the replay: this race may be about a flag that guards another one's memory.
        let flags = of.flags.get_or_init(|| of.races.iter().take(MAX_GUARDED).map(guarding).collect());
        let sites = [race.first.site, race.second.site];
        let guards = |(&guarded, flags): (&&'r Confirmed, &Vec<Flag>)| {
            flags.iter().any(|flag| flag.is_of(sites)).then(|| (flags.clone(), Some(guarded)))
        };
        let own = || {
            let slice = &race.slice;
            let writes = [slice.pair.0, slice.pair.1].map(|event| slice.trace.operation(event).writes());
            let (write, read) = if writes[0] { (&race.first, &race.second) } else { (&race.second, &race.first) };
            let flag = Flag { write: (write.site, write.by), read: (read.site, read.by) };
            let is_flag = repair::is_flag(kernel, &self.code.all().kernel.sites[read.site]);
            (is_flag && writes[0] != writes[1]).then(|| (vec![flag], None))
        };
        of.races.iter().zip(flags).find_map(guards).or_else(own)
    }
}
