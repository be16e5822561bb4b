//! Events as text in Chrome's trace event format, and their arguments.
//!
//! Process and thread numbers are integers, times are microseconds with three decimals: viewers accept other forms, but
//! the format does not have them.

use std::fmt::Write as _;

use crate::json::quoted;

/// Arguments of an event: the inside of a JSON object.
#[derive(Clone, Debug, Default)]
pub struct Args(String);

impl Args {
    /// No arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        self.raw(name, &quoted(value))
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, name: &str, value: u64) -> Self {
        self.raw(name, &value.to_string())
    }

    /// Adds microseconds.
    #[must_use]
    pub(super) fn micros(self, name: &str, value: f64) -> Self {
        self.raw(name, &format!("{value:.3}"))
    }

    /// Adds a value that is JSON.
    #[must_use]
    pub(super) fn raw(mut self, name: &str, value: &str) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}{}:{value}", quoted(name));
        self
    }
}

/// A row of a viewer: process and thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) process: u64,
    pub(super) thread: u64,
}

/// One event.
#[derive(Debug)]
pub(super) enum TraceEvent<'a> {
    /// `X`: with a category that tells dispatches from their chunks, and microseconds of begin and end.
    Slice { row: Row, category: &'a str, name: &'a str, times: (f64, f64), args: Args },
    /// `i`, of its thread.
    Instant { row: Row, name: &'a str, at: f64 },
    /// `C`: one series of a process.
    Counter { process: u64, name: &'a str, at: f64, value: u64 },
    /// `s`, `t` or `f` with the point `e`: bound to the slice of the row that encloses the time. Events of one arrow
    /// have its category, name and number.
    Flow { row: Row, phase: char, category: &'a str, name: &'a str, id: u64, at: f64 },
    /// `M`: the name of a process, or of a thread; viewers sort by the number.
    Name { process: u64, thread: Option<u64>, name: &'a str },
}

impl TraceEvent<'_> {
    /// Appends the event's JSON, or for names two events, without a comma at the end.
    pub(super) fn print(&self, to: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Slice { row: Row { process, thread }, category, name, times: (start, end), args } => {
                let (name, long, args) = (quoted(name), (end - start).max(0.0), &args.0);
                let what = format!(r#""ph":"X","cat":"{category}","name":{name}"#);
                let place = format!(r#""pid":{process},"tid":{thread},"ts":{start:.3},"dur":{long:.3}"#);
                write!(to, r#"{{{what},{place},"args":{{{args}}}}}"#)
            }
            Self::Instant { row: Row { process, thread }, name, at } => {
                let name = quoted(name);
                write!(to, r#"{{"ph":"i","s":"t","name":{name},"pid":{process},"tid":{thread},"ts":{at:.3}}}"#)
            }
            Self::Counter { process, name, at, value } => {
                let name = quoted(name);
                write!(to, r#"{{"ph":"C","name":{name},"pid":{process},"ts":{at:.3},"args":{{"value":{value}}}}}"#)
            }
            Self::Flow { row: Row { process, thread }, phase, category, name, id, at } => {
                let (name, bound) = (quoted(name), if *phase == 's' { "" } else { r#","bp":"e""# });
                let what = format!(r#""ph":"{phase}","cat":"{category}","name":{name},"id":{id}{bound}"#);
                write!(to, r#"{{{what},"pid":{process},"tid":{thread},"ts":{at:.3}}}"#)
            }
            Self::Name { process, thread, name } => {
                let name = quoted(name);
                let (kind, number) = if thread.is_some() { ("thread", *thread) } else { ("process", None) };
                let place = match number {
                    Some(thread) => format!(r#""pid":{process},"tid":{thread}"#),
                    None => format!(r#""pid":{process}"#),
                };
                let order = thread.unwrap_or(*process);
                let named = write!(to, r#"{{"ph":"M","name":"{kind}_name",{place},"args":{{"name":{name}}}}}"#);
                let sorted = write!(
                    to,
                    ",\n{}",
                    format_args!(r#"{{"ph":"M","name":"{kind}_sort_index",{place},"args":{{"sort_index":{order}}}}}"#)
                );
                named.and(sorted)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a \"b\" \\ \n é"), r#""a \"b\" \\ \u000a é""#);
    }

    #[test]
    fn events_are_objects_of_the_format() {
        let row = Row { process: 2, thread: 5 };
        let print = |event: TraceEvent<'_>| {
            let mut text = String::new();
            event.print(&mut text);
            text
        };
        let args = Args::new().text("of", "a").number("bytes", 4);
        assert_eq!(
            print(TraceEvent::Slice { row, category: "host", name: "w", times: (1.0, 2.5), args }),
            r#"{"ph":"X","cat":"host","name":"w","pid":2,"tid":5,"ts":1.000,"dur":1.500,"args":{"of":"a","bytes":4}}"#
        );
        assert_eq!(
            print(TraceEvent::Flow { row, phase: 'f', category: "flow", name: "submission", id: 9, at: 1.0 }),
            r#"{"ph":"f","cat":"flow","name":"submission","id":9,"bp":"e","pid":2,"tid":5,"ts":1.000}"#
        );
        assert_eq!(
            print(TraceEvent::Counter { process: 2, name: "busy workers", at: 0.5, value: 3 }),
            r#"{"ph":"C","name":"busy workers","pid":2,"ts":0.500,"args":{"value":3}}"#
        );
    }
}
