//! Errors about the values of overrides, with the place of what they are about.

use naga::back::PipelineConstants;

use super::{MAX_WITH_LINES, Module, fault, refused, refused_at, size};
use crate::front::Error;

impl Module {
    /// The error for an expression that cannot be evaluated with the values of the overrides.
    pub(super) fn fails(&self, entry: &str, constants: &PipelineConstants, message: &str) -> Error {
        // The search takes as long as some evaluations.
        let short = self.source.len() <= MAX_WITH_LINES;
        let place = || fault::place((&self.module, &self.info), entry, constants, message);
        match short.then(place).flatten().or_else(|| size::function(entry, &self.source)) {
            Some(at) => refused_at(&format!("with the values of overrides: {message}"), at, &self.source),
            None => refused(message),
        }
    }

    /// An error if an override gets an infinity or a NaN.
    pub(super) fn check_finite(&self, constants: &PipelineConstants) -> Result<(), Error> {
        for (place, constant) in self.module.overrides.iter() {
            let value = constant.id.and_then(|id| Some((id, *constants.get(&id.to_string())?)));
            if let Some((id, value)) = value.filter(|(_, value)| !value.is_finite()) {
                let name = constant.name.as_deref().unwrap_or_default();
                let at = self.module.overrides.get_span(place).to_range().map_or(0, |range| range.start);
                let problem = format!(
                    "WGSL has no infinity and no NaN: the override `{name}`, specialization constant {id}, \
                     cannot be {value}"
                );
                return Err(refused_at(&problem, at, &self.source));
            }
        }
        Ok(())
    }

    /// The error for an override, by number or name, with neither a default nor a value.
    pub(super) fn has_no_value(&self, key: &str) -> Error {
        let found = self.module.overrides.iter().find(|(_, data)| match data.id {
            Some(id) => id.to_string() == key,
            None => data.name.as_deref() == Some(key),
        });
        let (place, data) = found.unzip();
        let name = data.and_then(|data| data.name.as_deref()).unwrap_or(key);
        let help = match data.and_then(|data| data.id) {
            Some(id) => format!("set specialization constant {id}, or give it a default"),
            None => "give it a default; with an `@id` it can be set as a specialization constant".to_owned(),
        };
        let at =
            place.and_then(|place| self.module.overrides.get_span(place).to_range()).map_or(0, |range| range.start);
        refused_at(&format!("the override `{name}` has no value: {help}"), at, &self.source)
    }
}
