//! Tables with aligned columns, and numbers with few digits.

use crate::failure::Failure;
use crate::output::Output;

/// Prints rows below a faint head.
pub(crate) fn print(output: &mut Output, head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let mut lines = lines(head, rows).into_iter();
    if let Some(head) = lines.next() {
        let head = output.faint(&head);
        output.line(head)?;
    }
    lines.try_for_each(|line| output.line(line))
}

/// The lines of a table; the first column is aligned to the left, the others to the right.
pub(crate) fn lines(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
        cells.chain([length(head[column])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let pad = " ".repeat(width - length(cell));
                if column == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    let head = line(&mut head.iter().copied());
    std::iter::once(head).chain(rows.iter().map(|row| line(&mut row.iter().map(String::as_str)))).collect()
}

/// A time with its unit and four digits.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", digits(s)),
        s if s >= 1e-3 => format!("{} ms", digits(s * 1e3)),
        s => format!("{} µs", digits(s * 1e6)),
    }
}

/// A number with a decimal prefix: 12.3 k, 4.56 M.
pub(crate) fn count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{} G", digits(n / 1e9)),
        n if n >= 1e6 => format!("{} M", digits(n / 1e6)),
        n if n >= 1e3 => format!("{} k", digits(n / 1e3)),
        n => digits(n),
    }
}

/// Bytes with a binary prefix where that is exact or long.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) if bytes.trailing_zeros() >= *shift => format!("{} {unit}", bytes >> shift),
        Some((shift, unit)) => format!("{} {unit}", digits(bytes as f64 / (1u64 << shift) as f64)),
        None => format!("{bytes} B"),
    }
}

/// About three significant digits.
pub(crate) fn digits(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n if n > 0.0 && n < 0.01 => format!("{n:.0e}"),
        n => format!("{n:.2}"),
    }
}

/// A part as percent.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0000123, 0.0123, 1.5, 123.4].map(seconds), ["12.3 µs", "12.3 ms", "1.50 s", "123 s"]);
        assert_eq!([0.5, 1234.0, 5.6e7, 7.8e10].map(count), ["0.50", "1.23 k", "56.0 M", "78.0 G"]);
        assert_eq!([12, 4096, 5000, 3 << 20].map(bytes), ["12 B", "4 KiB", "4.88 KiB", "3 MiB"]);
        assert_eq!([0.0, 0.001, 0.012].map(digits), ["0.00", "1e-3", "0.01"]);
        assert_eq!(percent(0.1234), "12.3 %");
    }
}
