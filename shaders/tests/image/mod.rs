//! Formats and sampling against references of their own, in 64-bit floats and from Vulkan's text.

mod formats;
mod machine;
mod picture;
mod reference;
mod sampling;
