//! Notes after a successful run on possible surprises: an interpreted kernel, values that no invocation computed, bytes
//! that are not shown, or no output at all.

use spelter::{BindingKind, Program};

use super::bind::{BoundBuffer, BoundResources, info_of};
use super::report::{ShownResource, find};
use crate::args::RunArgs;
use crate::slot::named;

/// The notes of a run, for standard error.
pub(super) fn of(program: &Program, bound: &BoundResources, args: &RunArgs) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = program.fallback() {
        notes.push(format!("the kernel was interpreted, which is slow: it has no machine code ({reason})"));
    }
    if args.groups(program.workgroup_size()).contains(&0) {
        notes.push(format!("no invocation ran: {} has a 0", args.size_option()));
    } else if args.out.is_empty()
        && args.save.is_empty()
        && args.trace.is_none()
        && !args.time
        && !args.json
        && args.check.check.is_none()
    {
        notes.push("the kernel ran; --out, --save, --time or --json show what it did".to_owned());
    }
    notes.extend(beyond(program, bound, args));
    notes.extend(saved_beyond(program, bound, args));
    notes.extend(bound.buffers.iter().filter_map(|bound| empty(program, bound)));
    for print in args.out.iter().filter(|print| print.range.is_none()) {
        if let Ok(found) = find(bound, "--out", (print.slot, &print.name))
            && let (name, size) = (named(found.name(), print.name.as_deref()), found.bytes())
            && let rest = size % print.element.stride()
            && rest != 0
        {
            notes.push(format!("--out {name}: the last {rest} of {size} bytes are not a whole element and not shown"));
        }
    }
    notes
}

/// The note on a buffer without room for one element of its array: the array is empty, which is seldom intended.
fn empty(program: &Program, BoundBuffer { slot, name, buffer, .. }: &BoundBuffer) -> Option<String> {
    let info = info_of(program.bindings(), *slot)?;
    let (size, start, element) = (buffer.size(), u64::from(info.min_bytes), u64::from(info.element_bytes));
    (element > 0 && size < start + element).then(|| {
        let before = if start > 0 { format!(" after the first {start} bytes") } else { String::new() };
        format!("{name}: {size} bytes have no room for one element, of {element} bytes{before}: the array is empty")
    })
}

/// The note on a file with more elements or texels than the invocations of the one default workgroup.
fn saved_beyond(program: &Program, bound: &BoundResources, args: &RunArgs) -> Option<String> {
    let size = program.workgroup_size();
    let ran: u64 = size.into_iter().map(u64::from).product();
    if args.states_groups() || ran == 1 {
        return None;
    }
    args.save.iter().find_map(|save| {
        let found = find(bound, "--save", (save.slot, &save.name)).ok()?;
        let (name, info) = (named(found.name(), save.name.as_deref()), info_of(program.bindings(), save.slot)?);
        let (what, each) = match found {
            ShownResource::Image(image) => ("texels", u64::from(image.format.bytes())),
            ShownResource::Buffer(_) => ("elements", u64::from(info.element_bytes)),
        };
        let saved = found.bytes().saturating_sub(info.min_bytes.into()).checked_div(each)?;
        let is_result = !info.read_only && info.kind != BindingKind::UniformBuffer;
        (is_result && saved > ran).then(|| {
            let [x, y, z] = size;
            let problem = format!("{saved} {what}, but only one workgroup of {x}x{y}x{z} invocations ran");
            format!("--save {name}: {problem}: --invocations or --groups starts more")
        })
    })
}

/// The note on values beyond the invocations of the one default workgroup. There is none if `--groups` is given, or for
/// a workgroup of one invocation: then the user knows that an invocation may compute many values, as in reductions.
fn beyond(program: &Program, bound: &BoundResources, args: &RunArgs) -> Option<String> {
    let ran: u64 = program.workgroup_size().into_iter().map(u64::from).product();
    if args.states_groups() || ran == 1 {
        return None;
    }
    args.out.iter().find_map(|print| {
        let found = find(bound, "--out", (print.slot, &print.name)).ok()?;
        let (name, info) = (named(found.name(), print.name.as_deref()), info_of(program.bindings(), print.slot)?);
        let shown = print.range.map_or(found.bytes() / print.element.stride(), |(_, last)| last);
        let is_result = info.kind == BindingKind::StorageBuffer && !info.read_only;
        (is_result && shown > ran).then(|| {
            let problem = format!("elements up to {shown}, but only one workgroup of {ran} invocations ran");
            format!("--out {name}: {problem}: --groups starts more")
        })
    })
}
