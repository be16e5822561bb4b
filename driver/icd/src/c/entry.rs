//! Entry points: C functions for Vulkan's prototypes that check their parameters, catch panics, and report errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ash::vk;

use super::emergency;
use crate::current_call;
use crate::error::Error;
use crate::findings;
use crate::message;

/// A function of any signature; the loader casts it back.
pub(crate) type Function = unsafe extern "system" fn();

/// A Vulkan command and the function that implements it.
#[derive(Clone, Copy)]
pub(crate) struct EntryPoint {
    /// The name with `PFN_` before it.
    pub(crate) pfn: &'static str,
    /// The type of the first parameter, which decides the level of the command; empty if there is none.
    pub(crate) of: &'static str,
    pub(crate) function: Function,
}

impl EntryPoint {
    /// The command's name.
    pub(crate) fn name(&self) -> &'static str {
        self.pfn.trim_start_matches("PFN_")
    }
}

/// A parameter of a command, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) call: &'static str,
    /// In `ash`'s spelling: `p_create_info`.
    pub(crate) parameter: &'static str,
}

impl Place {
    /// The error that the parameter is invalid.
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

/// Safe parameter types that are made from raw ones of type `R`.
pub(crate) trait FromC<R>: Sized {
    /// Converts a parameter, with the checks that are possible.
    ///
    /// # Safety
    ///
    /// `raw` keeps the contract of [`crate::c`], for as long as the call lasts.
    unsafe fn from_c(raw: R, place: Place) -> Result<Self, Error>;
}

/// Numbers, flags, and handles that may be stale are passed unchanged.
impl<T> FromC<T> for T {
    unsafe fn from_c(raw: T, _: Place) -> Result<Self, Error> {
        Ok(raw)
    }
}

/// Return types of C functions, with the value that reports a failure.
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

/// Results of command functions that convert to the return type of their C function.
pub(crate) trait IntoCResult<R> {
    fn into_c(self) -> R;
}

impl<R> IntoCResult<R> for R {
    fn into_c(self) -> R {
        self
    }
}

/// Enumerations by commands that return nothing.
impl IntoCResult<()> for vk::Result {
    fn into_c(self) {}
}

impl IntoCResult<vk::Result> for () {
    fn into_c(self) -> vk::Result {
        vk::Result::SUCCESS
    }
}

/// Whether a call creates something, so that it may fail for lack of memory. Others must work: they free memory, or
/// wait.
fn creates(call: &str) -> bool {
    ["vkCreate", "vkAllocate", "vkBegin", "vkEnd", "vkQueueSubmit"].iter().any(|prefix| call.starts_with(prefix))
}

/// The error that the host has no memory left for the small allocations of calls.
pub(crate) fn exhausted() -> Error {
    let what = "the host ran out of memory before, and the reserve for calls is still empty".to_owned();
    Error::Code(vk::Result::ERROR_OUT_OF_HOST_MEMORY, what)
}

/// Runs a call: catches panics, and reports errors with messages.
pub(crate) fn guard<R: Failed, T: IntoCResult<R>>(call: &'static str, body: impl FnOnce() -> Result<T, Error>) -> R {
    let call = call.trim_start_matches("PFN_");
    let _call = current_call::Call::begin();
    // The reserve is empty before the first call, and after memory ran out.
    let body = || {
        if emergency::is_reserved() || !creates(call) || emergency::replenish() { body() } else { Err(exhausted()) }
    };
    let result = catch_unwind(AssertUnwindSafe(body));
    findings::after(call);
    current_call::take_violations().iter().for_each(|fault| message::error(call, fault));
    match result {
        Ok(Ok(value)) => value.into_c(),
        Ok(Err(error)) => {
            message::error(call, &error);
            R::failed(error.code())
        }
        Err(panic) => {
            let panic_message =
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let error = Error::Internal(panic_message.unwrap_or("a panic").to_owned());
            message::error(call, &error);
            R::failed(error.code())
        }
    }
}

/// A table of Vulkan prototypes, in the spelling of `ash` and checked against its types, each with the function that
/// implements it: the types of its parameters are made [`FromC`] the raw ones.
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
            // SAFETY: function pointers have one size, and this one is cast back before it is called.
            let function = unsafe { std::mem::transmute::<vk::$pfn, $crate::c::Function>(typed) };
            $crate::c::EntryPoint {
                pfn: stringify!($pfn),
                of: $crate::c::entry::entry_points!(@first $($ty),*),
                function,
            }
        }),*];
    };
    (@first) => { "" };
    (@first $ty:ty $(, $rest:ty)*) => { stringify!($ty) };
}

/// A table of prototypes of commands that always fail.
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
