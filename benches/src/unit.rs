//! Units of the table, and the yardsticks of a kernel's figure.

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes moved, in GB/s.
    Bytes,
    /// Floating-point operations, in GFLOP/s.
    Flops,
    /// Anything else, in millions per second.
    Things(&'static str),
    /// The time of each, in µs: less is better.
    Each,
}

impl Unit {
    /// The printed name.
    pub fn name(self) -> String {
        match self {
            Self::Bytes => "GB/s".into(),
            Self::Flops => "GFLOP/s".into(),
            Self::Things(thing) => format!("M{thing}/s"),
            Self::Each => "µs".into(),
        }
    }

    /// The figure for an amount of work in a time.
    pub fn figure(self, amount: f64, seconds: f64) -> f64 {
        match self {
            Self::Bytes | Self::Flops => amount / seconds / 1e9,
            Self::Things(_) => amount / seconds / 1e6,
            Self::Each => seconds / amount * 1e6,
        }
    }

    /// How much better a figure is than another: above 1 if it is better.
    pub fn ratio(self, figure: f64, other: f64) -> f64 {
        if self == Self::Each { other / figure } else { figure / other }
    }
}

/// The machine's limit for a kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Read bandwidth.
    Read,
    /// Bandwidth of reading two arrays and writing one.
    Triad,
    /// The peak of multiply-adds.
    MultiplyAdd,
    /// Not measured.
    Unknown,
}

/// What a target is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Yardstick {
    /// The kernel's [`Limit`].
    Limit,
    /// The same work in plain Rust.
    Plain,
    /// Lavapipe's best figure, in the kernel's unit.
    Lavapipe(f64),
    /// The unit itself.
    One,
}

/// The target of a kernel: a multiple of a yardstick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The multiple.
    pub factor: f64,
    /// The yardstick.
    pub of: Yardstick,
}

impl Target {
    /// The target figure, if its yardstick was measured.
    pub fn figure(self, limit: Option<f64>, plain: Option<f64>) -> Option<f64> {
        let yardstick = match self.of {
            Yardstick::Limit => limit?,
            Yardstick::Plain => plain?,
            Yardstick::Lavapipe(figure) => figure,
            Yardstick::One => 1.0,
        };
        Some(self.factor * yardstick)
    }

    /// The name in the table.
    pub fn name(self, unit: Unit) -> String {
        match self.of {
            Yardstick::Limit => format!("{:.0} % of limit", self.factor * 100.0),
            Yardstick::Plain => format!("{} × plain", self.factor),
            Yardstick::Lavapipe(figure) => format!("{} × lavapipe's {figure}", self.factor),
            Yardstick::One if unit == Unit::Each => format!("at most {}", self.factor),
            Yardstick::One => format!("at least {}", self.factor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_is_better() {
        assert_eq!(Unit::Each.figure(10.0, 50e-6), 5.0);
        assert_eq!(Unit::Each.ratio(2.0, 3.0), 1.5);
        assert_eq!(Unit::Bytes.ratio(2.0, 4.0), 0.5);
    }

    #[test]
    fn targets_need_their_yardstick() {
        let target = Target { factor: 0.5, of: Yardstick::Plain };
        assert_eq!((target.figure(Some(9.0), None), target.figure(None, Some(8.0))), (None, Some(4.0)));
    }
}
