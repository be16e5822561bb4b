//! Judges and records one access: each word that it touches is compared with what the shadow knows, and is noted there.

use std::ops::Range;

use super::attributes::CLASSES;
use super::candidate::NoteKind;
use super::cells::Cell;
use super::detector::Detector;
use super::history::{Atomic, Attributes, History, MemoryScope, Reference, WordAccess};
use super::judge::Now;
use super::observer::{Invocation, Memory, Target};
use super::page::{AttributeId, PAGE_BYTES};
use super::words::{Judges, WHOLE};
use crate::ir::{Plane, PlaneSet, Site};

/// What an access does.
#[derive(Clone, Copy, Debug)]
pub(super) struct What {
    pub(super) class: usize,
    pub(super) private: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The scope of an atomic.
    pub(super) scope: Option<MemoryScope>,
}

/// The number of such an attribute.
fn mixed(class: usize, private: bool) -> AttributeId {
    2 * class as AttributeId + AttributeId::from(private)
}

impl Detector {
    /// The number of the attributes of accesses through a reference of the present command.
    #[inline]
    pub(super) fn attribute(&mut self, reference: u32, class: usize, private: bool) -> AttributeId {
        match self.references.get(reference as usize).and_then(|known| known[class]) {
            Some(first) => first + AttributeId::from(private),
            None => self.new_attribute(reference, class, private),
        }
    }

    #[cold]
    fn new_attribute(&mut self, reference: u32, class: usize, private: bool) -> AttributeId {
        let place = reference as usize;
        if place >= 1 << 16 || self.attributes.len() + 2 > usize::from(AttributeId::MAX) {
            return mixed(class, private);
        }
        if place >= self.references.len() {
            self.references.resize(place + 1, [None; CLASSES]);
        }
        let reference = Reference(self.next_reference);
        self.next_reference += 1;
        let first = self.attributes.len() as AttributeId;
        self.attributes.extend([false, true].map(|private| Attributes { class, reference, private }));
        self.references[place][class] = Some(first);
        first + AttributeId::from(private)
    }

    /// Judges and records an access to the bytes of the target, word by word.
    pub(super) fn record(&mut self, by: Invocation, site: Site, target: Target, what: What) {
        let attribute = self.attribute(target.reference, what.class, what.private);
        let (first, base, shared) = match target.memory {
            Memory::Device(address) => (address, self.base, false),
            Memory::Workgroup(offset) => (u64::from(offset), self.workgroup.first, true),
        };
        let parts = self.parts(target, what.class);
        let Range { start, end } = parts.cells(first..first.saturating_add(u64::from(target.bytes)));
        self.workgroup.used = true;
        self.workgroup.accessed[by.local as usize] = true;
        let attributes = self.attributes[usize::from(attribute)];
        let cell = self.workgroup.cell(by.local);
        // What cells cannot express has a history, which the cell of writes says.
        let is_plain = what.scope.is_none() && start.is_multiple_of(4) && end.is_multiple_of(4);
        let needs = planes(shared, what.writes || !is_plain, what.reads && is_plain);
        let mut accepted = false;
        let mut at = start & !3;
        while at < end {
            let mask = mask(start, end, at);
            let atomic = what.scope.map(|scope| Atomic {
                scope,
                start: (start as i64 - at as i64) as i8,
                bytes: (end - start).min(255) as u8,
            });
            let (reads, writes) = (what.reads, what.writes);
            let access = WordAccess { cell, mask, reads, writes, attributes, atomic };
            let now = Now { access, local: by.local, class: what.class, base };
            let left = self.room_of_shadow();
            let mut room = left / History::BYTES;
            let before = room;
            let shadow = if shared { &mut self.shared } else { &mut self.device };
            let limit = shadow.bytes() + left;
            let Some(page) = shadow.page(at / PAGE_BYTES, attribute, needs, limit) else {
                self.given_up.accesses += 1;
                at += 4;
                continue;
            };
            let word = (at % PAGE_BYTES / 4) as u16;
            let detailed = page.cells(word).0 == Cell::DETAILED;
            let mut judges = Judges {
                workgroup: &self.workgroup,
                epochs: &self.epochs,
                lenient: self.lenient,
                attributes: &self.attributes,
                mixed: mixed(what.class, false),
                writers: &self.writers,
                findings: &mut self.findings,
                accepted: false,
                room: &mut room,
                lost: false,
            };
            judges.word(page, word, &now, attribute);
            let Judges { accepted: also_accepted, lost, .. } = judges;
            accepted |= also_accepted;
            self.given_up.accesses += u64::from(lost);
            self.history_count = self.history_count + before - room;
            // Heads are kept only while plain writes cannot pass unnoticed.
            let condensed = page.cells(word).0 != Cell::DETAILED;
            if detailed && (condensed || writes && what.scope.is_none()) {
                let locations = if shared { &mut self.shared_locations } else { &mut self.locations };
                let from = at.max(start);
                let bytes = parts.bytes((end.min(at + 4) - from) as u32);
                locations.cut(place(shared, parts.byte(from)), bytes);
            }
            if !self.findings.is_empty() {
                self.report(by, site, &now, (shared, at, parts));
            }
            at += 4;
        }
        if accepted {
            self.note(NoteKind::Private, by, site);
        }
    }
}

/// The bytes from `start` to `end` in the word at `at`, as bits.
fn mask(start: u64, end: u64, at: u64) -> u8 {
    let from = start.saturating_sub(at).min(4);
    let to = (end - at).min(4);
    (WHOLE << from) & (WHOLE >> (4 - to))
}

/// The planes that a plain access to whole words may write: cells, and in device memory the marks of observers, which
/// they keep for the same words.
#[inline]
pub(super) fn planes(shared: bool, writes: bool, reads: bool) -> PlaneSet {
    let of = |does: bool, cell, mark| match (does, shared) {
        (false, _) => PlaneSet::NONE,
        (true, true) => PlaneSet::of(cell),
        (true, false) => PlaneSet::of(cell).and(mark),
    };
    of(writes, Plane::Written, Plane::Wrote).or(of(reads, Plane::Read, Plane::HasRead))
}

/// A place in memory.
pub(super) fn place(shared: bool, at: u64) -> Memory {
    if shared { Memory::Workgroup(at as u32) } else { Memory::Device(at) }
}
