//! How overrides are named, and errors about their values, with the place of what they are about.

use naga::back::PipelineConstants;
use naga::{Handle, Override};

use super::errors::{refused, refused_at};
use super::{WgslModule, fault, size};
use crate::front::Error;

/// Bytes of a text in which the place of an expression that cannot be evaluated is sought, at most.
const MAX_SEARCHED: usize = 1 << 17;

/// The number of an override in maps of values: its `@id`, which is at most 65535, or one above that.
pub(super) fn key(place: Handle<Override>, constant: &Override) -> u32 {
    let above = || u32::try_from(place.index()).unwrap_or(u32::MAX).saturating_add(1 << 16);
    constant.id.map_or_else(above, u32::from)
}

/// naga's name of an override: its `@id` as a text, or its name (WebGPU, "pipeline-overridable constant identifier
/// string"). One without either cannot be set.
pub(super) fn name(constant: &Override) -> Option<String> {
    constant.id.map(|id| id.to_string()).or_else(|| constant.name.clone())
}

impl WgslModule {
    /// The error for an expression that cannot be evaluated with the values of the overrides.
    pub(super) fn fails(&self, entry: &str, constants: &PipelineConstants, message: &str) -> Error {
        // The search takes as long as some evaluations.
        let short = self.source.len() <= MAX_SEARCHED;
        let place = || fault::place((&self.module, &self.info), entry, constants, message);
        match short.then(place).flatten().or_else(|| size::function(entry, &self.source)) {
            Some(at) => refused_at(&format!("with the values of overrides: {message}"), at, &self.source),
            None => refused(message),
        }
    }

    /// An error if an override gets an infinity or a NaN.
    pub(super) fn check_finite(&self, constants: &PipelineConstants) -> Result<(), Error> {
        for (handle, constant) in self.module.overrides.iter() {
            let value = name(constant).and_then(|name| constants.get(&name).copied());
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                let name = constant.name.as_deref().unwrap_or_default();
                let at = self.module.overrides.get_span(handle).to_range().map_or(0, |range| range.start);
                let id = constant.id.map_or(String::new(), |id| format!(", specialization constant {id},"));
                let problem = format!("WGSL has no infinity and no NaN: the override `{name}`{id} cannot be {value}");
                return Err(refused_at(&problem, at, &self.source));
            }
        }
        Ok(())
    }

    /// The error for an override, by number or name, with neither a default nor a value.
    pub(super) fn has_no_value(&self, key: &str) -> Error {
        let (handle, data) = self.module.overrides.iter().find(|(_, data)| name(data).as_deref() == Some(key)).unzip();
        let name = data.and_then(|data| data.name.as_deref()).unwrap_or(key);
        let help = match data.and_then(|data| data.id) {
            Some(id) => format!("set specialization constant {id}, or give it a default"),
            None => "set it by its name, or give it a default".to_owned(),
        };
        let at =
            handle.and_then(|handle| self.module.overrides.get_span(handle).to_range()).map_or(0, |range| range.start);
        refused_at(&format!("the override `{name}` has no value: {help}"), at, &self.source)
    }
}
