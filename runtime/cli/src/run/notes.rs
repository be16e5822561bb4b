//! What may surprise after a good run: a kernel that is slow, values that no invocation reached, bytes that are not shown, or that
//! nothing is.

use spelter::{BindingKind, Program};

use super::bind::{Bound, info_of};
use super::report::find;
use crate::args::RunArgs;

/// The notes of a run, for standard error.
pub(super) fn of(program: &Program, bound: &[Bound], args: &RunArgs) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = program.fallback() {
        notes.push(format!("the kernel was interpreted, which is slow: there is no machine code for it ({reason})"));
    }
    if args.groups().contains(&0) {
        notes.push("no invocation ran: --groups has a 0".to_owned());
    } else if args.out.is_empty() && args.save.is_empty() && args.trace.is_none() && !args.time && !args.json {
        notes.push("the kernel ran; --out, --save, --time or --json show what it did".to_owned());
    }
    notes.extend(beyond(program, bound, args));
    notes.extend(bound.iter().filter_map(|bound| empty(program, bound)));
    for print in args.out.iter().filter(|print| print.range.is_none()) {
        if let Ok(Bound { name, buffer, .. }) = find(bound, "--out", print.slot)
            && let rest = buffer.size() % print.scalar.bytes() as u64
            && rest != 0
        {
            let size = buffer.size();
            notes.push(format!("--out {name}: the last {rest} of {size} bytes are no whole element and not shown"));
        }
    }
    notes
}

/// A buffer that has no room for one element of the array in it: the kernel finds no elements, which is seldom what was meant.
fn empty(program: &Program, Bound { slot, name, buffer }: &Bound) -> Option<String> {
    let info = info_of(program, *slot)?;
    let (size, start, element) = (buffer.size(), u64::from(info.min_bytes), u64::from(info.element_bytes));
    (element > 0 && size < start + element).then(|| {
        let before = if start > 0 { format!(" behind the first {start} bytes") } else { String::new() };
        format!("{name}: {size} bytes have no room for one element, of {element} bytes{before}: the array is empty")
    })
}

/// More values are shown than invocations ran, because the number of workgroups was left out. Who gives it knows what a kernel does
/// with it (one invocation may see to many values, as in reductions), and so does who writes a kernel for one invocation.
fn beyond(program: &Program, bound: &[Bound], args: &RunArgs) -> Option<String> {
    let ran: u64 = program.workgroup_size().into_iter().map(u64::from).product();
    if args.groups.is_some() || ran == 1 {
        return None;
    }
    args.out.iter().find_map(|print| {
        let Bound { name, buffer, .. } = find(bound, "--out", print.slot).ok()?;
        let info = info_of(program, print.slot)?;
        let shown = print.range.map_or(buffer.size() / print.scalar.bytes() as u64, |(_, last)| last);
        let is_result = info.kind == BindingKind::StorageBuffer && !info.read_only;
        (is_result && shown > ran).then(|| {
            format!("--out {name}: elements up to {shown}, but only one workgroup of {ran} invocations ran: --groups starts more")
        })
    })
}
