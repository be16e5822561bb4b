//! The part of `docs/spirv.md` on execution modes, built-ins and decorations. The reader itself is queried, one by one.

use std::fmt::{Debug, Write};

use rspirv::dr::Operand;
use spirv::{BuiltIn, Capability, Decoration, ExecutionMode};

use super::capability::is_supported;
use super::coverage::{VENDORS, reason};
use super::decorations::{Decorations, MemberDecorations, decorate, decorate_member};
use super::entry::{holds_always, input};

/// All numbers that SPIR-V has assigned, and more.
const NUMBERS: std::ops::Range<u32> = 0..1 << 13;

const VENDOR: &str = "a vendor's extension";
const GRAPHICS: &str = "graphics stages only";

/// Why an operand is rejected that needs one of its capabilities; the rest is for graphics stages.
fn refused(operand: &Operand) -> &'static str {
    let needs = operand.required_capabilities();
    if needs.is_empty() || needs.iter().any(|&capability| is_supported(capability)) {
        return GRAPHICS;
    }
    let mut reasons = needs.iter().map(|&capability: &Capability| reason(capability));
    reasons.find(|&reason| reason != VENDOR).unwrap_or(VENDOR)
}

fn mode(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::LocalSize | ExecutionMode::LocalSizeId => "supported",
        _ if holds_always(mode) => "supported: always in effect",
        _ => refused(&Operand::ExecutionMode(mode)),
    }
}

fn built_in(built_in: BuiltIn) -> &'static str {
    match built_in {
        BuiltIn::WorkgroupSize => "supported: on a constant",
        _ if input(built_in).is_ok() => "supported",
        _ => refused(&Operand::BuiltIn(built_in)),
    }
}

/// Whether the reader keeps anything of a decoration, of an id or of a member.
fn is_kept(decoration: Decoration) -> bool {
    let (mut of_id, mut of_member) = (Decorations::default(), MemberDecorations::default());
    // Literals that differ from the defaults.
    let literals = [1, 1];
    decorate(&mut of_id, decoration as u32, &literals).expect("the literals are right");
    decorate_member(&mut of_member, decoration as u32, &literals).expect("the literals are right");
    of_id != Decorations::default() || of_member != MemberDecorations::default()
}

fn decoration(decoration: Decoration) -> &'static str {
    use Decoration as D;
    let operand = Operand::Decoration(decoration);
    let needs = operand.required_capabilities();
    let name = format!("{decoration:?}");
    match decoration {
        _ if is_kept(decoration) => "supported",
        _ if VENDORS.iter().any(|vendor| name.ends_with(vendor)) => VENDOR,
        _ if !needs.is_empty() && !needs.iter().any(|&capability| is_supported(capability)) => refused(&operand),
        D::Flat | D::NoPerspective | D::Centroid | D::Location | D::Component | D::Index | D::InputAttachmentIndex => {
            GRAPHICS
        }
        D::RelaxedPrecision => "ignored: floats have 32 bits anyway",
        D::NonUniform => "ignored: descriptors may differ between lanes anyway",
        D::Restrict | D::RestrictPointer | D::AliasedPointer => "ignored: pointers may alias anyway",
        _ => "ignored: it changes no result",
    }
}

fn table<T: Debug>(text: &mut String, title: &str, all: impl Iterator<Item = T>, what: impl Fn(T) -> &'static str) {
    write!(text, "\n## {title}s\n\n| {title} | |\n| --- | --- |\n").expect("strings take everything");
    let mut rows: Vec<(String, &str)> = all.map(|one| (format!("{one:?}"), what(one))).collect();
    rows.sort();
    for (name, what) in rows {
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
}

/// The tables, as text after the others.
pub(super) fn tables() -> String {
    let mut text = String::new();
    table(&mut text, "Execution mode", NUMBERS.filter_map(ExecutionMode::from_u32), mode);
    table(&mut text, "Built-in", NUMBERS.filter_map(BuiltIn::from_u32), built_in);
    table(&mut text, "Decoration", NUMBERS.filter_map(Decoration::from_u32), decoration);
    text
}
