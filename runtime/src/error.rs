//! Errors of the runtime: each names the binding, range or resource, and the broken rule.

use std::fmt;

use spelter_driver::Misuse;
use spelter_shaders::front;

use crate::ids::Slot;

/// The reason why a call failed. After an error other than [`Error::DeviceLost`] the context is as it was before the
/// call.
///
/// ```
/// use spelter::Error;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer(4).label("counter").zeroed()?;
/// match context.write(&buffer, 2, &[1u32]) {
///     Err(Error::Range(text)) => assert!(text.starts_with("write: bytes 2..6 of buffer `counter` of 4 bytes")),
///     other => panic!("{other:?}"),
/// }
/// context.write(&buffer, 0, &[1u32])?; // the context is as it was
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The shader was rejected; the text names the line or word.
    #[error("{0}")]
    Shader(#[from] front::Error),
    /// The program has several entry points and none was named, or none with that name.
    #[error("{0}")]
    EntryPoint(String),
    /// A specialization constant was set to a value of another type, or does not exist in the shader.
    #[error("specialization constant {0}")]
    Constant(String),
    /// A resource that is bound or is to be bound to a slot breaks a rule, or does not fit the program.
    #[error("binding {group}.{binding}{}: {problem}", if name.is_empty() { String::new() } else { format!(" ({name})") })]
    Binding {
        /// The descriptor set; `@group` in WGSL.
        group: u32,
        /// The binding in it.
        binding: u32,
        /// The name of the program's variable there, in errors of dispatches. Empty if it has none, and in others, such
        /// as those of submissions.
        name: String,
        /// The problem, with the resource's label if it has one, and the rule.
        problem: String,
    },
    /// A descriptor set, or a write to it, breaks a rule. The text names the set, the binding, the resource and the
    /// rule. When a dispatch uses a set, its errors are those of [`Error::Binding`].
    #[error("{0}")]
    Set(String),
    /// The push constants of a dispatch do not match the program's declaration.
    #[error("push constants: {0}")]
    Push(String),
    /// A context was requested with options that no device can have.
    #[error("{0}")]
    Options(String),
    /// A range is not inside its resource, is not aligned, or does not contain a whole number of elements. The text
    /// names the resource and the rule.
    #[error("{0}")]
    Range(String),
    /// The state of a resource forbids its use: it is destroyed or mapped. The text names the resource and the rule.
    #[error("{0}")]
    Resource(String),
    /// A rule of Vulkan that the driver checks.
    #[error("{0}")]
    Misuse(#[from] Misuse),
    /// A dispatch has several errors: at least two, of the kinds above, each on a line of the text.
    #[error("several errors:{}", _0.iter().map(|error| format!("\n  {error}")).collect::<String>())]
    Several(Vec<Error>),
    /// Device memory is exhausted, or the heap cannot be reserved. The text names the resource with its label.
    #[error("out of memory{}{_0}", if _0.is_empty() { "" } else { ": " })]
    OutOfMemory(String),
    /// The device is lost, with the reason: for example, a kernel took too long. Calls that submit commands or wait for
    /// them fail; calls that only record commands succeed. Contexts of other devices continue.
    #[error("device lost: {0}")]
    DeviceLost(String),
}

/// The tracker's rules, as errors quote them.
pub(crate) mod rule {
    /// No use after [`Buffer::destroy`](crate::Buffer::destroy).
    pub(crate) const DESTROYED: &str = "a destroyed resource is not used";
    /// Commands that use mapped resources.
    pub(crate) const MAPPED: &str =
        "a resource is used by commands while it is mapped only if the mapping is persistent";
    /// Two mappings of the same bytes.
    pub(crate) const MAPPED_TWICE: &str = "mapped ranges do not overlap";
    /// The kind of a bound resource.
    pub(crate) const KIND: &str = "a bound resource has the kind that the program declares";
    /// Descriptors that a program reads are bound.
    pub(crate) const BOUND: &str = "VUID-vkCmdDispatch-None-08114";
    /// No push constant is missing.
    pub(crate) const PUSH_SET: &str = "VUID-vkCmdDispatch-maintenance4-08602";
    /// No push constant is undeclared.
    pub(crate) const PUSH_DECLARED: &str = "VUID-vkCmdPushConstants-offset-01795";
    /// The size of a bound buffer.
    pub(crate) const BLOCK: &str = "a buffer has room for the fixed part of the block that it is bound for";
    /// The bindings of a dispatch.
    pub(crate) const DECLARED: &str = "a dispatch binds only what its program declares";
    /// The descriptors of a set that a dispatch uses. A set may have more of them here than the program declares.
    pub(crate) const SET_LAYOUT: &str = "VUID-vkCmdDispatch-None-08600";
    /// The layout of a set.
    pub(crate) const SET_LAYOUT_BINDINGS: &str =
        "a set has at least one descriptor, each binding once, and no more descriptors than the device allows";
    /// The descriptors of a set.
    pub(crate) const SET_DECLARED: &str = "a set names resources only for the descriptors of its layout";
    /// The kinds of descriptors of a set.
    pub(crate) const SET_KIND: &str = "a descriptor has the kind that the layout of its set declares";
    /// The descriptors of a set that cannot be written later.
    pub(crate) const SET_COMPLETE: &str = "a set that is not updatable has all descriptors when it is built";
    /// Writes to sets.
    pub(crate) const UPDATABLE: &str = "only a set that was built as updatable is written";
    /// Group and element numbers.
    pub(crate) const SLOT: &str = "slots lie within the device's limits";
    /// The bounds of ranges.
    pub(crate) const INSIDE: &str = "a range lies within its resource, and does not end before it begins";
    /// The number of bytes of a read.
    pub(crate) const WHOLE: &str = "bytes are read as a whole number of elements";
    /// The type of values that hold texels.
    pub(crate) const TEXEL: &str =
        "values of an image have its numeric type, or are unsigned and have the bits of a channel or of a texel";
    /// The layout of a Rust type for a block.
    pub(crate) const LAYOUT: &str = "a Rust type for a block has each number where the shader has it";
    /// The type of the host's values, and that of a handle.
    pub(crate) const CONTENTS: &str =
        "values that the host accesses have the type of the handle; `Buffer::untyped` is a handle without one";
    /// The length of the slice of a read.
    pub(crate) const SLICE: &str = "a slice that is read into has one place for each value";
    /// The number of bytes of a write to an image level.
    pub(crate) const LEVEL: &str = "a level is written as a whole";
    /// The length of a mapping.
    pub(crate) const NOT_EMPTY: &str = "a mapped range is not empty";
    /// Accesses through a mapping.
    pub(crate) const MAPPED_FOR: &str = "a mapping is read or written only if its flags allow it";
    /// The alignment of fills.
    pub(crate) const FILL: &str =
        "VUID-vkCmdFillBuffer-dstOffset-00025 and -size-00028: begin and end are multiples of 4";
    /// The numeric type of a clear colour.
    pub(crate) const COLOR: &str = "a clear colour has the numeric type of the format, as for VkClearColorValue";
    /// The sizes of image copies.
    pub(crate) const COPY_SIZES: &str = "source and target of a copy have the same size";
    /// The size of an image that a recorded copy fills or reads.
    pub(crate) const COPY_RECORDED: &str =
        "a recorded copy between a buffer and an image is submitted while the image has the size that it had then";
    /// The box of a copy between a buffer and an image.
    pub(crate) const BOX: &str = "a copied box has texels, and lies within its level";
    /// The rows of a copy in a buffer.
    pub(crate) const ROW_BYTES: &str = "rows of texels in a buffer begin at whole texels, and do not overlap \
         (as VUID-VkBufferImageCopy-bufferRowLength-09101)";
    /// The slices of a copy in a buffer.
    pub(crate) const SLICE_ROWS: &str =
        "slices of texels in a buffer do not overlap (as VUID-VkBufferImageCopy-bufferImageHeight-09102)";
    /// Copies within one resource.
    pub(crate) const COPY_OVERLAP: &str = "source and target of a copy do not overlap";
    /// The length of a lent part.
    pub(crate) const LENT: &str = "a lent range is not empty";
    /// Recording a command buffer while it is recorded.
    pub(crate) const RECORDING: &str = "a command buffer is recorded by one call at a time";
    /// Cyclic execution.
    pub(crate) const CYCLE: &str = "a command buffer does not execute itself, directly or through others";
    /// Nested command buffers.
    pub(crate) const NESTED: &str = "command buffers are nested at most 32 deep";
    /// The size of a submission.
    pub(crate) const PARTS: &str = "a submission has at most 65536 parts, nested command buffers included";
    /// The size of a mapped resource.
    pub(crate) const RESIZED: &str = "a resource is not respecified while it is mapped";
    /// The time limit of a hold, in tests.
    pub(crate) const HOLD_TIME: &str = "a wait for held batches has a time limit above 0";
    /// The device of a resource or program.
    pub(crate) const DEVICE: &str = "resources and programs are used only by contexts of the device that made them";
}

impl Error {
    pub(crate) fn binding(group: u32, binding: u32, problem: impl Into<String>) -> Self {
        Self::Binding { group, binding, name: String::new(), problem: problem.into() }
    }

    /// The same error, or errors, with the names that a program has for its bindings.
    pub(crate) fn with_names(self, name_of: &dyn Fn(u32, u32) -> String) -> Self {
        match self {
            Self::Binding { group, binding, problem, .. } => {
                Self::Binding { group, binding, name: name_of(group, binding), problem }
            }
            Self::Several(all) => Self::Several(all.into_iter().map(|error| error.with_names(name_of)).collect()),
            error => error,
        }
    }

    /// A problem with a slot; the text names its element unless it is the first.
    pub(crate) fn slot(slot: Slot, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        let problem = if slot.element == 0 { problem } else { format!("element {}: {problem}", slot.element) };
        Self::binding(slot.group, slot.binding, problem)
    }

    /// A slot breaks a rule.
    pub(crate) fn slot_rule(slot: Slot, problem: impl Into<String>, rule: &str) -> Self {
        Self::slot(slot, format!("{} (rule: {rule})", problem.into()))
    }

    /// The same error; for a lack of memory it names what the memory was requested for.
    pub(crate) fn for_memory_of(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::OutOfMemory(known) if known.is_empty() => Self::OutOfMemory(what()),
            error => error,
        }
    }

    /// The same error of the program with that label.
    pub(crate) fn of_program(self, label: &str) -> Self {
        let of = |text: String| format!("program `{label}`: {text}");
        match self {
            Self::Shader(error) => Self::Shader(front::Error { message: of(error.message), ..error }),
            Self::EntryPoint(text) => Self::EntryPoint(of(text)),
            Self::Constant(text) => Self::Constant(format!("{text} (program `{label}`)")),
            error => error.within(|| format!("program `{label}`")),
        }
    }

    /// The same error, with the place of the command in its problem. Other errors have it in their text.
    pub(crate) fn in_slot_at(self, place: impl FnOnce() -> String) -> Self {
        match self {
            Self::Binding { group, binding, name, problem } => {
                Self::Binding { group, binding, name, problem: format!("{}: {problem}", place()) }
            }
            Self::Misuse(misuse) => {
                Self::Misuse(Misuse { problem: format!("{}: {}", place(), misuse.problem), ..misuse })
            }
            Self::Set(text) => Self::Set(format!("{}: {text}", place())),
            Self::OutOfMemory(what) if what.is_empty() => Self::OutOfMemory(place()),
            Self::OutOfMemory(what) => Self::OutOfMemory(format!("{}: {what}", place())),
            error => error,
        }
    }

    /// The same error, with the place of the command in its text: in that of each, if there are several. Texts that
    /// have the place already stay as they are: many name the program.
    pub(crate) fn within(self, place: impl FnOnce() -> String) -> Self {
        let place = place();
        match self {
            Self::Several(all) => Self::Several(all.into_iter().map(|error| error.one_within(&place)).collect()),
            error => error.one_within(&place),
        }
    }

    /// As [`Error::within`], for one error.
    fn one_within(self, place: &str) -> Self {
        if self.to_string().contains(place) {
            return self;
        }
        // The place says that it is that of a dispatch, or of a program.
        let own = |text: &str| text.strip_prefix("dispatch: ").unwrap_or(text).to_owned();
        match self {
            Self::Range(text) => Self::Range(format!("{place}: {}", own(&text))),
            Self::Resource(text) => Self::Resource(format!("{place}: {}", own(&text))),
            Self::Push(text) => Self::Push(format!("{place}: {text}")),
            error => error.in_slot_at(|| place.to_owned()),
        }
    }

    pub(crate) fn range(problem: impl Into<String>, rule: &str) -> Self {
        Self::Range(format!("{} (rule: {rule})", problem.into()))
    }

    pub(crate) fn resource(problem: impl Into<String>, rule: &str) -> Self {
        Self::Resource(format!("{} (rule: {rule})", problem.into()))
    }
}

impl From<spelter_driver::Error> for Error {
    fn from(error: spelter_driver::Error) -> Self {
        match error {
            spelter_driver::Error::Misuse(misuse) => Self::Misuse(misuse),
            spelter_driver::Error::OutOfMemory => Self::OutOfMemory(String::new()),
            spelter_driver::Error::OutOfHostMemory(wanted) => {
                Self::OutOfMemory(format!("host memory, {} bytes", wanted.bytes))
            }
            spelter_driver::Error::OutOfPoolMemory(_) => Self::OutOfMemory("a descriptor pool".to_owned()),
            spelter_driver::Error::TooMuchPrivate(wanted) => Self::OutOfMemory(wanted.to_string()),
            spelter_driver::Error::Options(problem) => Self::Options(problem),
            spelter_driver::Error::DeviceLost(why) => Self::DeviceLost(why),
            spelter_driver::Error::Shader(error) => Self::Shader(error),
        }
    }
}

impl From<spelter_driver::OutOfHostMemory> for Error {
    fn from(wanted: spelter_driver::OutOfHostMemory) -> Self {
        spelter_driver::Error::from(wanted).into()
    }
}

/// The same text as [`Display`](fmt::Display), since a `main` that returns an error prints it by `Debug`: a shader
/// error keeps its lines.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
