//! The commands that a queue runs, with everything resolved at record time.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_shaders::back::Code;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;

use crate::memory::Heap;
use crate::query::QueryWork;
use crate::sync::Counter;

/// One command, ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// `vkCmdDispatch`, `vkCmdDispatchBase`, `vkCmdDispatchIndirect`.
    Dispatch(DispatchWork),
    /// One region of `vkCmdCopyBuffer`. The slices have equal lengths (the shorter one counts) and do not overlap
    /// (VUID-vkCmdCopyBuffer-pRegions-00117): if they do, every byte of `to` becomes some byte of `from`, old or new.
    Copy {
        /// The bytes to read.
        from: GuestSlice,
        /// The bytes to write.
        to: GuestSlice,
    },
    /// `vkCmdFillBuffer`: a repeated word; a remainder of less than a word is not written.
    Fill {
        /// The bytes to write.
        to: GuestSlice,
        /// The value.
        word: u32,
    },
    /// One region of a copy from or to an image.
    Rows(Box<RowsWork>),
    /// One level of an image, or a part of it, filled with one texel.
    Clear(Box<ClearWork>),
    /// `vkCmdSetEvent`, `vkCmdResetEvent`: alone in its phase.
    Event {
        /// 1 while the event is set.
        event: Arc<Counter>,
        /// The new state.
        set: bool,
    },
    /// `vkCmdWaitEvents`: alone in its phase, which starts when all of them are set.
    WaitEvents(Arc<[Arc<Counter>]>),
    /// A command on queries: alone in its phase.
    Query(QueryWork),
    /// `vkCmdUpdateBuffer`.
    Update {
        /// The bytes to write.
        to: GuestSlice,
        /// Their values; cut at the end of `to`.
        bytes: Arc<[u8]>,
    },
}

impl Work {
    /// The kernel, or the kind of transfer; for timelines.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dispatch(dispatch) => &dispatch.state.name,
            Self::Copy { .. } => "copy",
            Self::Fill { .. } => "fill",
            Self::Update { .. } => "update",
            Self::Rows(_) => "copy image",
            Self::Clear(_) => "clear image",
            Self::Event { set: true, .. } => "set event",
            Self::Event { set: false, .. } => "reset event",
            Self::WaitEvents(_) => "wait for events",
            Self::Query(query) => query.name(),
        }
    }

    /// Bytes for observers: those bound to a dispatch, those that a transfer writes.
    pub(crate) fn touched_bytes(&self) -> u64 {
        match self {
            Self::Dispatch(dispatch) => dispatch.state.buffers.iter().map(|buffer| buffer.len()).sum(),
            work => work.bytes(),
        }
    }

    /// Bytes that a transfer writes; 0 for other commands.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Dispatch(_) | Self::Event { .. } | Self::WaitEvents(_) | Self::Query(_) => 0,
            Self::Copy { from, to } => from.len().min(to.len()),
            Self::Fill { to, .. } => to.len(),
            Self::Update { to, bytes } => to.len().min(bytes.len() as u64),
            Self::Rows(rows) => rows.to.rows.saturating_mul(rows.row_bytes),
            Self::Clear(clear) => clear.to.rows.saturating_mul(clear.row.len() as u64),
        }
    }
}

/// Rows with a constant pitch in slices with a constant pitch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// The memory.
    pub(crate) slice: GuestSlice,
    /// First byte of the first row.
    pub(crate) first: u64,
    /// Bytes from one row to the next.
    pub(crate) row_pitch: u64,
    /// Bytes from one slice to the next.
    pub(crate) slice_pitch: u64,
    /// Rows per slice; at least 1.
    pub(crate) height: u64,
    /// Number of rows in all slices.
    pub(crate) rows: u64,
}

impl Grid {
    /// Offset of a row's first byte.
    pub(crate) fn at(&self, row: u64) -> u64 {
        self.first + row / self.height * self.slice_pitch + row % self.height * self.row_pitch
    }
}

/// A copy of rows of texels: as many as `to` has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsWork {
    /// Rows to read.
    pub(crate) from: Grid,
    /// Rows to write; they do not overlap `from`.
    pub(crate) to: Grid,
    /// Bytes per row.
    pub(crate) row_bytes: u64,
}

/// Rows that all get the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct ClearWork {
    /// Rows to write.
    pub(crate) to: Grid,
    /// The bytes of each.
    pub(crate) row: Arc<[u8]>,
}

/// The source of a kernel, for messages.
pub(crate) trait SourceLocations: Send + Sync {
    /// The location that belongs to a word of the module ([`Stop::word`](spelter_shaders::abi::Stop::word)), if known.
    fn location(&self, word: u32) -> Option<String>;
}

/// Descriptors that a submission has to read again, since their sets may be updated after they are bound.
pub(crate) trait LateDescriptors: Send + Sync {
    /// Reads the sets now and passes the owners of what the descriptors refer to to `keep`. The results are
    /// [`DispatchState::buffers`] and [`DispatchState::images`].
    fn resolve(&self, keep: &mut dyn FnMut(Arc<dyn Any + Send + Sync>)) -> (Arc<[GuestSlice]>, Arc<[Descriptor]>);
}

/// State bound when a dispatch is recorded: its pipeline, descriptors and push constants. Consecutive dispatches share
/// it while nothing is bound between them.
#[derive(Clone)]
pub(crate) struct DispatchState {
    /// The entry point, for messages.
    pub(crate) name: Arc<str>,
    /// The program's name of the pipeline; `None` unless the device checks.
    pub(crate) pipeline_name: Option<Arc<str>>,
    /// The same of its shader module.
    pub(crate) module_name: Option<Arc<str>>,
    /// The kernel.
    pub(crate) code: Arc<dyn Code>,
    /// The pipeline in reports to observers; 0 on a device without observer.
    pub(crate) pipeline: u64,
    /// The shader's source, for messages: the pipeline's, while the pipeline exists.
    pub(crate) source: Option<Weak<dyn SourceLocations>>,
    /// One slice for each descriptor, in the order of the kernel's bindings.
    pub(crate) buffers: Arc<[GuestSlice]>,
    /// Images and samplers, with the same indices; empty if the kernel has none.
    pub(crate) images: Arc<[Descriptor]>,
    /// The heap whose address ranges the kernel may access, if it uses buffer device addresses.
    pub(crate) addresses: Option<Arc<Heap>>,
    /// Source of `buffers` and `images`, if a submission has to read the descriptors again.
    pub(crate) late: Option<Arc<dyn LateDescriptors>>,
    /// Push constants as they were when the dispatch was recorded.
    pub(crate) push: Arc<[u8; MAX_PUSH_BYTES]>,
}

/// A dispatch.
#[derive(Clone)]
pub(crate) struct DispatchWork {
    /// The bound state.
    pub(crate) state: Arc<DispatchState>,
    /// The first workgroup (`vkCmdDispatchBase`).
    pub(crate) base: [u32; 3],
    /// The number of workgroups.
    pub(crate) groups: Groups,
    /// The condition for it to run at all.
    pub(crate) condition: Option<Condition>,
}

/// `vkCmdBeginConditionalRenderingEXT`: whether dispatches run, read when their phase starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// One word.
    pub(crate) word: GuestSlice,
    /// Whether dispatches run if the word is 0, instead of if it is not.
    pub(crate) inverted: bool,
}

impl Condition {
    /// Whether dispatches run now.
    pub(crate) fn holds(&self) -> bool {
        (self.word.load_u32(0) != 0) != self.inverted
    }
}

impl fmt::Debug for DispatchWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dispatch `{}` base {:?} groups {:?}", self.state.name, self.base, self.groups)
    }
}

/// Source of a dispatch's size.
#[derive(Clone, Debug)]
pub(crate) enum Groups {
    /// Known when recorded. If any dimension is zero, nothing runs.
    Direct([u32; 3]),
    /// Three words (`VkDispatchIndirectCommand`), read when the phase starts.
    Indirect(GuestSlice),
}
