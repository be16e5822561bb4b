//! Random kernels in SPIR-V: what checked mode reports about them on each engine, compared with the axioms on the
//! execution of that engine.
//!
//! A kernel is a list of instructions: accesses of buffers, texels and workgroup variables, atomics, memory barriers
//! and control barriers, some in loops, some after which invocations return. Which invocations execute an access, and
//! where, is a constant of the kernel or in its push constants, so that each launch of it is another
//! [`Program`](super::Program). Each instruction has a line of its own, and reports are compared by lines.
//!
//! ```
//! use spelter_tests::checked::{Counts, Engines};
//!
//! let mut engines = Engines::new();
//! let counts = engines.compare(0..16);
//! assert_eq!((counts.programs, counts.defects()), (16, 0));
//! ```

mod compare;
mod counts;
mod engine;
mod generate;
mod launch;
mod text;
mod watcher;

use cranelift_entity::PrimaryMap;
use spelter_shaders::ir::{Site, SiteAction};

use self::launch::{APART, FIRST, OVERLAP, TEXELS};
use super::operations::Rules;
use super::{Effect, Shape};

pub use compare::Engines;
pub use counts::{Counts, Defect};

/// Launches of a kernel, each with push constants and an order of its own.
const LAUNCHES: u64 = 128;

/// Words of each buffer, image and workgroup variable.
const WORDS: u32 = 128;

/// Words at the beginning of a memory that any invocation may access; those after them are for one lane each.
const SHARED_WORDS: u32 = 4;

/// Words of push constants.
const PUSH_WORDS: usize = 64;

/// Invocations of a subgroup; a kernel's agents are the first lanes of each, and the others only meet them at barriers.
const LANES: u32 = 16;

/// A kernel whose invocations do what its push constants say.
#[derive(Debug)]
struct RandomKernel {
    /// Its agents.
    shape: Shape,
    rules: Rules,
    second: Second,
    /// The buffer through which it never writes, if there is one.
    only_read: Option<Home>,
    /// Whether the texels are a buffer's.
    texel_buffer: bool,
    /// Whether the buffers and the image are `Coherent`; by the rules of the Vulkan memory model accesses say so
    /// themselves.
    coherent: [bool; 3],
    /// In the order of the text.
    parts: Vec<Part>,
    instructions: PrimaryMap<Site, Instruction>,
}

/// Instructions that are executed together, in a loop if there is more than one round.
#[derive(Debug)]
struct Part {
    rounds: u32,
    instructions: Vec<Site>,
    /// After a round some agents return: the first word of push constants that says which, and the words of a round.
    returns: Option<(u32, u32)>,
}

#[derive(Debug)]
struct Instruction {
    action: SiteAction,
    effect: Effect,
    /// The memory that it accesses.
    access: Option<(Home, Place)>,
    agents: Agents,
    /// A small number that it writes or compares with.
    value: u32,
    /// Its first word of push constants, and the words of a round.
    push: Option<(u32, u32)>,
}

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    First,
    Second,
    Texels,
    Tile,
    Other,
}

/// What the second buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    /// Words of another memory.
    Apart,
    /// The words of the first one.
    Alias,
    /// The words of the first one but for the first two, and two after them.
    Overlap,
    /// Elements of this many bytes in the memory of the first one.
    Elements(u32),
    /// Elements of this many bytes in another memory.
    ElementsApart(u32),
}

impl Second {
    /// Whether it has words of the first one.
    fn shares_words(self) -> bool {
        matches!(self, Self::Alias | Self::Overlap)
    }
}

/// Where an instruction accesses its memory.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The push constants say it.
    Pushed,
    /// At an element.
    Element(u32),
    /// At the element of the lane that is this many further in the workgroup; each workgroup has elements of its own
    /// if they are apart.
    Lane { further: u32, apart: bool },
}

/// Which invocations execute an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agents {
    /// The push constants say it.
    Pushed,
    /// One of each workgroup.
    One(u32),
    /// All agents.
    All,
    /// All invocations of the workgroup.
    Everything,
}

impl Home {
    const ALL: [Self; 5] = [Self::First, Self::Second, Self::Texels, Self::Tile, Self::Other];

    fn is_of_device(self) -> bool {
        matches!(self, Self::First | Self::Second | Self::Texels)
    }
}

impl RandomKernel {
    /// Invocations of a workgroup.
    fn size(&self) -> u32 {
        let subgroups = self.shape.invocations.div_ceil(self.shape.subgroup_size);
        let last = self.shape.invocations - (subgroups - 1) * self.shape.subgroup_size;
        (subgroups - 1) * LANES + last
    }

    /// Whether all invocations are agents.
    fn are_all_agents(&self) -> bool {
        self.size() == self.shape.invocations
    }

    /// The local index of an agent.
    fn local_index(&self, agent: u32) -> u32 {
        agent / self.shape.subgroup_size * LANES + agent % self.shape.subgroup_size
    }

    /// Bytes of an element.
    fn element_bytes(&self, home: Home) -> u32 {
        match (home, self.second) {
            (Home::Second, Second::Elements(bytes) | Second::ElementsApart(bytes)) => bytes,
            _ => 4,
        }
    }

    /// Accesses that one execution of an instruction is: plain ones of 64 bits are of two words.
    fn accesses(&self, action: SiteAction, access: Option<(Home, Place)>) -> usize {
        let is_wide = access.is_some_and(|(home, _)| self.element_bytes(home) == 8);
        1 + usize::from(is_wide && matches!(action, SiteAction::Read(_) | SiteAction::Write(_)))
    }

    /// Where device memory begins: an offset of the engine's memory.
    fn start(&self, home: Home) -> u64 {
        match (home, self.second) {
            (Home::Second, Second::Apart | Second::ElementsApart(_)) => APART,
            (Home::Second, Second::Overlap) => FIRST + OVERLAP,
            // A texel buffer may be a view of the first buffer.
            (Home::Texels, Second::Apart | Second::ElementsApart(_)) => TEXELS,
            (Home::Texels, _) if !self.texel_buffer => TEXELS,
            _ => FIRST,
        }
    }

    /// The memories of its accesses, in the order of the text.
    fn homes(&self) -> impl Iterator<Item = Home> {
        let sites = self.parts.iter().flat_map(|part| &part.instructions);
        sites.filter_map(|&site| self.instructions[site].access).map(|(home, _)| home)
    }

    fn uses(&self, home: Home) -> bool {
        self.homes().any(|used| used == home)
    }

    /// The first element for a lane of its own.
    fn first_of_lanes(&self, home: Home) -> u32 {
        SHARED_WORDS * 4 / self.element_bytes(home)
    }
}
