//! Which text is the statement of a write, and whether a read is in it: a barrier between the two would have to be
//! within that statement.

use super::finding::FoundAccess;
use super::statement::{statements, words};

/// Lines of a statement, at most.
const MAX_LINES: usize = 64;

/// The statement of a write in its source text.
#[derive(Debug)]
pub(super) struct WrittenStatement<'a> {
    write: &'a FoundAccess,
    /// Its lines as one, without their comments.
    pub(super) text: String,
    /// Its first line.
    start: u32,
    /// The line and the column of its end.
    end: (u32, u32),
}

impl<'a> WrittenStatement<'a> {
    /// `None` if the text is not known, or has no end.
    pub(super) fn of(write: &'a FoundAccess) -> Option<Self> {
        let line = write.line.as_ref()?;
        let own = (line.line as usize).checked_sub(1)?;
        let all = write.source.as_ref()?.lines().map(|line| line.split("//").next().unwrap_or(line));
        let lines: Vec<&str> = all.take(own + MAX_LINES).collect();
        // Where there are no columns, the line may be that of the end.
        let before = lines.get(..own)?.iter().rev().take(MAX_LINES).take_while(|line| goes_on(line));
        let skipped = if line.column > 0 { own } else { own - before.count() };
        let start = line.line - (own - skipped) as u32;
        let (mut text, mut depth) = (String::new(), 0);
        for (number, part) in (start..).zip(&lines[skipped..]) {
            text.push_str(part);
            text.push(' ');
            let before = if number == line.line { line.column.saturating_sub(1) } else { 0 };
            for (column, c) in (1..).zip(part.chars()).skip(before as usize) {
                depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
                // Without a column it may begin after a header, a brace or the end of another one.
                let is_over = line.column > 0 && (depth < 0 || "{}".contains(c));
                if number >= line.line && (is_over || depth <= 0 && c == ';') {
                    return Some(Self { write, text, start, end: (number, column) });
                }
            }
        }
        None
    }

    /// Whether a read is in it, itself or within functions that are called there. `is_asked_for` tells the names of the
    /// memory: of lines without columns only one statement may have them.
    pub(super) fn has(&self, read: &FoundAccess, is_asked_for: &dyn Fn(&str) -> bool) -> bool {
        let Some(calls) = read.inlined_at.strip_prefix(&self.write.inlined_at[..]) else { return false };
        let (Some(write), Some(read)) = (&self.write.line, calls.first().or(read.line.as_ref())) else { return false };
        if write.file != read.file {
            return false;
        }
        if write.column > 0 && read.column > 0 {
            return ((write.line, write.column)..self.end).contains(&(read.line, read.column));
        }
        let has_names = |text: &&str| words(text).any(|(_, word)| is_asked_for(word));
        match read.line == write.line {
            true => statements(&self.text).filter(has_names).count() == 1,
            false => (self.start..=self.end.0).contains(&read.line),
        }
    }
}

/// Whether a statement may go on after a line.
fn goes_on(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#') && !line.ends_with([';', '{', '}'])
}

#[cfg(test)]
mod tests {
    use spelter_shaders::ir::SourceLine;

    use super::*;

    const TEXT: &str = "d[0] += // a sum\n  d[l]\n  + f(l); d[1] = d[2];\nfor (uint i = 0; i < 4; i++) d[0] += d[l];\n\
                        uint t = d[l]; d[0] += t;\nif (x) { d[0] += d[l]; }\nd[0] += 1";

    fn at(line: u32, column: u32) -> FoundAccess {
        let line = SourceLine { file: "a.comp".into(), line, column };
        FoundAccess { line: Some(line), source: Some(TEXT.into()), ..FoundAccess::default() }
    }

    /// Whether the reads at some positions are in the statement of the write at one.
    fn has(write: (u32, u32), reads: &[(u32, u32)]) -> Vec<bool> {
        let write = at(write.0, write.1);
        let whole = WrittenStatement::of(&write).unwrap();
        reads.iter().map(|read| whole.has(&at(read.0, read.1), &|name| name == "d")).collect()
    }

    #[test]
    fn a_statement_ends_at_its_semicolon_on_whatever_line() {
        assert_eq!(has((1, 1), &[(1, 1), (2, 3), (3, 5), (3, 18), (4, 40)]), [true, true, true, false, false]);
        assert_eq!(has((1, 0), &[(2, 0), (3, 0), (4, 0)]), [true, true, false]);
        assert_eq!(has((3, 0), &[(1, 0), (2, 0), (4, 0)]), [true, true, false]);
        assert_eq!(WrittenStatement::of(&at(1, 1)).unwrap().text.trim(), "d[0] +=    d[l]   + f(l); d[1] = d[2];");
        assert!(WrittenStatement::of(&at(7, 0)).is_none());
    }

    #[test]
    fn of_a_line_without_columns_one_statement_has_the_memory() {
        assert_eq!(has((4, 0), &[(4, 0)]), [true]);
        assert_eq!(has((5, 0), &[(5, 0)]), [false]);
        assert_eq!(has((6, 0), &[(6, 0)]), [true]);
        assert_eq!(has((5, 16), &[(5, 10)]), [false]);
        assert_eq!(has((6, 10), &[(6, 18)]), [true]);
    }

    #[test]
    fn a_read_of_a_function_is_where_the_call_is() {
        let write = at(1, 1);
        let whole = WrittenStatement::of(&write).unwrap();
        let read = |call: (u32, u32)| {
            let inlined_at = at(call.0, call.1).line.into_iter().collect();
            whole.has(&FoundAccess { inlined_at, ..at(9, 1) }, &|_| true)
        };
        assert_eq!([(3, 5), (5, 1)].map(read), [true, false]);
    }
}
