//! Programs of commands: what queues and the host do, each with the bytes that it accesses.
//!
//! Resources have fixed names: buffers `a` to `h` of [`BUFFER`] bytes, images `i` to `l` of two layers, of which `h`
//! has the memory of `g`, and `l` that of `k`.

use spelter_driver::vk::{AccessFlags2, PipelineStageFlags2};

/// Bytes of a buffer.
pub const BUFFER: u64 = 256;

/// Number of buffers.
pub const BUFFERS: usize = 8;

/// Width and height of an image.
pub const SIDE: u32 = 8;

/// Number of images.
pub const IMAGES: usize = 4;

/// Layers of an image.
pub const LAYERS: u32 = 2;

/// A range of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The buffer.
    pub buffer: usize,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// A part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The image.
    pub image: usize,
    /// One layer; `None` is all.
    pub layer: Option<u32>,
    /// The upper left or the lower right quarter; `None` is the whole layer.
    pub quarter: Option<Quarter>,
}

/// A quarter of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quarter {
    /// The upper left one.
    First,
    /// The lower right one.
    Last,
}

/// What a dispatch of one invocation for each word does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Reads a storage buffer.
    Read(Range),
    /// Writes a storage buffer.
    Write(Range),
    /// Reads one and writes the other; both have one size.
    Move {
        /// What it reads.
        from: Range,
        /// What it writes.
        to: Range,
    },
    /// Reads each word of a storage buffer, and writes what it read plus 1, without an atomic.
    Increment(Range),
    /// Reads a uniform buffer.
    Uniform(Range),
    /// Reads a buffer as a uniform buffer, and then the same bytes as a storage buffer.
    Both(Range),
    /// Adds 1 to each word by an atomic.
    Atomic(Range),
    /// Writes each word, and then adds 1 to it by an atomic.
    Restart(Range),
    /// Reads each word, and then adds what it read by an atomic.
    Double(Range),
    /// Reads a storage texel buffer.
    Texels(Range),
    /// Takes an index from a counter in the first word of `counter`, by an atomic, and writes that word of `to`.
    Append {
        /// The counter.
        counter: usize,
        /// The words.
        to: usize,
    },
    /// Reads the workgroup counts of an indirect dispatch from the first 12 bytes, and does nothing else.
    Indirect(Range),
    /// Asks for the size of a storage image.
    Size(usize),
    /// Reads the first texel of a storage image.
    Load(usize),
    /// Writes the first texel of a storage image.
    Store(usize),
    /// Reads the first texel of a sampled image.
    Sample(usize),
}

/// A command of a command buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `vkCmdCopyBuffer`.
    Copy {
        /// What it reads.
        from: Range,
        /// What it writes.
        to: Range,
    },
    /// `vkCmdFillBuffer`.
    Fill(Range),
    /// `vkCmdUpdateBuffer`.
    Update(Range),
    /// `vkCmdCopyQueryPoolResults` of a timestamp, as 32 or 64 bits.
    Query(Range),
    /// A dispatch.
    Dispatch(Job),
    /// `vkCmdDispatchBase`, with a base that is not 0.
    DispatchBase(Job),
    /// `vkCmdCopyImage`.
    CopyImage {
        /// What it reads.
        from: Part,
        /// What it writes: of the same size.
        to: Part,
    },
    /// `vkCmdCopyBufferToImage`.
    Upload {
        /// What it reads.
        from: Range,
        /// What it writes.
        to: Part,
    },
    /// `vkCmdCopyImageToBuffer`.
    Download {
        /// What it reads.
        from: Part,
        /// What it writes.
        to: Range,
    },
    /// `vkCmdClearColorImage`.
    Clear(usize),
    /// `vkCmdPipelineBarrier2`.
    Barrier(Vec<Barrier>),
    /// `vkCmdPipelineBarrier`: the barriers have one pair of stage masks.
    OldBarrier(Vec<Barrier>),
    /// `vkCmdSetEvent2`.
    Set(usize, Vec<Barrier>),
    /// `vkCmdResetEvent2`.
    Reset(usize),
    /// `vkCmdWaitEvents2`: events, each with its barriers.
    Wait(Vec<(usize, Vec<Barrier>)>),
    /// `vkCmdExecuteCommands`.
    Execute(Vec<usize>),
}

/// One side of a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Stages.
    pub stages: PipelineStageFlags2,
    /// Accesses.
    pub access: AccessFlags2,
}

/// A memory, buffer or image barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// The first scope.
    pub src: Scope,
    /// The second scope.
    pub dst: Scope,
    /// The memory that it is for.
    pub memory: Memory,
}

/// The memory of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All memory.
    All,
    /// A range of a buffer.
    Buffer(Range),
    /// An image, or a layer of it.
    Image {
        /// The image.
        image: usize,
        /// The layer; `None` is all.
        layer: Option<u32>,
        /// Whether the layout changes.
        transition: bool,
    },
}

/// A command buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Its commands.
    pub commands: Vec<Command>,
    /// Whether it is secondary.
    pub secondary: bool,
}

/// A wait or signal operation of a submission, or of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The semaphore.
    pub semaphore: Semaphore,
    /// The stages; `ALL_COMMANDS` for the host.
    pub stages: PipelineStageFlags2,
}

/// A semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Semaphore {
    /// A binary one, by its number.
    Binary(usize),
    /// A timeline, by its number, and a value of it.
    Timeline(usize, u64),
}

/// A submission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Submit {
    /// The queue.
    pub queue: usize,
    /// What it waits for.
    pub waits: Vec<Signal>,
    /// Its command buffers.
    pub recordings: Vec<usize>,
    /// What it signals.
    pub signals: Vec<Signal>,
    /// The fence.
    pub fence: Option<usize>,
}

/// What the host does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Submits.
    Submit(Submit),
    /// Waits for a fence.
    WaitFence(usize),
    /// Waits until all queues are idle.
    WaitIdle,
    /// Waits for the value of a timeline.
    WaitSemaphore(usize, u64),
    /// Signals a timeline.
    SignalSemaphore(usize, u64),
    /// Sets an event.
    SetEvent(usize),
    /// Reads a buffer through `DeviceMemory::read`.
    Read(Range),
    /// Writes a buffer through `DeviceMemory::write`.
    Write(Range),
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The command buffers, by number.
    pub recordings: Vec<Recording>,
    /// What the host does, in this order.
    pub steps: Vec<Step>,
}

impl Range {
    /// All of a buffer.
    pub fn whole(buffer: usize) -> Self {
        Self { buffer, start: 0, end: BUFFER }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

impl Part {
    /// Whether the parts have one size.
    pub fn fits(&self, other: &Self) -> bool {
        self.layer.is_none() == other.layer.is_none() && self.quarter.is_none() == other.quarter.is_none()
    }
}
