//! The part of `docs/spirv.md` about words that are no instructions: execution modes, built-ins and decorations. The reader
//! itself is asked, one by one.

use std::fmt::{Debug, Write};

use rspirv::dr::Operand;
use spirv::{BuiltIn, Capability, Decoration, ExecutionMode};

use super::capability::is_supported;
use super::coverage::{VENDORS, reason};
use super::decorations::{Decorations, MemberDecorations, decorate, decorate_member};
use super::entry::{holds_always, input};

/// Above all numbers that SPIR-V has given away.
const NUMBERS: std::ops::Range<u32> = 0..1 << 13;

const VENDOR: &str = "a vendor's extension";
const GRAPHICS: &str = "for graphics stages";

/// Why something is refused that needs one of these; graphics stages have the rest.
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
        ExecutionMode::LocalSize | ExecutionMode::LocalSizeId => "taken",
        _ if holds_always(mode) => "taken: it holds always",
        _ => refused(&Operand::ExecutionMode(mode)),
    }
}

fn built_in(built_in: BuiltIn) -> &'static str {
    match built_in {
        BuiltIn::WorkgroupSize => "taken: of a constant",
        _ if input(built_in).is_ok() => "taken",
        _ => refused(&Operand::BuiltIn(built_in)),
    }
}

/// Whether the reader keeps anything of a decoration, of an id or of a member.
fn is_kept(decoration: Decoration) -> bool {
    let (mut of_id, mut of_member) = (Decorations::default(), MemberDecorations::default());
    // Literals that are not what stands there without the decoration.
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
        _ if is_kept(decoration) => "taken",
        _ if VENDORS.iter().any(|vendor| name.ends_with(vendor)) => VENDOR,
        _ if !needs.is_empty() && !needs.iter().any(|&capability| is_supported(capability)) => refused(&operand),
        D::Flat | D::NoPerspective | D::Centroid | D::Location | D::Component | D::Index | D::InputAttachmentIndex => {
            GRAPHICS
        }
        D::RelaxedPrecision => "taken: floats have 32 bits all the same",
        D::NonUniform => "taken: descriptors may differ between lanes anyhow",
        D::Restrict | D::RestrictPointer | D::AliasedPointer => "taken: pointers may lead to the same memory anyhow",
        _ => "taken: it changes no result",
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

/// The tables, as text behind the others.
pub(super) fn tables() -> String {
    let mut text = String::new();
    table(&mut text, "Execution mode", NUMBERS.filter_map(ExecutionMode::from_u32), mode);
    table(&mut text, "Built-in", NUMBERS.filter_map(BuiltIn::from_u32), built_in);
    table(&mut text, "Decoration", NUMBERS.filter_map(Decoration::from_u32), decoration);
    text
}
