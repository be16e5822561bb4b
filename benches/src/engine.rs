//! Engines that run the kernels: contexts, each with a name for the table.

use spelter::{Backend, Context};

use crate::Error;

/// A context and the back end that runs its kernels.
#[derive(Debug)]
pub struct Engine {
    /// Name, for example `avx512`.
    pub name: String,
    /// The context.
    pub context: Context,
}

/// The engines to measure, the one with targets first: all compiled back ends of this machine, or the one that
/// `SPELTER_BACKEND` names. The interpreter runs only if it is the only engine or is named.
pub fn engines() -> Result<Vec<Engine>, Error> {
    let backends: Vec<Backend> = match std::env::var("SPELTER_BACKEND") {
        Ok(name) => vec![name.parse()?],
        Err(_) => Backend::available().filter(|&backend| backend != Backend::Interpreter).collect(),
    };
    let backends = if backends.is_empty() { vec![Backend::Interpreter] } else { backends };
    let engine = |backend: Backend| {
        let context = Context::builder().backend(backend).build()?;
        Ok(Engine { name: backend.name().to_owned(), context })
    };
    backends.into_iter().map(engine).collect()
}
