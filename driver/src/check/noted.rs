//! Cache of the notes on a kernel: those that are proven, and the number of attempts.

use spelter_locks::Mutex;
use spelter_shaders::check::NoteKind;

use super::finding::Finding;

/// Notes that are proven, and dispatches that proved none.
#[derive(Debug, Default)]
pub(super) struct Noted(pub(super) Mutex<Proven>);

#[derive(Debug, Default)]
pub(super) struct Proven {
    pub(super) notes: Vec<(NoteKind, Finding)>,
    pub(super) attempts: u32,
}
