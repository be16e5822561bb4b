//! Sentences for naga's errors of types, and of what an entry point is passed.

use naga::common::wgsl::{TryToWgsl as _, TypeContext as _};
use naga::proc::TypeResolution;
use naga::valid::{TypeError, VaryingError, WidthError};
use naga::{BuiltIn, Handle, Module, Type, TypeInner};

/// A type as WGSL writes it.
pub(super) fn type_text(ty: Handle<Type>, module: &Module) -> String {
    // naga has numbers without a type in braces.
    module.to_ctx().type_to_string(ty).replace(['{', '}'], "")
}

/// The same of a type that is in no table.
pub(super) fn inner_text(ty: &TypeInner, module: &Module) -> String {
    module.to_ctx().type_resolution_to_string(&TypeResolution::Value(ty.clone())).replace(['{', '}'], "")
}

/// Why a type is invalid.
pub(super) fn of_type(error: &TypeError, module: &Module) -> Option<String> {
    let text = |ty: &Handle<Type>| type_text(*ty, module);
    Some(match error {
        TypeError::InvalidData(part) => {
            format!("it has a part of type {}, which is no data: it can be a variable only", text(part))
        }
        TypeError::InvalidArrayBaseType(element) => format!("an array cannot have elements of type {}", text(element)),
        TypeError::InvalidPointerBase(to) => format!("there are no pointers to values of type {}", text(to)),
        TypeError::InvalidPointerToUnsized { base, .. } => {
            format!("{} has no size: pointers to it are pointers to storage buffers", text(base))
        }
        TypeError::InvalidDynamicArray(member, ty) => {
            format!("its member `{member}` ({}) has no size, which only an array at the end can be without", text(ty))
        }
        TypeError::InvalidArraySize(_) => "an array has at least one element".to_owned(),
        TypeError::EmptyStruct => "it has no members".to_owned(),
        TypeError::MatrixElementNotFloat => "the numbers of a matrix are of type f32 or f16".to_owned(),
        TypeError::InvalidAtomicWidth(..) => "there are no atomics of this type".to_owned(),
        TypeError::UnsupportedImageType { .. } => "there are no images of this kind".to_owned(),
        TypeError::WidthError(WidthError::Abstract) => {
            "its numbers have no type such as f32 or i32, and what takes the value gives them none".to_owned()
        }
        TypeError::WidthError(WidthError::MissingCapability { name, .. }) => format!("{name} is not supported"),
        TypeError::InvalidBlendSrc(error) => return of_passed(error, module),
        _ => return None,
    })
}

/// Why a value cannot be passed to an entry point, or returned by one.
pub(super) fn of_passed(error: &VaryingError, module: &Module) -> Option<String> {
    let name = |builtin: BuiltIn| format!("`@builtin({})`", builtin.try_to_wgsl().unwrap_or("of another language"));
    Some(match error {
        VaryingError::InvalidBuiltInType(builtin, seen) => {
            let (name, seen) = (name(*builtin), inner_text(seen, module));
            match type_of(*builtin) {
                Some(ty) => format!("{name} is of type {ty}, not {seen}"),
                None => format!("{name} is not of type {seen}"),
            }
        }
        VaryingError::InvalidBuiltInStage(builtin) => format!("this kind of shader has no {}", name(*builtin)),
        VaryingError::DuplicateBuiltIn(builtin) => format!("{} is there twice", name(*builtin)),
        VaryingError::InvalidType(ty) | VaryingError::NotIOShareableType(ty) => {
            format!("an entry point cannot be passed values of type {}", type_text(*ty, module))
        }
        VaryingError::MissingBinding => "it has no `@builtin`, by which an entry point is passed values".to_owned(),
        VaryingError::MemberMissingBinding(index) => {
            format!("member {} of its structure has no `@builtin`, by which an entry point is passed values", index + 1)
        }
        _ => return None,
    })
}

/// The type of a value that compute shaders are passed.
fn type_of(builtin: BuiltIn) -> Option<&'static str> {
    Some(match builtin {
        BuiltIn::GlobalInvocationId | BuiltIn::LocalInvocationId | BuiltIn::WorkGroupId | BuiltIn::NumWorkGroups => {
            "vec3<u32>"
        }
        BuiltIn::LocalInvocationIndex
        | BuiltIn::NumSubgroups
        | BuiltIn::SubgroupId
        | BuiltIn::SubgroupSize
        | BuiltIn::SubgroupInvocationId => "u32",
        _ => return None,
    })
}
