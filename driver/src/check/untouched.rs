//! Which pages of device memory nothing has touched since it was allocated: they hold zeros, and reading them would
//! only give them memory. The system says so of the process (`/proc/self/pagemap`).
//!
//! That a page has no entry means zeros in anonymous memory of this process only. So a range is asked about if all of
//! it is in one such mapping (`/proc/self/maps`); of others, and where the system says nothing, no page counts as
//! untouched, and each is read.

use std::ops::Range;

use spelter_shaders::guest::GuestSlice;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::snapshot::PAGE;

/// Ranges from this many bytes on are asked about: reading less is as fast.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const MIN_ASKED_BYTES: u64 = 4 << 20;

/// The pages of a range that are untouched.
pub(super) struct Untouched {
    /// A flag for each page, from the one with the first byte of the range on; none if nothing is known.
    flags: Vec<bool>,
    /// Bytes of the first page before the range.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    before: u64,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl Untouched {
    /// As it is now.
    pub(super) fn of(range: GuestSlice) -> Self {
        let start = range.address() as u64;
        let flags = if range.len() < MIN_ASKED_BYTES { None } else { flags(start..start + range.len()) };
        Self { flags: flags.unwrap_or_default(), before: start % PAGE }
    }

    /// Whether a page of the range, or a part of one, is untouched.
    pub(super) fn has(&self, page: &Range<u64>) -> bool {
        let number = (self.before + page.start) / PAGE;
        self.flags.get(number as usize).copied().unwrap_or(false)
    }
}

/// A flag for each page of the addresses; `None` if the system does not say.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn flags(addresses: Range<u64>) -> Option<Vec<bool>> {
    use std::os::unix::fs::FileExt as _;

    /// Bits of an entry: the page has memory, or is swapped out. Bit 57 is set of pages that are write-protected.
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const PROTECTED: u64 = 1 << 57;
    if !is_anonymous(&addresses) {
        return None;
    }
    // Opened anew: that of a forked process would tell of its parent.
    let file = std::fs::File::open("/proc/self/pagemap").ok()?;
    let (first, end) = (addresses.start / PAGE, addresses.end.div_ceil(PAGE));
    let mut flags = Vec::with_capacity((end - first) as usize);
    let mut entries = vec![0; 8 << 12];
    while (flags.len() as u64) < end - first {
        let next = first + flags.len() as u64;
        let len = (8 * (end - next)).min(entries.len() as u64) as usize;
        file.read_exact_at(&mut entries[..len], 8 * next).ok()?;
        let of = |entry: &[u8]| {
            let entry = u64::from_ne_bytes(entry.try_into().unwrap_or([0xff; 8]));
            entry & (PRESENT | SWAPPED | PROTECTED) == 0
        };
        flags.extend(entries[..len].chunks_exact(8).map(of));
    }
    Some(flags)
}

/// Whether a private mapping without a file has all of these addresses.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_anonymous(addresses: &Range<u64>) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let mut at = addresses.start;
    for line in maps.lines() {
        // "from-to permissions offset device inode name"
        let mut words = line.split_ascii_whitespace();
        let mut bounds = words.next().into_iter().flat_map(|bounds| bounds.split('-'));
        let mut bound = || bounds.next().and_then(|bound| u64::from_str_radix(bound, 16).ok());
        let (Some(from), Some(to)) = (bound(), bound()) else { continue };
        if !(from..to).contains(&at) {
            continue;
        }
        let is_private = words.next().is_some_and(|permissions| permissions.ends_with('p'));
        if !is_private || words.nth(2) != Some("0") {
            return false;
        }
        at = to;
        if at >= addresses.end {
            return true;
        }
    }
    false
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
impl Untouched {
    /// As it is now.
    pub(super) fn of(_: GuestSlice) -> Self {
        Self { flags: Vec::new() }
    }

    /// Whether a page of the range, or a part of one, is untouched.
    pub(super) fn has(&self, _: &Range<u64>) -> bool {
        !self.flags.is_empty()
    }
}
