//! Edits of a repair in the terms of the shader: its lines, and the functions of its language.

use spelter_memory_model::event::Class;
use spelter_memory_model::program::{Place, Program};
use spelter_memory_model::repair::{Edit, shared_barrier};
use spelter_shaders::ir::MemoryModel;

/// The edits as texts: "after line 12: workgroupBarrier()".
pub(in crate::litmus) fn edit_words(program: &Program, edits: &[Edit], language: MemoryModel) -> Vec<String> {
    let executed = |at| program.operations().find(|(place, _)| *place == at).map(|(_, operation)| operation.clone());
    let own = |edit: &Edit| one(program, edit, language);
    Edit::texts(edits, own, executed, &|place| name(program, place))
}

fn name(program: &Program, (thread, at): (usize, usize)) -> String {
    let name = || format!("{}:{}", program.threads[thread].name, at + 1);
    line(program.threads[thread].code[at].place).unwrap_or_else(name)
}

fn one(program: &Program, edit: &Edit, language: MemoryModel) -> String {
    let at = |place| name(program, place);
    let Edit::Barrier(first, second, class) = *edit else { return edit.text(&at) };
    let Some(place) = shared_barrier(program, first, second) else { return edit.text(&at) };
    let (side, access) = if place.after { ("after", first) } else { ("before", second) };
    format!("{side} {}: {}", at(access), barrier(language, class))
}

fn line(place: Place) -> Option<String> {
    (place.line > 0).then(|| format!("line {}", place.line))
}

/// The control barrier for a class, in the language.
fn barrier(language: MemoryModel, class: Class) -> String {
    let known = match (language, class) {
        (MemoryModel::Wgsl, Class::Workgroup) => "workgroupBarrier()",
        (MemoryModel::Wgsl, Class::Uniform) => "storageBarrier()",
        (MemoryModel::Wgsl, Class::Image) => "textureBarrier()",
        (MemoryModel::Glsl450, Class::Workgroup) => "barrier()",
        (MemoryModel::Glsl450, Class::Uniform) => "memoryBarrierBuffer() and barrier()",
        (MemoryModel::Glsl450, Class::Image) => "memoryBarrierImage() and barrier()",
        _ => {
            let semantics = "AcquireRelease|MakeAvailable|MakeVisible";
            return format!("OpControlBarrier Workgroup Workgroup {semantics}|{class:?}Memory");
        }
    };
    known.to_owned()
}
