//! Where a text has a type that is no declaration: naga keeps no place of types such as `array<f32>`.

use naga::{Function, Handle, Module, Span, Type, TypeInner};

use super::invalid::{head_of, types_of};

/// The first declaration that has the type, or value that is of it.
pub(super) fn place_of(ty: Handle<Type>, module: &Module, source: &str) -> Option<Span> {
    let with = types_with(ty, module);
    let structures = with.iter().map(|&ty| module.types.get_span(ty));
    let variables = module.global_variables.iter().filter(|(_, variable)| with.contains(&variable.ty));
    let variables = variables.map(|(variable, _)| module.global_variables.get_span(variable));
    let declared = structures.chain(variables).find(Span::is_defined);
    declared.or_else(|| {
        let functions = module.functions.iter().map(|(handle, function)| (module.functions.get_span(handle), function));
        let entries = module.entry_points.iter().map(|entry| (Span::UNDEFINED, &entry.function));
        functions.chain(entries).find_map(|(span, function)| {
            in_function(ty, &with, module, function).or_else(|| {
                let is_parameter = function.arguments.iter().any(|argument| with.contains(&argument.ty));
                let is_result = function.result.as_ref().is_some_and(|result| with.contains(&result.ty));
                let head = head_of(span, "naga::ir::Function", source);
                ((is_parameter || is_result) && head.is_defined()).then_some(head)
            })
        })
    })
}

/// The type, and those that have it as a part: a type comes after its parts.
fn types_with(ty: Handle<Type>, module: &Module) -> Vec<Handle<Type>> {
    let mut with = vec![ty];
    for (handle, data) in module.types.iter() {
        let has = match &data.inner {
            TypeInner::Array { base, .. } | TypeInner::BindingArray { base, .. } | TypeInner::Pointer { base, .. } => {
                with.contains(base)
            }
            TypeInner::Struct { members, .. } => members.iter().any(|member| with.contains(&member.ty)),
            _ => false,
        };
        if has {
            with.push(handle);
        }
    }
    with
}

fn in_function(ty: Handle<Type>, with: &[Handle<Type>], module: &Module, function: &Function) -> Option<Span> {
    let locals = function.local_variables.iter().filter(|(_, local)| with.contains(&local.ty));
    let mut locals = locals.map(|(local, _)| function.local_variables.get_span(local));
    locals.find(Span::is_defined).or_else(|| {
        let types = types_of(module, function);
        let inner = &module.types[ty].inner;
        let is_of_it = |index: usize| {
            let of = types.get(index).and_then(Option::as_ref);
            of.is_some_and(|of| of.inner_with(&module.types) == inner)
        };
        let values = function.expressions.iter().filter(|(value, _)| is_of_it(value.index()));
        values.map(|(value, _)| function.expressions.get_span(value)).find(Span::is_defined)
    })
}
