//! The user's key for stored machine code, read once.

use std::sync::OnceLock;

use spelter_driver::SealKey;

use crate::environment::variable;

/// The key of the process's user; `None` if there is no place for it, or if another user could read it.
pub(super) fn key() -> Option<&'static SealKey> {
    static KEY: OnceLock<Option<SealKey>> = OnceLock::new();
    KEY.get_or_init(|| SealKey::of_user(variable)).as_ref()
}
