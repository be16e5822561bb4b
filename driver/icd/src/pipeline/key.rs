//! The user's key for stored machine code, read once.

use spelter_driver::SealKey;
use spelter_locks::Computed;

use spelter_driver::environment::variable;

/// The key of the process's user; `None` if there is no place for it, or if another user could read it.
pub(super) fn key() -> Option<&'static SealKey> {
    static KEY: Computed<Option<SealKey>> = Computed::new();
    KEY.get_or_compute(|| SealKey::of_user(variable)).as_ref()
}
