//! Text form of the table of sites: `site0 = write uniform non_private made device word 17 via 3, 9`. `made` is
//! MakePointerAvailable or MakePointerVisible with its scope, `word` the offset in the SPIR-V module, `via` the calls
//! through which the instruction was inlined, by their words.

use std::fmt::{self, Display, Formatter};

use super::inst_parse::{access, scope, semantics};
use super::{Access, AccessSite, AtomicOp, Scope, Semantics, SiteAction, SiteData, StorageClass};
use crate::text::{Line, ParseError, list};

type Result<T> = std::result::Result<T, ParseError>;

impl Display for SiteData {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.action)?;
        if self.word != 0 {
            write!(f, " word {}", self.word)?;
        }
        list(f, " via ", self.inlined_at.iter(), "")
    }
}

impl Display for SiteAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Read(access) => write!(f, "read {access}"),
            Self::Write(access) => write!(f, "write {access}"),
            Self::Atomic { op, class, scope, semantics, unequal } => {
                write!(f, "atomic.{} {} {} {semantics}", op.name(), class.name(), scope.name())?;
                if unequal.0 != 0 { write!(f, " unequal {unequal}") } else { Ok(()) }
            }
            Self::Fence { scope, semantics } => write!(f, "fence {} {semantics}", scope.name()),
            Self::Barrier { execution, memory, semantics } => {
                write!(f, "barrier {} {} {semantics}", execution.name(), memory.name())
            }
        }
    }
}

impl Display for AccessSite {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { class, non_private, volatile, scope } = *self;
        write!(f, "{}{}", class.name(), Access { volatile, non_private, available_visible: scope })
    }
}

/// What follows `site0 = `.
pub(super) fn site_data(line: &mut Line<'_>) -> Result<SiteData> {
    let action = action(line)?;
    let word = if line.eat_word("word") { line.unsigned()? } else { 0 };
    let mut calls = Vec::new();
    if line.eat_word("via") {
        calls.push(line.unsigned()?);
        while line.eat(',') {
            calls.push(line.unsigned()?);
        }
    }
    Ok(SiteData { action, word, inlined_at: calls.into() })
}

fn action(line: &mut Line<'_>) -> Result<SiteAction> {
    let unknown = line.error("expected `read`, `write`, `atomic`, `fence` or `barrier`");
    let word = line.word("what a site does", Some)?;
    Ok(match word.split_once('.') {
        Some(("atomic", op)) => {
            let op = AtomicOp::from_name(op).ok_or(unknown)?;
            let (class, scope) = (class(line)?, scope(line)?);
            let order = semantics(line)?;
            let unequal = if line.eat_word("unequal") { semantics(line)? } else { Semantics::default() };
            SiteAction::Atomic { op, class, scope, semantics: order, unequal }
        }
        None if word == "read" => SiteAction::Read(access_site(line)?),
        None if word == "write" => SiteAction::Write(access_site(line)?),
        None if word == "fence" => SiteAction::Fence { scope: scope(line)?, semantics: semantics(line)? },
        None if word == "barrier" => {
            let [execution, memory]: [Scope; 2] = [scope(line)?, scope(line)?];
            SiteAction::Barrier { execution, memory, semantics: semantics(line)? }
        }
        _ => return Err(unknown),
    })
}

fn access_site(line: &mut Line<'_>) -> Result<AccessSite> {
    let class = class(line)?;
    let Access { volatile, non_private, available_visible } = access(line)?;
    Ok(AccessSite { class, non_private, volatile, scope: available_visible })
}

fn class(line: &mut Line<'_>) -> Result<StorageClass> {
    line.word("a storage class", StorageClass::from_name)
}
