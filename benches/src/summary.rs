//! The table at the end of a run: figures, ratios, and targets.

use std::fmt;

use serde_json::{Value, json};

use crate::unit::{Limit, Target, Unit, Yardstick};

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the kernel or the overhead.
    pub name: &'static str,
    /// Unit of the figures.
    pub unit: Unit,
    /// The figure of each engine, if it was measured.
    pub engines: Vec<Option<f64>>,
    /// The figure of plain Rust.
    pub plain: Option<f64>,
    /// The machine's limit.
    pub limit: Option<f64>,
    /// What gives the limit.
    pub bound: Limit,
    /// The target of the first engine.
    pub target: Target,
}

impl Row {
    fn goal(&self) -> Option<f64> {
        self.target.figure(self.limit, self.plain)
    }

    /// The ratio of an engine's figure to the target: 1 is enough.
    fn reached(&self, figure: Option<f64>) -> Option<f64> {
        Some(self.unit.ratio(figure?, self.goal()?))
    }

    fn ratio(&self, figure: Option<f64>, other: Option<f64>) -> Option<f64> {
        Some(self.unit.ratio(figure?, other?))
    }

    fn cells(&self) -> Vec<String> {
        let number = |number: Option<f64>| number.map(figures).unwrap_or_default();
        let first = self.engines.first().copied().flatten();
        let verdict = |reached: f64| format!("{} {reached:.2}", if reached >= 1.0 { "yes" } else { "no " });
        let mut cells = vec![self.name.to_owned(), self.unit.name()];
        cells.extend(self.engines.iter().map(|&figure| number(figure)));
        cells.extend([self.plain, self.limit].map(number));
        cells.extend([self.plain, self.limit].map(|other| number(self.ratio(first, other))));
        cells.push(self.target.name(self.unit));
        cells.push(self.reached(first).map(verdict).unwrap_or_default());
        cells
    }

    fn json(&self, engines: &[String]) -> Value {
        let of_engine = |(name, &figure): (&String, &Option<f64>)| {
            let value = json!({
                "figure": figure,
                "of_plain": self.ratio(figure, self.plain),
                "of_limit": self.ratio(figure, self.limit),
                "of_target": self.reached(figure),
            });
            (name.clone(), value)
        };
        let lavapipe = match self.target.of {
            Yardstick::Lavapipe(figure) => Some(figure),
            _ => None,
        };
        json!({
            "name": self.name,
            "unit": self.unit.name(),
            "engines": engines.iter().zip(&self.engines).map(of_engine).collect::<serde_json::Map<_, _>>(),
            "plain": self.plain,
            "limit": self.limit,
            "limited_by": format!("{:?}", self.bound),
            "lavapipe": lavapipe,
            "target": self.goal(),
        })
    }
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Names of the engines, in the order of the rows' figures. Targets are for the first.
    pub engines: Vec<String>,
    /// In the order in which they were measured.
    pub rows: Vec<Row>,
    /// The machine's limits, with their units.
    pub machine: Vec<(&'static str, f64)>,
}

impl Summary {
    /// One object for each row, and one for the machine.
    pub fn json_lines(&self) -> Vec<Value> {
        let machine = self.machine.iter().map(|&(name, figure)| (name.to_owned(), json!(figure)));
        let machine = json!({ "machine": machine.collect::<serde_json::Map<_, _>>() });
        std::iter::once(machine).chain(self.rows.iter().map(|row| row.json(&self.engines))).collect()
    }

    fn head(&self) -> Vec<String> {
        let mut cells = vec!["kernel".to_owned(), "unit".to_owned()];
        cells.extend(self.engines.iter().cloned());
        cells.extend(["plain Rust", "limit", "/ plain", "/ limit", "target", "reached"].map(str::to_owned));
        cells
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, figure) in &self.machine {
            writeln!(f, "{name}: {}", figures(*figure))?;
        }
        let lines: Vec<_> = std::iter::once(self.head()).chain(self.rows.iter().map(Row::cells)).collect();
        let widths: Vec<_> = (0..lines[0].len())
            .map(|column| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0))
            .collect();
        // Names and words to the left, numbers to the right.
        let words = [0, 1, widths.len() - 2, widths.len() - 1];
        for cells in &lines {
            let line: Vec<_> = (cells.iter().zip(&widths).enumerate())
                .map(
                    |(column, (cell, &width))| {
                        if words.contains(&column) { format!("{cell:width$}") } else { format!("{cell:>width$}") }
                    },
                )
                .collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A number with about three digits.
fn figures(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n if n >= 0.1 => format!("{n:.2}"),
        n => format!("{n:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            name: "reduce",
            unit: Unit::Bytes,
            engines: vec![Some(30.0), None],
            plain: Some(60.0),
            limit: Some(50.0),
            bound: Limit::Read,
            target: Target { factor: 0.5, of: Yardstick::Limit },
        }
    }

    #[test]
    fn a_line_of_the_table() {
        let engines = vec!["avx512".into(), "avx2".into()];
        let summary = Summary { engines, rows: vec![row()], machine: vec![("GB/s", 55.0)] };
        let want = "\
GB/s: 55.0
kernel  unit  avx512  avx2  plain Rust  limit  / plain  / limit  target         reached
reduce  GB/s    30.0              60.0   50.0     0.50     0.60  50 % of limit  yes 1.20
";
        assert_eq!(summary.to_string(), want);
    }

    #[test]
    fn a_line_of_json() {
        let summary = Summary { engines: vec!["avx512".into()], rows: vec![row()], machine: vec![] };
        let line = &summary.json_lines()[1];
        assert_eq!(line["engines"]["avx512"]["of_target"], json!(1.2));
        assert_eq!((&line["target"], &line["limited_by"]), (&json!(25.0), &json!("Read")));
    }

    #[test]
    fn what_was_not_measured_reaches_nothing() {
        assert_eq!((row().reached(None), Row { limit: None, ..row() }.reached(Some(9.0))), (None, None));
    }
}
