//! Looks up the names of variables in options: `--bind data=…` becomes `--bind 0.0=…`.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::shader::Shader;
use crate::slot::Slot;

/// Sets the slot of each place that is a name: option, name, slot. Without names the shader is not read.
pub(crate) fn look_up<'a>(
    shader: &Shader,
    places: impl Iterator<Item = (&'static str, &'a Option<String>, &'a mut Slot)>,
) -> Result<(), Failure> {
    let mut named = places.filter_map(|(option, name, slot)| Some((option, name.as_deref()?, slot))).peekable();
    if named.peek().is_none() {
        return Ok(());
    }
    let known = shader.module()?.binding_names();
    for (option, name, slot) in named {
        let mut found = known.iter().filter(|(.., known)| known == name);
        match (found.next(), found.next()) {
            (Some(&(group, binding, _)), None) => (slot.group, slot.binding) = (group, binding),
            (None, _) => {
                return Err(Failure::misuse(format!("{option} {name}: no variable has that name; {}", list(&known))));
            }
            (Some((a, b, _)), Some((c, d, _))) => {
                let problem = format!("several variables have that name, at {a}.{b} and {c}.{d}: use the numbers");
                return Err(Failure::misuse(format!("{option} {name}: {problem}")));
            }
        }
    }
    Ok(())
}

/// By group and binding, the elements that options name: one more than the highest.
pub(crate) fn elements(slots: impl Iterator<Item = Slot>) -> BTreeMap<(u32, u32), u32> {
    let mut counts = BTreeMap::new();
    for Slot { group, binding, element } in slots {
        let count: &mut u32 = counts.entry((group, binding)).or_default();
        *count = (*count).max(element.saturating_add(1));
    }
    counts
}

fn list(known: &[(u32, u32, String)]) -> String {
    let list: Vec<_> = known.iter().map(|(group, binding, name)| format!("{name} ({group}.{binding})")).collect();
    if list.is_empty() { "the shader has no names".to_owned() } else { format!("there are {}", list.join(", ")) }
}
