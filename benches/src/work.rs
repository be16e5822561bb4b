//! Interface of a kernel in the benches: its name, preparation, both versions and their comparison.

use spelter::{Buffer, Context, Dispatch, Program};

use crate::Error;
use crate::unit::{Limit, Target, Unit};

/// Size of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Enough to detect wrong results.
    Small,
    /// The measured size.
    Full,
}

impl Size {
    pub(crate) fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Self::Small => small,
            Self::Full => full,
        }
    }
}

/// A kernel of the table.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Name in the table.
    pub name: &'static str,
    /// Unit of its figures.
    pub unit: Unit,
    /// Its limiting resource.
    pub limit: Limit,
    /// Its target.
    pub target: Target,
    /// Creates its input, its buffers and its program.
    pub prepare: fn(&Context, Size) -> Result<Prepared, Error>,
}

/// A kernel that is ready to run.
pub type Prepared = Box<dyn Work>;

/// The cost of one run of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// In the kernel's unit: bytes, operations, items.
    pub amount: f64,
    /// Bytes of memory traffic.
    pub bytes: f64,
    /// Bytes of all buffers together.
    pub working_set: usize,
}

/// A prepared kernel.
pub trait Work {
    /// The cost of one run.
    fn cost(&self) -> Cost;

    /// Records one run on the context.
    fn record(&self) -> Result<(), Error>;

    /// Runs the same in plain Rust, on all processors.
    fn plain(&mut self);

    /// Compares both results, after equally many runs of each. Waits for recorded work.
    fn compare(&self) -> Result<(), Error>;
}

impl Kernel {
    /// Prepares the kernel, runs both versions, and compares.
    pub fn checked(&self, context: &Context, size: Size) -> Result<Prepared, Error> {
        let wrong = |error: Error| format!("{}: {error}", self.name);
        let mut work = (self.prepare)(context, size).map_err(wrong)?;
        work.record().map_err(wrong)?;
        work.plain();
        work.compare().map_err(wrong)?;
        Ok(work)
    }
}

/// A dispatch with these buffers in group 0, in order.
pub(crate) fn bound<'a>(context: &'a Context, program: &'a Program, buffers: &[&Buffer]) -> Dispatch<'a> {
    let dispatch = context.dispatch(program);
    (0..).zip(buffers).fold(dispatch, |dispatch, (binding, buffer)| dispatch.bind(0, binding, buffer))
}

/// The text of a kernel: `shader!("fft")` of the benches, `shader!(library "scan")` of the shader library.
macro_rules! shader {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $name, ".wgsl"))
    };
    (library $name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../shaders/library/", $name, ".wgsl"))
    };
}
pub(crate) use shader;
