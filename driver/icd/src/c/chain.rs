//! `pNext` chains: structures that extend others, found by their `sType`.
//!
//! # Safety
//!
//! Under the contract of [`crate::c`] every structure of a chain begins with `sType` and `pNext`, and its `sType` says
//! what it is; `TaggedStructure` is `ash`'s promise that a type begins so and has that `sType`. A cyclic chain would
//! hang: at most [`MAX_CHAIN_LENGTH`] structures are followed.

use std::marker::PhantomData;

use ash::vk::{BaseInStructure, BaseOutStructure, TaggedStructure};

use super::entry::{FromC, Place};
use super::pointer::{In, OutMany, check_tag};
use crate::error::Error;

/// More structures than any chain has.
const MAX_CHAIN_LENGTH: usize = 1024;

impl<'a, T: TaggedStructure> In<'a, T> {
    /// The structure of type `N` in the chain.
    pub(crate) fn next<N: TaggedStructure>(self) -> Option<In<'a, N>> {
        let mut at: *const BaseInStructure<'_> = std::ptr::from_ref(self.get()).cast();
        for _ in 0..MAX_CHAIN_LENGTH {
            // SAFETY: by the contract of `crate::c`: structures of a chain begin so.
            let head = unsafe { In::new(at) }?;
            if head.s_type == N::STRUCTURE_TYPE {
                // SAFETY: the tag says that it is an `N`.
                return unsafe { In::new(at.cast::<N>()) };
            }
            at = head.p_next;
        }
        None
    }
}

/// A structure that the call fills, with its `pNext` chain.
pub(crate) struct OutChain<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<'a, T: TaggedStructure> OutChain<'a, T> {
    /// A structure at an address that is not null. A wrong `sType` is reported.
    ///
    /// # Safety
    ///
    /// `raw` keeps the contract of [`crate::c`] for `'a`.
    unsafe fn new(raw: *mut T) -> Self {
        // SAFETY: by this function's contract; structures begin so.
        if let Some(head) = unsafe { raw.cast::<BaseOutStructure<'_>>().as_ref() } {
            check_tag::<T>(head.s_type);
        }
        Self(raw, PhantomData)
    }

    /// Fills the structure itself, as the type of the prototype. `sType` and `pNext` are preserved.
    pub(crate) fn head(&mut self, fill: impl FnOnce(&mut T)) {
        // SAFETY: by the contract of `crate::c` it is the call's alone, and the prototype says that it is a `T`.
        unsafe { fill_at(self.0.cast(), fill) };
    }

    /// Fills the structure of type `N`, if the chain has one. `sType` and `pNext` are preserved.
    pub(crate) fn fill<N: TaggedStructure>(&mut self, fill: impl FnOnce(&mut N)) {
        let mut at: *mut BaseOutStructure<'_> = self.0.cast();
        for _ in 0..MAX_CHAIN_LENGTH {
            // SAFETY: by the contract of `crate::c`: structures of a chain begin so, and are the call's alone.
            let Some(head) = (unsafe { at.as_mut() }) else { return };
            if head.s_type == N::STRUCTURE_TYPE {
                // SAFETY: the tag says that it is an `N`; `head` is used no more.
                return unsafe { fill_at(at, fill) };
            }
            at = head.p_next;
        }
    }
}

/// Fills a structure. `sType` and `pNext` are preserved.
///
/// # Safety
///
/// `at` is null or the address of an `N`, which begins with `sType` and `pNext` and is the call's alone.
unsafe fn fill_at<N>(at: *mut BaseOutStructure<'_>, fill: impl FnOnce(&mut N)) {
    // SAFETY: by this function's contract.
    let Some(head) = (unsafe { at.as_mut() }) else { return };
    let (tag, next) = (head.s_type, head.p_next);
    // SAFETY: as above; `head` is used no more.
    if let Some(found) = unsafe { at.cast::<N>().as_mut() } {
        fill(found);
    }
    // SAFETY: as above; `found` is used no more.
    if let Some(head) = unsafe { at.as_mut() } {
        (head.s_type, head.p_next) = (tag, next);
    }
}

impl<'a, T: TaggedStructure> FromC<*mut T> for OutChain<'a, T> {
    unsafe fn from_c(raw: *mut T, place: Place) -> Result<Self, Error> {
        if raw.is_null() {
            return Err(place.invalid("is null"));
        }
        // SAFETY: by the trait's contract.
        Ok(unsafe { Self::new(raw) })
    }
}

impl<'a, T: TaggedStructure> OutMany<'a, T> {
    /// The first `len` structures, with their chains; `len` is at most the length that the registry names.
    pub(crate) fn chains(self, len: usize) -> impl Iterator<Item = OutChain<'a, T>> {
        let first = self.0;
        let len = if first.is_null() { 0 } else { len };
        // SAFETY: by the contract of `crate::c`, of which the length is the chapter's part.
        let at = move |index| unsafe { first.add(index) };
        // SAFETY: as above.
        (0..len).map(move |index| unsafe { OutChain::new(at(index)) })
    }
}
