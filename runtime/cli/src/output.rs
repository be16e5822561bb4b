//! Output of the program: a closed pipe is not an error, and `--color` says when there are colours.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use clap::ValueEnum;
use spelter::Printer;

use crate::failure::Failure;
use crate::snippet;

/// When the output has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On terminals.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What `--color` says, which main sets once.
static COLOR: OnceLock<Color> = OnceLock::new();

/// Sets when there are colours.
pub(crate) fn set_color(color: Color) {
    // A second call would be a bug without consequences.
    let _ = COLOR.set(color);
}

/// Whether a stream has colours.
fn is_colored(stream: &impl IsTerminal) -> bool {
    match COLOR.get() {
        Some(Color::Always) => true,
        Some(Color::Never) => false,
        Some(Color::Auto) | None => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// Whether standard error has colours.
pub(crate) fn is_stderr_colored() -> bool {
    is_colored(&io::stderr())
}

/// Standard output, locked and buffered.
pub(crate) struct Output {
    to: BufWriter<StdoutLock<'static>>,
    colored: bool,
    /// Whether a JSON value was printed.
    has_json: bool,
}

impl Output {
    /// Locks standard output.
    pub(crate) fn new() -> Self {
        let stdout = io::stdout().lock();
        let colored = is_colored(&stdout);
        Self { to: BufWriter::new(stdout), colored, has_json: false }
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        alive(writeln!(self.to, "{}", text.as_ref()))
    }

    /// Prints a JSON value on a line of its own.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.has_json = true;
        alive(writeln!(self.to, "{value}"))
    }

    /// Whether a JSON value was printed.
    pub(crate) fn has_json(&self) -> bool {
        self.has_json
    }

    /// Prints `name  value` lines with aligned values.
    pub(crate) fn table(&mut self, rows: &[(&str, String)]) -> Result<(), Failure> {
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        rows.iter().try_for_each(|(name, value)| {
            let pad = " ".repeat(width - name.chars().count());
            let name = self.faint(name);
            self.line(format!("{name}{pad}  {value}"))
        })
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        alive(self.to.flush())
    }

    /// Dimmed text, if there are colours.
    pub(crate) fn faint(&self, text: &str) -> String {
        self.styled("2", text)
    }

    /// Green text, if there are colours.
    pub(crate) fn good(&self, text: &str) -> String {
        self.styled("32", text)
    }

    /// Bold text, if there are colours.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.styled("1", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colored { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Prints the message of a failure to standard error; an error of that is ignored.
pub(crate) fn report(failure: &Failure) {
    let mut stderr = io::stderr().lock();
    let _ = if is_colored(&stderr) {
        writeln!(stderr, "\x1b[1;31merror\x1b[0m: {}", snippet::colored(&failure.to_string()))
    } else {
        writeln!(stderr, "error: {failure}")
    };
}

/// Prints a note to standard error: not a failure, but possibly a surprise.
pub(crate) fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "note: {text}");
}

/// The largest number of messages of kernels that are shown.
pub(crate) const MAX_MESSAGES: u64 = 10_000;

/// Prints messages of kernels to standard error, since results go to standard output.
pub(crate) fn printer() -> Printer {
    Printer::new(MAX_MESSAGES, |message| {
        let [x, y, z] = message.invocation;
        let text = message.text.trim_end_matches('\n');
        let _ = writeln!(io::stderr().lock(), "invocation ({x}, {y}, {z}): {text}");
    })
}

/// Drops messages of kernels.
pub(crate) fn silent() -> Printer {
    Printer::new(0, |_| ())
}

/// Ignores a closed pipe: its reader needs no more output.
fn alive(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
