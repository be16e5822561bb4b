//! An access to a word: judged against the word's cells or history, then recorded there.

use super::candidate::Relation;
use super::cells::{Cell, Epochs};
use super::history::{Attributes, History, Reference, WordAccess};
use super::judge::{Now, Verdict};
use super::page::{AttributeId, Page, Word};
use super::workgroup::Workgroup;

/// What the judgements need, and where the findings go.
pub(super) struct Judges<'a> {
    pub(super) workgroup: &'a Workgroup,
    pub(super) epochs: &'a Epochs,
    /// Whether private accesses count as non-private inside a workgroup.
    pub(super) lenient: bool,
    /// The attributes by number.
    pub(super) attributes: &'a [Attributes],
    /// That of plain non-private accesses to memory of the class through several references.
    pub(super) mixed: AttributeId,
    /// Those of the references that write memory which others read: see [`Judges::adapt`].
    pub(super) writers: &'a [AttributeId],
    /// Earlier accesses that may race, with the cause, to be reported.
    pub(super) findings: &'a mut Vec<(WordAccess, Verdict)>,
    /// Whether a private access was accepted.
    pub(super) accepted: bool,
    /// Histories that may yet be made.
    pub(super) room: &'a mut u64,
    /// Whether the access could not be recorded.
    pub(super) lost: bool,
}

/// The bytes of a whole word.
pub(super) const WHOLE: u8 = 0b1111;

/// How a later access depends on an earlier one.
pub(super) fn relation(earlier: &WordAccess, access: &WordAccess) -> Relation {
    match (earlier.writes, access.writes) {
        (true, true) => Relation::Waw,
        (true, false) => Relation::Raw,
        _ => Relation::War,
    }
}

impl Judges<'_> {
    /// Judges an access, whose attributes have the number `attribute`, and records it.
    #[inline]
    pub(super) fn word(&mut self, page: &mut Page, word: Word, now: &Now, attribute: AttributeId) {
        let (written, read) = page.cells(word);
        let plain = now.access.atomic.is_none() && now.access.mask == WHOLE;
        let cells = plain && written != Cell::DETAILED;
        if cells && (page.attribute(word) == attribute || self.adapt(page, word, now, attribute)) {
            return self.plain(page, word, now, (written, read));
        }
        self.detailed(page, word, now, attribute);
    }

    /// Changes the attribute of the word so that cells suffice for the present access, too, if that can be done.
    #[cold]
    fn adapt(&self, page: &mut Page, word: Word, now: &Now, attribute: AttributeId) -> bool {
        let (written, read) = page.cells(word);
        let earlier = self.attributes[usize::from(page.attribute(word))];
        let private = [earlier.private, now.access.attributes.private];
        if self.writers.contains(&page.attribute(word)) {
            // Machine code has cells for it: of writes through that reference, and of reads through any.
            return earlier.class == now.class && private[0] == private[1] && !now.access.writes;
        }
        let alike = earlier.class == now.class && private == [false; 2];
        if written.0 < now.base && read.0 < now.base {
            page.set_attribute(word, attribute);
        } else if written.0 < now.base && !now.access.writes && alike {
            // Non-private reads are ordered through every reference.
            if page.attribute(word) != self.mixed {
                page.set_attribute(word, self.mixed);
            }
        } else {
            return false;
        }
        true
    }

    /// A plain access to a whole word whose accesses are all plain and alike.
    #[inline]
    fn plain(&mut self, page: &mut Page, word: Word, now: &Now, (written, read): (Cell, Cell)) {
        let me = now.access.cell;
        let mut replaced = written.0 < now.base;
        if !replaced {
            let attributes = self.attributes[usize::from(page.attribute(word))];
            replaced = match attributes.reference.is(now.access.attributes.reference) {
                false if self.writers.contains(&page.attribute(word)) => {
                    let (mask, atomic) = (WHOLE, None);
                    let written = WordAccess { cell: written, mask, reads: false, writes: true, attributes, atomic };
                    self.judge(&written, now)
                }
                _ => self.cell(written, true, now),
            };
        }
        if !now.access.writes {
            let replaced = read.0 < now.base || read == me || self.cell(read, false, now);
            page.set_read(word, if replaced { me } else { self.workgroup.join(self.epochs, read, me) });
            return;
        }
        page.set_written(word, if replaced { me } else { self.workgroup.join(self.epochs, written, me) });
        if read.0 >= now.base && self.cell(read, false, now) {
            page.set_read(word, Cell::EMPTY);
        }
    }

    /// Judges the present access against a cell. Whether the earlier access may be forgotten.
    #[inline]
    fn cell(&mut self, cell: Cell, writes: bool, now: &Now) -> bool {
        let attributes = now.access.attributes;
        let own = self.workgroup.is_own(cell, now.local);
        if own && attributes.reference != Reference::MIXED {
            return now.access.writes || !writes;
        }
        let earlier = WordAccess { cell, mask: WHOLE, reads: !writes, writes, attributes, atomic: None };
        self.judge(&earlier, now)
    }

    /// Judges the present access against an earlier one. Whether that may be forgotten.
    fn judge(&mut self, earlier: &WordAccess, now: &Now) -> bool {
        let verdict = self.workgroup.judge(self.epochs, earlier, now, self.lenient);
        if earlier.conflicts(&now.access) {
            match verdict {
                Verdict::Racy(_) => self.findings.push((*earlier, verdict)),
                Verdict::Ordered { lenient: true } => self.accepted = true,
                Verdict::Ordered { .. } | Verdict::Mutual => {}
            }
        }
        self.workgroup.supersedes(earlier, now, verdict, self.lenient)
    }

    /// An access to a word with a history, which is made if there is none.
    #[cold]
    fn detailed(&mut self, page: &mut Page, word: Word, now: &Now, attribute: AttributeId) {
        let (written, read) = page.cells(word);
        if written != Cell::DETAILED {
            let Some(room) = self.room.checked_sub(1) else {
                self.lost = true;
                return;
            };
            *self.room = room;
            let attributes = self.attributes[usize::from(page.attribute(word))];
            let access =
                |cell, writes: bool| WordAccess { cell, mask: WHOLE, reads: !writes, writes, attributes, atomic: None };
            let mut history = History::default();
            let cells = [access(written, true), access(read, false)];
            history.accesses.extend(cells.into_iter().filter(|access| access.cell.0 >= now.base));
            page.detail(word, history);
        }
        let Some(history) = page.history(word) else { return };
        let mut accesses = std::mem::take(&mut history.accesses);
        accesses.retain(|earlier| !self.judge(earlier, now));
        let plain = now.access.atomic.is_none() && now.access.mask == WHOLE;
        if accesses.is_empty() && plain {
            // Nothing but the present access counts any more: cells suffice again.
            let me = now.access.cell;
            let (written, read) = if now.access.writes { (me, Cell::EMPTY) } else { (Cell::EMPTY, me) };
            let known = page.attribute(word);
            if !self.writers.contains(&known) {
                page.set_attribute(word, attribute);
            }
            if page.attribute(word) == attribute || self.adapt(page, word, now, attribute) {
                page.condense(word, written, read);
                *self.room += 1;
                return;
            }
        }
        let same = accesses.iter_mut().find(|other| other.alike(&now.access) && self.merges(other, now));
        let (workgroup, epochs) = (self.workgroup, self.epochs);
        let join = |a, b| workgroup.join(epochs, a, b);
        let merged = same.map(|same| same.cell = join(same.cell, now.access.cell)).is_some();
        let Some(history) = page.history(word) else { return };
        history.accesses = accesses;
        if !merged {
            history.add(now.access, join, |a, b| workgroup.of_one_workgroup(epochs, a, b));
        }
    }

    /// Whether an access like the present one becomes one with it at once: it was of the same subgroup, or of several
    /// workgroups, where nothing is lost.
    fn merges(&self, other: &WordAccess, now: &Now) -> bool {
        let (cell, workgroup) = (other.cell, self.workgroup);
        if workgroup.owns(cell) {
            let subgroup = workgroup.layout.subgroup_of(workgroup.layout.group(cell));
            return subgroup.is_none_or(|subgroup| subgroup == workgroup.layout.subgroup(now.local));
        }
        cell.0 & !(workgroup.layout.unit() - 1) == self.epochs.several()
    }
}
