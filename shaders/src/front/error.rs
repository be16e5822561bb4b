//! Error of a front end, with its position: the module is invalid or uses an unsupported feature.

use std::fmt;

use crate::ir::SourceLine;

/// A rejected shader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What is wrong, naming instruction, capability, id or rule.
    pub message: String,
    /// Word of the SPIR-V module (0 is the magic number); `None` for WGSL.
    pub word: Option<usize>,
    /// Source position: for SPIR-V with debug lines, and for text unless the message already shows it.
    pub line: Option<SourceLine>,
}

/// A rule that a shader breaks although it can be translated, and that other drivers do not enforce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What is wrong, and where.
    pub error: Error,
    /// Valid usage ID (VUID) of the rule in the Vulkan specification.
    pub vuid: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(word) = self.word {
            write!(f, " (SPIR-V word {word})")?;
        }
        if let Some(line) = &self.line {
            write!(f, " at {line}")?;
        }
        Ok(())
    }
}

impl Error {
    /// The module has no compute entry point of that name (VUID-VkPipelineShaderStageCreateInfo-pName-00707).
    pub(super) fn no_entry_point<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
        let has = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self { message: format!("no compute entry point `{name}`; the module has {has}"), word: None, line: None }
    }
}
