//! The push constants of a dispatch: all that the program declares, and at most the padding of a struct.

use super::Dispatch;
use crate::error::{Error, rule};

impl Dispatch<'_> {
    /// Checks the push constants and cuts them to the declared size.
    pub(super) fn check_push(&mut self) -> Result<(), Error> {
        self.push_errors().next().map_or(Ok(()), Err)?;
        self.push.resize((self.program.push_bytes() as usize).next_multiple_of(4), 0);
        Ok(())
    }

    /// All that is wrong with the push constants. Where a type is wrong, the size says nothing more.
    pub(super) fn push_errors(&self) -> impl Iterator<Item = Error> {
        let mut types = self.push_type_errors().peekable();
        let size = if types.peek().is_none() { self.check_push_size().err() } else { None };
        types.chain(size)
    }

    fn check_push_size(&self) -> Result<(), Error> {
        let (given, wanted) = (self.push.len(), self.program.push_bytes() as usize);
        if given != wanted && !paddings(wanted).any(|padded| given == padded) {
            let program = self.program;
            let declared = if wanted == 0 { "none".to_owned() } else { format!("bytes 0..{wanted}") };
            let (missing, rule) = match given < wanted {
                true => (format!(", bytes {given}..{wanted} are missing"), rule::PUSH_SET),
                false => (String::new(), rule::PUSH_DECLARED),
            };
            return Err(Error::Push(format!(
                "{program} declares {declared}, {given} bytes were given{missing} ({rule})"
            )));
        }
        Ok(())
    }

    /// The errors of typed push constants, where the program declares any. A single value is compared as a whole, which
    /// finds what it lacks; of several, each with the bytes that it has.
    fn push_type_errors(&self) -> impl Iterator<Item = Error> {
        let types = if self.program.push_bytes() == 0 { &[][..] } else { &self.push_types[..] };
        types.iter().filter_map(|(start, ty)| {
            let is_all = *start == 0 && self.push.len() as u64 == ty.size();
            self.program.check_push_type((!is_all).then_some(*start), *ty).err()
        })
    }
}

/// Sizes of structs whose last member ends after `bytes` bytes, for the alignments of scalars, two-component vectors,
/// three- and four-component vectors, and such vectors of doubles.
fn paddings(bytes: usize) -> impl Iterator<Item = usize> {
    let alignments = [(4, 1), (8, 8), (16, 12), (32, 24)];
    alignments
        .into_iter()
        .filter(move |&(_, min_bytes)| bytes >= min_bytes)
        .map(move |(alignment, _)| bytes.next_multiple_of(alignment))
}
