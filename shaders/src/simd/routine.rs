//! What kernels leave to functions outside of them: for all lanes together, with operands and results in rows of memory.

use super::LANES;
use crate::image::{ImageOp, lanes};

/// Most words of a message's operands.
pub(crate) const MAX_WORDS: u32 = 256;

/// A function that kernels call. Operands and results are rows of words, one for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// An image instruction, whose component does not matter: lanes that are on (not 0), numbers of images, numbers of
    /// samplers, the operands of [`ImageOp::params`]; four rows of results.
    Image(ImageOp),
    /// Low and high words of addresses; the number of the piece of device memory of each, `u32::MAX` if there is none, and how
    /// many bytes it lies behind the piece's beginning.
    BufferAt,
    /// Nothing; low and high words of the time.
    Clock,
    /// Lanes that are on (not 0), three ids, so many words more; nothing.
    Print {
        /// The number of the message.
        message: u32,
        /// Words of its operands.
        words: u32,
    },
}

impl Routine {
    /// Rows of operands and of results.
    pub fn rows(&self) -> u32 {
        match self {
            Self::Image(op) => lanes::rows(op) as u32,
            Self::BufferAt => 4,
            Self::Clock => 2,
            Self::Print { words, .. } => words.saturating_add(4),
        }
    }

    /// Bytes of the rows.
    pub fn bytes(&self) -> u32 {
        4 * LANES * self.rows()
    }

    /// The name in the text form.
    pub fn name(&self) -> String {
        match self {
            Self::Image(op) => format!("image.{}", op.name()),
            Self::BufferAt => "call.buffer_at".into(),
            Self::Clock => "call.clock".into(),
            Self::Print { message, words } => format!("call.print.{message}.{words}"),
        }
    }

    /// The routine that [`Routine::name`] names, in its two parts.
    pub fn from_name(chapter: &str, detail: &str) -> Option<Self> {
        match (chapter, detail) {
            ("image", _) => ImageOp::from_name(detail).map(Self::Image),
            ("call", "buffer_at") => Some(Self::BufferAt),
            ("call", "clock") => Some(Self::Clock),
            ("call", _) => {
                let (message, words) = detail.strip_prefix("print.")?.split_once('.')?;
                Some(Self::Print { message: message.parse().ok()?, words: words.parse().ok()? })
            }
            _ => None,
        }
    }

    /// Whether it is one that makes sense.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Image(op) => op.check(),
            Self::Print { words, .. } if *words > MAX_WORDS => Err("a message has too many words"),
            Self::BufferAt | Self::Clock | Self::Print { .. } => Ok(()),
        }
    }
}
