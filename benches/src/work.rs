//! What a kernel is to the benches: how it is named, prepared, run in two ways and compared.

use spelter::{Buffer, Context, Dispatch, Program};

use crate::Error;
use crate::unit::{Limit, Target, Unit};

/// How much of a kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Just enough to tell right from wrong.
    Small,
    /// What is measured.
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
    /// As in the table.
    pub name: &'static str,
    /// What its figures count.
    pub unit: Unit,
    /// What bounds it.
    pub limit: Limit,
    /// What it should reach.
    pub target: Target,
    /// Makes its input, its buffers and its program.
    pub prepare: fn(&Context, Size) -> Result<Prepared, Error>,
}

/// A kernel that only needs to be run.
pub type Prepared = Box<dyn Work>;

/// What one run of a kernel amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// In the kernel's unit: bytes, operations, things.
    pub amount: f64,
    /// Bytes that must go through memory.
    pub bytes: f64,
    /// Bytes of all buffers together.
    pub working_set: usize,
}

/// A prepared kernel.
pub trait Work {
    /// What one run amounts to.
    fn cost(&self) -> Cost;

    /// Records one run on the context.
    fn record(&self) -> Result<(), Error>;

    /// The same in plain Rust, on all processors.
    fn plain(&mut self);

    /// Whether both have the same answer, after equally many runs of each. Waits for what was recorded.
    fn compare(&self) -> Result<(), Error>;
}

impl Kernel {
    /// Prepares the kernel, runs it in both ways, and compares.
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
