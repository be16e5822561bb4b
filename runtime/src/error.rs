//! Errors of the runtime: by value, each naming the place and the rule.

use spelter_driver::Misuse;
use spelter_shaders::front;

/// Why a call failed. After an error other than [`Error::DeviceLost`] the context is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The shader was refused; says where.
    #[error("{0}")]
    Shader(#[from] front::Error),
    /// The program has several entry points and none was named, or has none of that name.
    #[error("{0}")]
    EntryPoint(String),
    /// A specialization constant was set to a value of another type.
    #[error("specialization constant {0}")]
    Constant(String),
    /// A binding of a dispatch does not fit the program.
    #[error("binding {group}.{binding}: {problem}")]
    Binding {
        /// The descriptor set; `@group` in WGSL.
        group: u32,
        /// The binding in it.
        binding: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// The push constants of a dispatch are not those that the program declares.
    #[error("push constants: {0}")]
    Push(String),
    /// A range that does not lie in its buffer, or does not hold a whole number of elements.
    #[error("{0}")]
    Range(String),
    /// A rule of Vulkan that the driver checks.
    #[error("{0}")]
    Misuse(#[from] Misuse),
    /// Device memory is used up, or the heap cannot be had.
    #[error("out of memory")]
    OutOfMemory,
    /// The device is gone, and why: a kernel took too long, for one. Other contexts go on.
    #[error("device lost: {0}")]
    DeviceLost(String),
}

impl Error {
    pub(crate) fn binding(group: u32, binding: u32, problem: impl Into<String>) -> Self {
        Self::Binding { group, binding, problem: problem.into() }
    }
}

impl From<spelter_driver::Error> for Error {
    fn from(error: spelter_driver::Error) -> Self {
        match error {
            spelter_driver::Error::Misuse(misuse) => Self::Misuse(misuse),
            spelter_driver::Error::OutOfMemory | spelter_driver::Error::OutOfPoolMemory(_) => Self::OutOfMemory,
            spelter_driver::Error::DeviceLost(why) => Self::DeviceLost(why),
            spelter_driver::Error::Shader(error) => Self::Shader(error),
        }
    }
}
