//! What runs the kernels: contexts, each with a name for the table.

use spelter::Context;

use crate::Error;

/// A context and what its device says runs the kernels.
#[derive(Debug)]
pub struct Engine {
    /// `interpreter`, for one.
    pub name: String,
    /// Where it runs.
    pub context: Context,
}

/// The engines to measure, the one that the targets are for first.
pub fn engines() -> Result<Vec<Engine>, Error> {
    let context = Context::new()?;
    // `Spelter (interpreter, 2 workers)`
    let device = &context.device().properties().device_name;
    let name = device.split(['(', ',']).nth(1).unwrap_or(device).to_owned();
    Ok(vec![Engine { name, context }])
}
