//! The rules, one line each, by topic.

mod bind;
mod bytes;
mod commands;
mod map;
mod run;
mod sets;
mod texels;
mod watch;

use spelter::Error;

use crate::misuse::Stage;

/// A rule: its text, a call that breaks it, and the begin and end of the error.
pub(crate) type Case = (&'static str, fn(&Stage) -> Result<(), Error>, &'static str, &'static str);

pub(crate) const SOURCE: &str = "buffer `source` of 64 bytes";
pub(crate) const INSIDE: &str = "(rule: a range lies within its resource, and does not end before it begins)";
pub(crate) const GONE: &str = "(rule: a destroyed resource is not used)";
pub(crate) const MAPPED: &str =
    "(rule: a resource is used by commands while it is mapped only if the mapping is persistent)";
const KIND: &str = "(rule: a bound resource has the kind that the program declares)";
const SLOT: &str = "(rule: slots lie within the device's limits)";
const DEVICE: &str = "(rule: resources and programs are used only by contexts of the device that made them)";

/// All of them.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    let resources = [bind::CASES, run::CASES, sets::CASES, bytes::CASES, map::CASES, texels::CASES];
    resources.into_iter().chain([commands::CASES, watch::CASES]).flatten()
}
