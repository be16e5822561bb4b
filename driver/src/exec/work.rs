//! What a queue is asked to run: commands with everything resolved at record time.
//!
//! A batch is a list of recordings, a recording a list of phases, a phase a list of commands that may overlap. All of it
//! is immutable, so a recording is shared by every submission of its command buffer and by every worker that runs it.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use spelter_shaders::abi::{MAX_PUSH_BYTES, MAX_WORKGROUPS};
use spelter_shaders::back::Code;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;

use crate::descriptor::Sources;
use crate::memory::Heap;
use crate::query::QueryWork;
use crate::sync::{Counter, FenceState, Target};

use super::Phases;

/// The most workgroups in one dimension (`maxComputeWorkGroupCount`). A dispatch above it runs nothing.
pub(crate) const MAX_GROUPS: u32 = MAX_WORKGROUPS;

/// One command, ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// `vkCmdDispatch`, `vkCmdDispatchBase`, `vkCmdDispatchIndirect`.
    Dispatch(DispatchWork),
    /// One region of `vkCmdCopyBuffer`. The slices have equal lengths (the shorter one counts) and do not overlap
    /// (VUID-vkCmdCopyBuffer-pRegions-00117): where they do, every byte of `to` becomes some byte of `from`, old or new.
    Copy {
        /// The bytes to read.
        from: GuestSlice,
        /// Where they go.
        to: GuestSlice,
    },
    /// `vkCmdFillBuffer`: a repeated word; a rest of less than a word is left alone.
    Fill {
        /// The bytes to write.
        to: GuestSlice,
        /// What they become.
        word: u32,
    },
    /// One region of a copy from or to an image.
    Rows(Box<RowsWork>),
    /// One level of an image, or a part, that becomes one texel all over.
    Clear(Box<ClearWork>),
    /// `vkCmdSetEvent`, `vkCmdResetEvent`: alone in its phase.
    Event {
        /// 1 while the event is set.
        event: Arc<Counter>,
        /// What it becomes.
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
        /// What they become; cut at the end of `to`.
        bytes: Arc<[u8]>,
    },
}

impl Work {
    /// The kernel, or the kind of transfer; for timelines.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dispatch(dispatch) => &dispatch.bound.name,
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

    /// Bytes that a transfer writes; 0 of anything else.
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

/// Rows at equal distances in slices at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// The memory.
    pub(crate) slice: GuestSlice,
    /// First byte of the first row.
    pub(crate) first: u64,
    /// Bytes from a row to the next.
    pub(crate) row_pitch: u64,
    /// Bytes from a slice to the next.
    pub(crate) slice_pitch: u64,
    /// Rows of a slice; at least 1.
    pub(crate) height: u64,
    /// All rows.
    pub(crate) rows: u64,
}

impl Grid {
    /// Where a row begins.
    pub(crate) fn at(&self, row: u64) -> u64 {
        self.first + row / self.height * self.slice_pitch + row % self.height * self.row_pitch
    }
}

/// Rows of texels from one place to another: as many as `to` has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsWork {
    /// Rows to read.
    pub(crate) from: Grid,
    /// Rows to write; they do not overlap those.
    pub(crate) to: Grid,
    /// Bytes of a row.
    pub(crate) row_bytes: u64,
}

/// Rows that all become the same.
#[derive(Clone, Debug)]
pub(crate) struct ClearWork {
    /// Rows to write.
    pub(crate) to: Grid,
    /// What each becomes.
    pub(crate) row: Arc<[u8]>,
}

/// The source of a kernel, for messages.
pub(crate) trait Places: Send + Sync {
    /// The place in it that belongs to a word ([`Stop::word`](spelter_shaders::abi::Stop::word)), if it is known.
    fn place(&self, word: u32) -> Option<String>;
}

/// What stands bound when a dispatch is recorded: its pipeline, descriptors and push constants. Dispatches share it that
/// follow one another with nothing bound between them.
#[derive(Clone)]
pub(crate) struct Bound {
    /// The entry point, for messages.
    pub(crate) name: Arc<str>,
    /// The kernel.
    pub(crate) code: Arc<dyn Code>,
    /// Where it comes from, for messages: the pipeline's, while there is one.
    pub(crate) source: Option<Weak<dyn Places>>,
    /// One slice for each descriptor, in the order of the kernel's bindings.
    pub(crate) buffers: Arc<[GuestSlice]>,
    /// Images and samplers by the same numbers; empty if the kernel has none.
    pub(crate) images: Arc<[Descriptor]>,
    /// What else it may access, if it goes through addresses, and the heap that this is part of.
    pub(crate) addresses: Option<Arc<Heap>>,
    /// Where both come from, if a submission has to look again.
    pub(crate) late: Option<Arc<Sources>>,
    /// Push constants as they were when the dispatch was recorded.
    pub(crate) push: Arc<[u8; MAX_PUSH_BYTES]>,
}

/// A dispatch.
#[derive(Clone)]
pub(crate) struct DispatchWork {
    /// Of what.
    pub(crate) bound: Arc<Bound>,
    /// The first workgroup (`vkCmdDispatchBase`).
    pub(crate) base: [u32; 3],
    /// How many workgroups.
    pub(crate) groups: Groups,
    /// What must hold for it to run at all.
    pub(crate) condition: Option<Condition>,
}

/// `vkCmdBeginConditionalRenderingEXT`: whether dispatches run, read when their phase starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// One word.
    pub(crate) word: GuestSlice,
    /// Whether they run if the word is 0, and not if it is anything else.
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
        write!(f, "dispatch `{}` base {:?} groups {:?}", self.bound.name, self.base, self.groups)
    }
}

/// Where a dispatch's size comes from.
#[derive(Clone, Debug)]
pub(crate) enum Groups {
    /// Known when recorded. A zero in any dimension means nothing runs.
    Direct([u32; 3]),
    /// Three words (`VkDispatchIndirectCommand`), read when the phase starts.
    Indirect(GuestSlice),
}

/// What a command buffer records: immutable, shared by every submission of it.
#[derive(Default)]
pub(crate) struct Recording {
    /// Run in order, each after the one before it has ended.
    pub(crate) phases: Phases,
    /// What the program calls transfers, by phase and place in it; for timelines. Dispatches have that in their names.
    pub(crate) labels: BTreeMap<(usize, usize), Arc<str>>,
    /// Whatever the slices in `phases` point into.
    pub(crate) keep_alive: Vec<Arc<dyn Any + Send + Sync>>,
    /// Whether a dispatch has descriptors that a submission has to look at again.
    pub(crate) late: bool,
}

impl Recording {
    /// What a command is called in timelines.
    pub(crate) fn name(&self, phase: usize, command: usize) -> Cow<'_, str> {
        let name = self.phases[phase][command].name();
        match self.labels.get(&(phase, command)) {
            Some(label) => format!("{label}: {name}").into(),
            None => name.into(),
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("phases", &self.phases).field("keep_alive", &self.keep_alive.len()).finish()
    }
}

/// One submission. Its serial counts up per queue; semaphores and fence are signalled when it has retired.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// What has to happen before it starts.
    pub(crate) waits: Vec<Target>,
    /// Run one after the other, as if a barrier lay between them.
    pub(crate) recordings: Vec<Arc<Recording>>,
    /// Raised at the end, unless the device is lost.
    pub(crate) signals: Vec<Target>,
    /// Signalled at the end, or told that the device is lost.
    pub(crate) fence: Option<Arc<FenceState>>,
}
