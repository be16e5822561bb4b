//! Library functions that kernels call for all lanes at once, with operands and results in rows of memory.

use super::{CheckRoutine, LANES};
use crate::host::MAX_MESSAGE_WORDS;
use crate::image::{ImageOp, lanes};

/// A function that kernels call. Operands and results are rows of words, one word for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// An image instruction; its component is ignored. Operands: active lanes (not 0), image indices, sampler indices,
    /// the operands of [`ImageOp::params`]. Results: four rows, one for each component.
    Image(ImageOp),
    /// Looks up addresses. Operands: their low and high words. Results: the index of the address range that contains
    /// the address, `u32::MAX` if there is none, and the byte offset in the range.
    BufferAt,
    /// Reads the clock. Results: low and high words of the time.
    Clock,
    /// Prints a message. Operands: active lanes (not 0), three invocation id components, the message's words. No
    /// results.
    Print {
        /// Index of the message.
        message: u32,
        /// Words of its operands.
        words: u32,
    },
    /// Tells an observer of checked mode what the active lanes do.
    Check(CheckRoutine),
}

impl Routine {
    /// Number of operand rows and of result rows.
    pub fn rows(&self) -> u32 {
        match self {
            Self::Image(op) => lanes::rows(op) as u32,
            Self::BufferAt => 4,
            Self::Clock => 2,
            Self::Print { words, .. } => words.saturating_add(4),
            Self::Check(check) => check.rows(),
        }
    }

    /// Bytes of all rows.
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
            Self::Check(check) => format!("check.{}", check.name()),
        }
    }

    /// The routine with this [`Routine::name`], given as its two parts.
    pub fn from_name(chapter: &str, detail: &str) -> Option<Self> {
        match (chapter, detail) {
            ("image", _) => ImageOp::from_name(detail).map(Self::Image),
            ("check", _) => CheckRoutine::from_name(detail).map(Self::Check),
            ("call", "buffer_at") => Some(Self::BufferAt),
            ("call", "clock") => Some(Self::Clock),
            ("call", _) => {
                let (message, words) = detail.strip_prefix("print.")?.split_once('.')?;
                Some(Self::Print { message: message.parse().ok()?, words: words.parse().ok()? })
            }
            _ => None,
        }
    }

    /// Checks that its parameters are valid.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Image(op) => op.check(),
            Self::Check(check) => check.check(),
            Self::Print { words, .. } if *words > MAX_MESSAGE_WORDS => Err("a message has too many words"),
            Self::BufferAt | Self::Clock | Self::Print { .. } => Ok(()),
        }
    }
}
