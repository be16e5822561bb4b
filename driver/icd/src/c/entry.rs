//! The one door: a prototype of Vulkan's becomes a C function that checks its parameters, catches panics, and reports errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ash::vk;

use super::emergency;
use crate::context;
use crate::error::Error;
use crate::message;

/// A function of any signature; the loader casts it back.
pub(crate) type Function = unsafe extern "system" fn();

/// A Vulkan command and the function behind it.
#[derive(Clone, Copy)]
pub(crate) struct EntryPoint {
    /// The name with `PFN_` before it.
    pub(crate) pfn: &'static str,
    /// The type of its first parameter, which says whose command it is; empty if there is none.
    pub(crate) of: &'static str,
    pub(crate) function: Function,
}

impl EntryPoint {
    /// The command's name.
    pub(crate) fn name(&self) -> &'static str {
        self.pfn.trim_start_matches("PFN_")
    }
}

/// Where a parameter stands, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) call: &'static str,
    /// In `ash`'s spelling: `p_create_info`.
    pub(crate) parameter: &'static str,
}

impl Place {
    /// The parameter breaks the rule that it must be valid.
    pub(crate) fn invalid(self, problem: &str) -> Error {
        let call = self.call.trim_start_matches("PFN_");
        let parameter = camel(self.parameter);
        Error::misuse(call, format!("{parameter} {problem}"), format!("VUID-{call}-{parameter}-parameter"))
    }
}

/// `p_create_info` → `pCreateInfo`.
pub(super) fn camel(name: &str) -> String {
    let mut upper = false;
    name.chars()
        .filter_map(|c| {
            if c == '_' {
                upper = true;
                None
            } else if std::mem::take(&mut upper) {
                Some(c.to_ascii_uppercase())
            } else {
                Some(c)
            }
        })
        .collect()
}

/// What a parameter of a chapter's function is made of.
pub(crate) trait FromC<R>: Sized {
    /// Checks what can be checked.
    ///
    /// # Safety
    ///
    /// `raw` keeps the contract of [`crate::c`], for as long as the call lasts.
    unsafe fn from_c(raw: R, place: Place) -> Result<Self, Error>;
}

/// Numbers, flags, and handles that may be stale, as they are.
impl<T> FromC<T> for T {
    unsafe fn from_c(raw: T, _: Place) -> Result<Self, Error> {
        Ok(raw)
    }
}

/// What a C function returns when it fails.
pub(crate) trait Failed {
    fn failed(code: vk::Result) -> Self;
}

impl Failed for vk::Result {
    fn failed(code: vk::Result) -> Self {
        code
    }
}

macro_rules! failed_is_default {
    ($($ty:ty),*) => { $(impl Failed for $ty {
        fn failed(_: vk::Result) -> Self {
            Self::default()
        }
    })* };
}

failed_is_default!((), u32, u64, vk::PFN_vkVoidFunction);

/// How a chapter's result is told in C.
pub(crate) trait Answer<R> {
    fn answer(self) -> R;
}

impl<R> Answer<R> for R {
    fn answer(self) -> R {
        self
    }
}

/// A list that is told without a result.
impl Answer<()> for vk::Result {
    fn answer(self) {}
}

impl Answer<vk::Result> for () {
    fn answer(self) -> vk::Result {
        vk::Result::SUCCESS
    }
}

/// Whether a call makes something, and may be refused for want of memory. Others must go on: they give memory back, or wait.
fn makes(call: &str) -> bool {
    ["vkCreate", "vkAllocate", "vkBegin", "vkEnd", "vkQueueSubmit"].iter().any(|prefix| call.starts_with(prefix))
}

/// The host has no memory left, not even for a call's small allocations.
pub(crate) fn exhausted() -> Error {
    let what = "the host's memory ran out before, and there is none yet for what calls need".to_owned();
    Error::Code(vk::Result::ERROR_OUT_OF_HOST_MEMORY, what)
}

/// Runs a call: no panic leaves it, and no error without a message.
pub(crate) fn guard<R: Failed, T: Answer<R>>(call: &'static str, body: impl FnOnce() -> Result<T, Error>) -> R {
    let call = call.trim_start_matches("PFN_");
    let _context = context::Call::begin();
    // Before the first call, and where memory ran out.
    let body =
        || if emergency::is_set_aside() || !makes(call) || emergency::replenish() { body() } else { Err(exhausted()) };
    let result = catch_unwind(AssertUnwindSafe(body));
    context::take_faults().iter().for_each(|fault| message::error(call, fault));
    match result {
        Ok(Ok(value)) => value.answer(),
        Ok(Err(error)) => {
            message::error(call, &error);
            R::failed(error.code())
        }
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let error = Error::Ours(said.unwrap_or("a panic").to_owned());
            message::error(call, &error);
            R::failed(error.code())
        }
    }
}

/// Vulkan's prototypes, in `ash`'s spelling and checked against its types, each with the function that does the work: its
/// parameters are of types that are made [`FromC`] the raw ones.
macro_rules! entry_points {
    ($($pfn:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? => $body:tt $(:: $rest:tt)*;)*) => {
        pub(crate) const ENTRY_POINTS: &[$crate::c::EntryPoint] = &[$({
            unsafe extern "system" fn entry($($arg: $ty),*) $(-> $ret)? {
                const CALL: &str = stringify!($pfn);
                $crate::c::entry::guard(CALL, move || {
                    $(
                        let place = $crate::c::entry::Place { call: CALL, parameter: stringify!($arg) };
                        // SAFETY: an entry point's caller keeps Vulkan's valid usage, which is the contract of `c`.
                        let $arg = unsafe { $crate::c::entry::FromC::from_c($arg, place) }?;
                    )*
                    $body$(:: $rest)*($($arg),*)
                })
            }
            let typed: vk::$pfn = entry;
            // SAFETY: function pointers are of one size, and whoever gets this one casts it back before calling it.
            let function = unsafe { std::mem::transmute::<vk::$pfn, $crate::c::Function>(typed) };
            $crate::c::EntryPoint { pfn: stringify!($pfn), of: $crate::c::entry::entry_points!(@first $($ty),*), function }
        }),*];
    };
    (@first) => { "" };
    (@first $ty:ty $(, $rest:ty)*) => { stringify!($ty) };
}

/// Prototypes of commands that are refused, whatever their parameters.
macro_rules! refused_points {
    ($($pfn:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? => $refuse:path;)*) => {
        $crate::c::entry::entry_points! {
            $($pfn($($arg: $ty),*) $(-> $ret)? => (|$($arg: $ty),*| {
                $refuse(stringify!($pfn), ($($arg,)*).0)
            });)*
        }
    };
}

pub(crate) use {entry_points, refused_points};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_results() {
        let code: vk::Result = guard("vkTest", || -> Result<(), Error> { panic!("oh") });
        assert_eq!(code, vk::Result::ERROR_UNKNOWN);
        let handle: u64 = guard("vkTest", || -> Result<u64, Error> { panic!("oh") });
        assert_eq!(handle, 0);
    }

    #[test]
    fn parameters_are_named_as_in_c() {
        assert_eq!(camel("pp_enabled_layer_names"), "ppEnabledLayerNames");
        assert_eq!(camel("device"), "device");
    }
}
