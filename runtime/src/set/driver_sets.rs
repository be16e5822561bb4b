//! The driver sets of a descriptor set, one for each layout of a program's group that dispatches it.

use std::sync::Arc;

use spelter_driver::{DescriptorPool, DescriptorSet, DescriptorSetLayout};

use super::names::Names;
use super::place::{FillTarget, Place};
use crate::descriptors::{allocate, write_one};
use crate::error::Error;
use crate::ids::Serial;
use crate::program::{Declared, SetLayout};
use crate::share::Share;
use crate::submission::{Clock, Submission};

/// Sets in a pool: the one that is in use now, and those of batches in flight.
const SETS_IN_POOL: u32 = 4;
/// The largest number of layouts with a driver set. A set that serves more programs is written again for each.
const MAX_LAYOUTS: usize = 8;

/// A group of a program that takes its descriptors from a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) layout: &'a SetLayout,
    /// For each descriptor of the layout, in order, its place in the set.
    pub(crate) places: &'a [u32],
}

impl<'a> Wanted<'a> {
    /// The descriptors, each as binding, element and place in the set.
    fn descriptors(self) -> impl Iterator<Item = (&'a Declared, u32, u32)> {
        let elements = self.layout.bindings.iter().flat_map(|info| (0..info.count).map(move |element| (info, element)));
        elements.zip(self.places).map(|((info, element), place)| (info, element, *place))
    }
}

/// By layout, the latest last. The set's lock protects it.
#[derive(Debug, Default)]
pub(super) struct DriverSets {
    layouts: Vec<LayoutSet>,
}

#[derive(Debug)]
struct LayoutSet {
    layout: DescriptorSetLayout,
    pool: Option<DescriptorPool>,
    place: Place<DescriptorSet, Submission>,
}

impl DriverSets {
    /// The driver set for a group that holds these names, with its number, for a command of the open batch `serial`;
    /// and if an older one was not current any more, whether it was written again in place.
    pub(super) fn take(
        &mut self,
        share: &Share,
        names: &Names,
        wanted: Wanted<'_>,
        batch: (&Arc<Clock>, Serial),
    ) -> Result<((DescriptorSet, u64), Option<bool>), Error> {
        let mut written = None;
        let known = self.layouts.iter().position(|known| known.layout == wanted.layout.layout);
        let at = known.unwrap_or_else(|| self.add(&wanted.layout.layout));
        let LayoutSet { pool, place, .. } = &mut self.layouts[at];
        let counters = &share.memory().counters;
        let fill = |target: FillTarget<'_, DescriptorSet>| {
            let (set, since) = match target {
                FillTarget::This(set, since) => {
                    written = Some(true);
                    counters.sets_rewritten.one();
                    (set.clone(), Some(since))
                }
                FillTarget::Another(old, since) => {
                    written = Some(false);
                    let set = allocate(share.device(), pool, wanted.layout, SETS_IN_POOL)?;
                    // A batch still reads the old set. Descriptors that have not changed are copied, which costs less
                    // than to write them.
                    copy(&set, old, names, wanted, since)?;
                    counters.sets_allocated.one();
                    counters.sets_dropped.one();
                    (set, Some(since))
                }
                FillTarget::First => {
                    counters.sets_allocated.one();
                    (allocate(share.device(), pool, wanted.layout, SETS_IN_POOL)?, None)
                }
            };
            // A new set has nothing yet; another one lacks only what changed since it was written.
            let is_news = |place| since.is_none_or(|since| names.changed_since(place, since));
            for (info, element, place) in wanted.descriptors().filter(|(.., place)| is_news(*place)) {
                if let Some(state) = names.state(place) {
                    write_one(&set, info, element, state)?;
                }
            }
            Ok::<_, Error>(set)
        };
        let taken = place.take(names.last_change(), batch, fill)?;
        Ok((taken, written))
    }

    /// Adds a layout, and returns its index.
    fn add(&mut self, layout: &DescriptorSetLayout) -> usize {
        if self.layouts.len() == MAX_LAYOUTS {
            self.layouts.remove(0);
        }
        self.layouts.push(LayoutSet { layout: layout.clone(), pool: None, place: Place::default() });
        self.layouts.len() - 1
    }

    /// Drops the driver sets that hold older names: they keep memory of objects that the set does not name any more.
    pub(super) fn drop_older(&mut self, names: &Names, share: &Share) {
        let before = self.layouts.len();
        self.layouts.retain(|set| !set.place.is_older(names.last_change()));
        share.memory().counters.sets_dropped.add((before - self.layouts.len()) as u64);
    }
}

/// Copies the bindings in which any descriptor is as it was at the change `since`, up to which `old` holds the names.
fn copy(set: &DescriptorSet, old: &DescriptorSet, names: &Names, wanted: Wanted<'_>, since: u64) -> Result<(), Error> {
    let mut places = wanted.places;
    for info in &wanted.layout.bindings {
        let (of, rest) = places.split_at(info.count as usize);
        places = rest;
        if of.iter().any(|place| !names.changed_since(*place, since)) {
            set.copy([info.binding, 0], old, [info.binding, 0], of.len())?;
        }
    }
    Ok(())
}
