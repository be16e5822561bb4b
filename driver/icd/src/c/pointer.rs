//! Safe types for pointer parameters: structures, arrays and counts that a call reads or writes.
//!
//! # Safety
//!
//! Under the contract of [`crate::c`], a pointer that is not null is valid, aligned and, for reads, initialised, as
//! long as the call lasts; lengths are those that the registry names. What is written may not be initialised before, so
//! no reference is made to it. Each type is made by `unsafe` functions only.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Deref;

use ash::vk::{BaseInStructure, StructureType, TaggedStructure};

use super::entry::{FromC, Place, camel};
use crate::current_call;
use crate::error::Error;

/// A structure that the call reads.
pub(crate) struct In<'a, T>(&'a T);

impl<T> Clone for In<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<'_, T> {}

impl<T> Deref for In<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<'a, T> In<'a, T> {
    /// The structure at an address that is not null.
    ///
    /// # Safety
    ///
    /// `raw` keeps the contract of [`crate::c`] for `'a`.
    pub(super) unsafe fn new(raw: *const T) -> Option<Self> {
        // SAFETY: by this function's contract.
        unsafe { raw.as_ref() }.map(In)
    }

    /// A structure that is a field of one of the caller's structures.
    pub(super) fn of(inner: &'a T) -> Self {
        Self(inner)
    }

    pub(super) fn get(self) -> &'a T {
        self.0
    }
}

impl<'a, T: TaggedStructure> FromC<*const T> for In<'a, T> {
    unsafe fn from_c(raw: *const T, place: Place) -> Result<Self, Error> {
        // SAFETY: by the trait's contract.
        unsafe { Self::new(raw) }.map(Self::checked).ok_or_else(|| place.invalid("is null"))
    }
}

impl<'a, T: TaggedStructure> FromC<*const T> for Option<In<'a, T>> {
    unsafe fn from_c(raw: *const T, _: Place) -> Result<Self, Error> {
        // SAFETY: by the trait's contract.
        Ok(unsafe { In::new(raw) }.map(In::checked))
    }
}

impl<T: TaggedStructure> In<'_, T> {
    /// Reports a wrong `sType`. The structure is still used as the type of the prototype.
    fn checked(self) -> Self {
        // SAFETY: `TaggedStructure` is the promise that the type begins so.
        let head = unsafe { In::new(std::ptr::from_ref(self.0).cast::<BaseInStructure<'_>>()) };
        if let Some(head) = head {
            check_tag::<T>(head.s_type);
        }
        self
    }
}

/// Reports an `sType` that is not that of the structure's type.
pub(super) fn check_tag<T: TaggedStructure>(tag: StructureType) {
    if tag != T::STRUCTURE_TYPE {
        let name = structure_name::<T>();
        let problem = format!("sType is {tag:?}, and not {:?}", T::STRUCTURE_TYPE);
        current_call::add_violation(Error::misuse(name.as_str(), problem, format!("VUID-{name}-sType-sType")));
    }
}

/// The Vulkan name of a structure type of `ash`.
fn structure_name<T>() -> String {
    let name = std::any::type_name::<T>().split('<').next().unwrap_or_default();
    format!("Vk{}", name.rsplit(':').next().unwrap_or_default())
}

/// A structure that the call reads and that has no `sType`.
pub(crate) struct Plain<'a, T>(pub(crate) In<'a, T>);

impl<T> Deref for Plain<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'a, T> FromC<*const T> for Plain<'a, T> {
    unsafe fn from_c(raw: *const T, place: Place) -> Result<Self, Error> {
        // SAFETY: by the trait's contract.
        unsafe { In::new(raw) }.map(Self).ok_or_else(|| place.invalid("is null"))
    }
}

/// An array that the call reads. Structures in it may have chains: [`Slice::each`].
pub(crate) struct Slice<'a, T>(&'a [T]);

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

impl<'a, T> Slice<'a, T> {
    /// As [`Slice::new`], and reports a null pointer with a length that is not zero.
    ///
    /// # Safety
    ///
    /// As of [`Slice::new`].
    pub(super) unsafe fn wanted(raw: *const T, len: usize, (structure, field): (&str, &str)) -> Self {
        if raw.is_null() && len > 0 {
            // As `vk::Name<'a>`.
            let name = structure.split('<').next().unwrap_or_default().rsplit(':').next().unwrap_or_default().trim();
            let (at, field) = (format!("Vk{name}"), camel(field));
            let vuid = format!("VUID-{at}-{field}-parameter");
            current_call::add_violation(Error::misuse(
                at,
                format!("{field} is null, and should be {len} elements"),
                vuid,
            ));
        }
        // SAFETY: by this function's contract.
        unsafe { Self::new(raw, len) }
    }

    /// `len` elements; none if the pointer is null.
    ///
    /// # Safety
    ///
    /// `raw` keeps the contract of [`crate::c`] for `'a`, and `len` is its length.
    pub(super) unsafe fn new(raw: *const T, len: usize) -> Self {
        if raw.is_null() || len == 0 {
            return Self(&[]);
        }
        // SAFETY: by this function's contract.
        Self(unsafe { std::slice::from_raw_parts(raw, len) })
    }

    /// The elements as plain values.
    pub(crate) fn get(self) -> &'a [T] {
        self.0
    }

    /// The elements as structures without `sType`.
    pub(crate) fn each_plain(self) -> impl DoubleEndedIterator<Item = In<'a, T>> + ExactSizeIterator {
        self.0.iter().map(In)
    }
}

impl<'a, T: TaggedStructure> Slice<'a, T> {
    /// The elements as structures with `pNext` chains.
    pub(crate) fn each(self) -> impl DoubleEndedIterator<Item = In<'a, T>> + ExactSizeIterator {
        self.0.iter().map(|one| In(one).checked())
    }
}

impl<T> Deref for Slice<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

/// An array whose length is another parameter.
pub(crate) struct Many<'a, T>(*const T, Place, PhantomData<&'a T>);

impl<'a, T> Many<'a, T> {
    /// The elements; `len` is the parameter that the registry names. None if the array is null.
    pub(crate) fn of(self, len: usize) -> Slice<'a, T> {
        if self.0.is_null() && len > 0 {
            current_call::add_violation(self.1.invalid(&format!("is null, and should be {len} elements")));
        }
        // SAFETY: by the contract of `crate::c`, of which the length is the chapter's part.
        unsafe { Slice::new(self.0, len) }
    }
}

impl<'a> Many<'a, c_void> {
    /// The array as bytes.
    pub(crate) fn bytes(self, len: usize) -> &'a [u8] {
        Many::<u8>(self.0.cast(), self.1, PhantomData).of(len).get()
    }
}

impl<'a, T> FromC<*const T> for Many<'a, T> {
    unsafe fn from_c(raw: *const T, place: Place) -> Result<Self, Error> {
        Ok(Self(raw, place, PhantomData))
    }
}

/// A place for one value that the call writes.
pub(crate) struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Out<'_, T> {
    pub(crate) fn put(&mut self, value: T) {
        // SAFETY: by the contract of `crate::c`; what was there is plain data or uninitialised, and has no destructor.
        unsafe { self.0.write(value) }
    }
}

impl<'a, T> FromC<*mut T> for Out<'a, T> {
    unsafe fn from_c(raw: *mut T, place: Place) -> Result<Self, Error> {
        if raw.is_null() { Err(place.invalid("is null")) } else { Ok(Self(raw, PhantomData)) }
    }
}

/// A value that the call reads and writes.
pub(crate) struct InOut<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T: Copy> InOut<'_, T> {
    pub(crate) fn get(&self) -> T {
        // SAFETY: by the contract of `crate::c`.
        unsafe { self.0.read() }
    }

    pub(crate) fn put(&mut self, value: T) {
        // SAFETY: by the contract of `crate::c`.
        unsafe { self.0.write(value) }
    }
}

impl<'a, T> FromC<*mut T> for InOut<'a, T> {
    unsafe fn from_c(raw: *mut T, place: Place) -> Result<Self, Error> {
        if raw.is_null() { Err(place.invalid("is null")) } else { Ok(Self(raw, PhantomData)) }
    }
}

/// A place for an array that the call writes, which may be null; its length is another parameter.
pub(crate) struct OutMany<'a, T>(pub(super) *mut T, PhantomData<&'a mut T>);

impl<'a, T> OutMany<'a, T> {
    /// Whether the pointer is null: the caller only asks for the count.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes the first `len` values that `values` has; `len` is at most the length that the registry names.
    pub(crate) fn put(self, len: usize, values: impl IntoIterator<Item = T>) {
        if self.0.is_null() {
            return;
        }
        for (index, value) in values.into_iter().take(len).enumerate() {
            // SAFETY: by the contract of `crate::c`, of which the length is the chapter's part.
            let at = unsafe { self.0.add(index) };
            // SAFETY: as above; what was there has no destructor.
            unsafe { at.write(value) };
        }
    }
}

impl OutMany<'_, c_void> {
    /// Writes bytes from byte `offset` on; they are inside of the length that the registry names.
    pub(crate) fn put_bytes_at(&self, offset: usize, bytes: &[u8]) {
        if !self.0.is_null() {
            let at = self.0.cast::<u8>().wrapping_add(offset);
            OutMany(at, PhantomData).put(bytes.len(), bytes.iter().copied());
        }
    }

    /// Writes bytes, at most `len`.
    pub(crate) fn put_bytes(self, len: usize, bytes: &[u8]) {
        OutMany::<u8>(self.0.cast(), PhantomData).put(len, bytes.iter().copied());
    }
}

impl<'a, T> FromC<*mut T> for OutMany<'a, T> {
    unsafe fn from_c(raw: *mut T, _: Place) -> Result<Self, Error> {
        Ok(Self(raw, PhantomData))
    }
}
