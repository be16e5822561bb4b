//! Units of the table, and what a kernel's figure is held against.

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
    /// As it is printed.
    pub fn name(self) -> String {
        match self {
            Self::Bytes => "GB/s".into(),
            Self::Flops => "GFLOP/s".into(),
            Self::Things(thing) => format!("M{thing}/s"),
            Self::Each => "µs".into(),
        }
    }

    /// The figure for so much work in so many seconds.
    pub fn figure(self, amount: f64, seconds: f64) -> f64 {
        match self {
            Self::Bytes | Self::Flops => amount / seconds / 1e9,
            Self::Things(_) => amount / seconds / 1e6,
            Self::Each => seconds / amount * 1e6,
        }
    }

    /// How much better a figure is than another: above 1 if it is.
    pub fn ratio(self, figure: f64, other: f64) -> f64 {
        if self == Self::Each { other / figure } else { figure / other }
    }
}

/// What the machine can do at most, for this kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The bandwidth of reading.
    Read,
    /// The bandwidth of reading two arrays and writing one.
    Triad,
    /// The peak of multiply-adds.
    MultiplyAdd,
    /// Nothing that is measured here.
    Unknown,
}

/// What a target is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Yardstick {
    /// The kernel's [`Limit`].
    Limit,
    /// The same work in plain Rust.
    Plain,
    /// What lavapipe reached at best, in the kernel's unit.
    Lavapipe(f64),
    /// The unit itself.
    One,
}

/// The least that a kernel should reach: a multiple of a yardstick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The multiple.
    pub factor: f64,
    /// Of what.
    pub of: Yardstick,
}

impl Target {
    /// The figure to reach, if what it is a multiple of was measured.
    pub fn figure(self, limit: Option<f64>, plain: Option<f64>) -> Option<f64> {
        let yardstick = match self.of {
            Yardstick::Limit => limit?,
            Yardstick::Plain => plain?,
            Yardstick::Lavapipe(figure) => figure,
            Yardstick::One => 1.0,
        };
        Some(self.factor * yardstick)
    }

    /// As the table says it.
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
