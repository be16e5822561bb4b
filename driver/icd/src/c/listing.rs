//! Enumerations: commands that return a count first and then the elements.

use ash::vk;

use super::chain::OutChain;
use super::pointer::{InOut, OutMany};

/// Writes the number of `items`, or as many of them as fit: returns `VK_INCOMPLETE` if some do not.
pub(crate) fn list<T>(
    mut count: InOut<'_, u32>,
    out: OutMany<'_, T>,
    items: impl ExactSizeIterator<Item = T>,
) -> vk::Result {
    let fit = fit(&mut count, out.is_null(), items.len());
    out.put(fit.0, items);
    fit.1
}

/// As [`list`], for structures with chains.
pub(crate) fn list_chains<'a, T: vk::TaggedStructure, I>(
    mut count: InOut<'_, u32>,
    out: OutMany<'a, T>,
    items: impl ExactSizeIterator<Item = I>,
    mut write: impl FnMut(&mut OutChain<'a, T>, I),
) -> vk::Result {
    let fit = fit(&mut count, out.is_null(), items.len());
    for (mut chain, item) in out.chains(fit.0).zip(items) {
        write(&mut chain, item);
    }
    fit.1
}

/// How many elements are written, and the result.
fn fit(count: &mut InOut<'_, u32>, only_count: bool, there_are: usize) -> (usize, vk::Result) {
    let room = if only_count { there_are } else { count.get() as usize };
    let written = there_are.min(room);
    count.put(written as u32);
    let complete = written == there_are;
    (if only_count { 0 } else { written }, if complete { vk::Result::SUCCESS } else { vk::Result::INCOMPLETE })
}
