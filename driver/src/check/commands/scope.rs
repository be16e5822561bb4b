//! Pipeline stages and access types of a compute device, as sets. Stages in which no command of this device accesses
//! memory are links of dependency chains: programs name those of graphics where a queue advertises it.

use ash::vk::{AccessFlags2 as Access, PipelineStageFlags2 as Flags};

use crate::exec::Scope;

/// The pipeline stage in which a command, or the host, accesses memory (Vulkan, "Pipeline Stages").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    DrawIndirect,
    /// Its order relative to other stages is unspecified, so that no scope gets it by logical order.
    ConditionalRendering,
    ComputeShader,
    Copy,
    Clear,
    /// Of a barrier: not a stage of Vulkan. It is one of all commands, so that semaphores and fences order it.
    LayoutTransition,
    Host,
}

impl Stage {
    pub(super) const ALL: [Self; 7] = [
        Self::DrawIndirect,
        Self::ConditionalRendering,
        Self::ComputeShader,
        Self::Copy,
        Self::Clear,
        Self::LayoutTransition,
        Self::Host,
    ];

    /// The flag without `VK_PIPELINE_STAGE_2_` and `_BIT`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DrawIndirect => "DRAW_INDIRECT",
            Self::ConditionalRendering => "CONDITIONAL_RENDERING",
            Self::ComputeShader => "COMPUTE_SHADER",
            Self::Copy => "COPY",
            Self::Clear => "CLEAR",
            Self::LayoutTransition => "the layout transition",
            Self::Host => "HOST",
        }
    }
}

/// The stages of the graphics pipeline after `DRAW_INDIRECT`, in logical order.
const GRAPHICS: [(Flags, &str); 10] = [
    (Flags::INDEX_INPUT, "INDEX_INPUT"),
    (Flags::VERTEX_ATTRIBUTE_INPUT, "VERTEX_ATTRIBUTE_INPUT"),
    (Flags::VERTEX_SHADER, "VERTEX_SHADER"),
    (Flags::TESSELLATION_CONTROL_SHADER, "TESSELLATION_CONTROL_SHADER"),
    (Flags::TESSELLATION_EVALUATION_SHADER, "TESSELLATION_EVALUATION_SHADER"),
    (Flags::GEOMETRY_SHADER, "GEOMETRY_SHADER"),
    (Flags::EARLY_FRAGMENT_TESTS, "EARLY_FRAGMENT_TESTS"),
    (Flags::FRAGMENT_SHADER, "FRAGMENT_SHADER"),
    (Flags::LATE_FRAGMENT_TESTS, "LATE_FRAGMENT_TESTS"),
    (Flags::COLOR_ATTACHMENT_OUTPUT, "COLOR_ATTACHMENT_OUTPUT"),
];

/// Transfer stages of no command of this device.
const TRANSFERS: [(Flags, &str); 2] = [(Flags::BLIT, "BLIT"), (Flags::RESOLVE, "RESOLVE")];

/// A set of stages: a bit for each [`Stage`], then for each of [`GRAPHICS`] and of [`TRANSFERS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Stages(u32);

impl Stages {
    pub(super) const NONE: Self = Self(0);
    /// `ALL_COMMANDS`: every stage of the device.
    pub(super) const COMMANDS: Self = Self(0b011_1111 | Self::GRAPHICS.0 | Self::TRANSFERS.0);
    const GRAPHICS: Self = Self(((1 << GRAPHICS.len()) - 1) << Stage::ALL.len());
    const TRANSFERS: Self = Self(((1 << TRANSFERS.len()) - 1) << (Stage::ALL.len() + GRAPHICS.len()));

    pub(super) fn of(stage: Stage) -> Self {
        Self(1 << stage as u8)
    }

    pub(super) fn has(self, stage: Stage) -> bool {
        self.0 >> stage as u8 & 1 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are in no other set.
    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The stages in which commands of this device access memory, and the host's.
    pub(super) fn iter(self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |&stage| self.has(stage))
    }

    /// `BOTTOM_OF_PIPE` in a first scope and `TOP_OF_PIPE` in a second one are all stages, without accesses.
    fn all_if(flags: Flags, end: Flags) -> Self {
        if flags.contains(end) { Self::COMMANDS } else { Self::NONE }
    }

    /// A first synchronization scope: the stages that flags name, and logically earlier ones.
    pub(super) fn first_scope(flags: Flags) -> Self {
        let named = Self::named(flags).or(Self::all_if(flags, Flags::BOTTOM_OF_PIPE));
        let graphics = named.and(Self::GRAPHICS);
        // All graphics stages up to the last one.
        let up_to = Self(u32::MAX.checked_shr(graphics.0.leading_zeros()).unwrap_or(0)).and(Self::GRAPHICS);
        let follows_indirect = named.has(Stage::ComputeShader) || !graphics.is_empty();
        let indirect = if follows_indirect { Self::of(Stage::DrawIndirect) } else { Self::NONE };
        named.or(up_to).or(indirect)
    }

    /// A second synchronization scope: the stages that flags name, and logically later ones.
    pub(super) fn second_scope(flags: Flags) -> Self {
        let named = Self::named(flags).or(Self::all_if(flags, Flags::TOP_OF_PIPE));
        if named.has(Stage::DrawIndirect) {
            return named.or(Self::of(Stage::ComputeShader)).or(Self::GRAPHICS);
        }
        // All graphics stages from the first one.
        let first = named.and(Self::GRAPHICS).0.trailing_zeros();
        named.or(Self(u32::MAX.checked_shl(first).unwrap_or(0)).and(Self::GRAPHICS))
    }

    /// The flags without `VK_PIPELINE_STAGE_2_` and `_BIT`, as a program may write them.
    pub(super) fn name(self) -> String {
        if self == Self::COMMANDS {
            return "ALL_COMMANDS".to_owned();
        }
        let drawing = Self::all_graphics();
        let transfers = Self::TRANSFERS.or(Self::of(Stage::Copy)).or(Self::of(Stage::Clear));
        let (mut left, mut names) = (self, Vec::new());
        for (all, name) in [(drawing, "ALL_GRAPHICS"), (transfers, "ALL_TRANSFER")] {
            if left.and(all) == all {
                names.push(name);
                left = left.without(all);
            }
        }
        names.extend(left.iter().map(Stage::name));
        let others = GRAPHICS.iter().chain(&TRANSFERS).zip(Stage::ALL.len()..);
        names.extend(others.filter(|(_, bit)| left.0 >> bit & 1 != 0).map(|((_, name), _)| *name));
        if names.is_empty() { "NONE".to_owned() } else { names.join(" | ") }
    }

    /// The stages that flags name. `TOP_OF_PIPE` and `BOTTOM_OF_PIPE` are none that accesses memory.
    fn named(flags: Flags) -> Self {
        let shaders = (2..6).fold(Self::NONE, |all, number| all.or(Self::other(number)));
        let sets = [
            (Flags::ALL_COMMANDS, Self::COMMANDS),
            (Flags::ALL_GRAPHICS, Self::all_graphics()),
            (Flags::VERTEX_INPUT, Self::other(0).or(Self::other(1))),
            (Flags::PRE_RASTERIZATION_SHADERS, shaders),
            (Flags::DRAW_INDIRECT, Self::of(Stage::DrawIndirect)),
            (Flags::CONDITIONAL_RENDERING_EXT, Self::of(Stage::ConditionalRendering)),
            (Flags::COMPUTE_SHADER, Self::of(Stage::ComputeShader)),
            (Flags::ALL_TRANSFER, Self::TRANSFERS.or(Self::of(Stage::Copy)).or(Self::of(Stage::Clear))),
            (Flags::COPY, Self::of(Stage::Copy)),
            (Flags::CLEAR, Self::of(Stage::Clear)),
            (Flags::HOST, Self::of(Stage::Host)),
        ];
        let others =
            GRAPHICS.iter().chain(&TRANSFERS).enumerate().map(|(number, (flag, _))| (*flag, Self::other(number)));
        let all = sets.into_iter().chain(others);
        all.filter(|(flag, _)| flags.intersects(*flag)).fold(Self::NONE, |all, (_, set)| all.or(set))
    }

    /// `ALL_GRAPHICS`.
    fn all_graphics() -> Self {
        Self::GRAPHICS.or(Self::of(Stage::DrawIndirect)).or(Self::of(Stage::ConditionalRendering))
    }

    /// A stage of [`GRAPHICS`] or, after those, of [`TRANSFERS`].
    fn other(number: usize) -> Self {
        Self(1 << (Stage::ALL.len() + number))
    }
}

/// A set of access types (Vulkan, "Access Types").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Accesses(u16);

impl Accesses {
    pub(super) const NONE: Self = Self(0);
    pub(super) const INDIRECT_READ: Self = Self(1);
    pub(super) const UNIFORM_READ: Self = Self(1 << 1);
    pub(super) const SAMPLED_READ: Self = Self(1 << 2);
    pub(super) const STORAGE_READ: Self = Self(1 << 3);
    pub(super) const TRANSFER_READ: Self = Self(1 << 4);
    pub(super) const HOST_READ: Self = Self(1 << 5);
    pub(super) const STORAGE_WRITE: Self = Self(1 << 6);
    pub(super) const TRANSFER_WRITE: Self = Self(1 << 7);
    pub(super) const HOST_WRITE: Self = Self(1 << 8);
    pub(super) const CONDITIONAL_READ: Self = Self(1 << 9);
    const READS: Self = Self(0b10_0011_1111);
    const WRITES: Self = Self(0b1_1100_0000);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether some of the accesses write.
    pub(super) fn writes(self) -> bool {
        self.0 & Self::WRITES.0 != 0
    }

    /// The access types that flags name.
    pub(super) fn named(flags: Access) -> Self {
        let sets = [
            (Access::MEMORY_READ, Self::READS),
            (Access::MEMORY_WRITE, Self::WRITES),
            (Access::INDIRECT_COMMAND_READ, Self::INDIRECT_READ),
            (Access::UNIFORM_READ, Self::UNIFORM_READ),
            (Access::SHADER_READ, Self::SAMPLED_READ.or(Self::STORAGE_READ)),
            (Access::SHADER_SAMPLED_READ, Self::SAMPLED_READ),
            (Access::SHADER_STORAGE_READ, Self::STORAGE_READ),
            (Access::TRANSFER_READ, Self::TRANSFER_READ),
            (Access::HOST_READ, Self::HOST_READ),
            (Access::CONDITIONAL_RENDERING_READ_EXT, Self::CONDITIONAL_READ),
            (Access::SHADER_WRITE, Self::STORAGE_WRITE),
            (Access::SHADER_STORAGE_WRITE, Self::STORAGE_WRITE),
            (Access::TRANSFER_WRITE, Self::TRANSFER_WRITE),
            (Access::HOST_WRITE, Self::HOST_WRITE),
        ];
        sets.into_iter().filter(|(flag, _)| flags.intersects(*flag)).fold(Self::NONE, |all, (_, set)| all.or(set))
    }

    /// The flags without `VK_ACCESS_2_` and `_BIT`.
    pub(super) fn name(self) -> String {
        let names = [
            (Self::INDIRECT_READ, "INDIRECT_COMMAND_READ"),
            (Self::CONDITIONAL_READ, "CONDITIONAL_RENDERING_READ"),
            (Self::UNIFORM_READ, "UNIFORM_READ"),
            (Self::SAMPLED_READ, "SHADER_SAMPLED_READ"),
            (Self::STORAGE_READ, "SHADER_STORAGE_READ"),
            (Self::TRANSFER_READ, "TRANSFER_READ"),
            (Self::HOST_READ, "HOST_READ"),
            (Self::STORAGE_WRITE, "SHADER_STORAGE_WRITE"),
            (Self::TRANSFER_WRITE, "TRANSFER_WRITE"),
            (Self::HOST_WRITE, "HOST_WRITE"),
        ];
        let names: Vec<_> = names.into_iter().filter(|(set, _)| self.has(*set)).map(|(_, name)| name).collect();
        if names.is_empty() { "NONE".to_owned() } else { names.join(" | ") }
    }
}

/// One side of a memory dependency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Side {
    /// The synchronization scope: with the logically earlier stages of a source, the logically later ones of a
    /// destination.
    pub(super) stages: Stages,
    /// The stages that the access scope is limited to: those that were named, without the ends of the pipeline.
    pub(super) named: Stages,
    pub(super) accesses: Accesses,
}

impl Side {
    /// A first scope.
    pub(super) fn source(scope: Scope) -> Self {
        let (stages, named) = (Stages::first_scope(scope.stages), Stages::named(scope.stages));
        Self { stages, named, accesses: Accesses::named(scope.access) }
    }

    /// A second scope.
    pub(super) fn destination(scope: Scope) -> Self {
        let (stages, named) = (Stages::second_scope(scope.stages), Stages::named(scope.stages));
        Self { stages, named, accesses: Accesses::named(scope.access) }
    }

    /// The stage mask: the ends of the pipeline are the stages that they stand for.
    pub(super) fn mask(&self) -> Stages {
        if self.stages.and(Stages::COMMANDS) == Stages::COMMANDS { self.stages } else { self.named }
    }

    /// Both sides together.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            stages: self.stages.or(other.stages),
            named: self.named.or(other.named),
            accesses: self.accesses.or(other.accesses),
        }
    }

    /// One stage with some accesses.
    pub(super) fn of(stage: Stage, accesses: Accesses) -> Self {
        Self { stages: Stages::of(stage), named: Stages::of(stage), accesses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(stages: Flags, access: Access) -> Scope {
        Scope { stages, access }
    }

    #[test]
    fn the_ends_of_the_pipeline_are_all_commands_on_one_side_and_none_on_the_other() {
        let (top, bottom) = (Flags::TOP_OF_PIPE, Flags::BOTTOM_OF_PIPE);
        assert_eq!(Side::source(scope(top, Access::NONE)).stages, Stages::NONE);
        assert_eq!(Side::source(scope(bottom, Access::NONE)).stages, Stages::COMMANDS);
        assert_eq!(Side::destination(scope(top, Access::NONE)).stages, Stages::COMMANDS);
        assert_eq!(Side::destination(scope(bottom, Access::NONE)).stages, Stages::NONE);
    }

    #[test]
    fn the_ends_of_the_pipeline_have_no_accesses() {
        let ends = Flags::TOP_OF_PIPE | Flags::BOTTOM_OF_PIPE;
        let with = |stages| [Side::source, Side::destination].map(|side| side(scope(stages, Access::MEMORY_WRITE)));
        assert_eq!(with(ends).map(|side| (side.stages, side.named)), [(Stages::COMMANDS, Stages::NONE); 2]);
        let copy = Stages::of(Stage::Copy);
        assert_eq!(with(ends | Flags::COPY).map(|side| (side.stages, side.named)), [(Stages::COMMANDS, copy); 2]);
        assert_eq!([ends, Flags::COPY].map(|stages| with(stages)[0].mask()), [Stages::COMMANDS, copy]);
    }

    #[test]
    fn the_synchronization_scope_has_logically_earlier_and_later_stages() {
        let indirect = Side::destination(scope(Flags::DRAW_INDIRECT, Access::INDIRECT_COMMAND_READ));
        assert!(indirect.stages.has(Stage::ComputeShader) && !indirect.named.has(Stage::ComputeShader));
        assert!(!Side::destination(scope(Flags::COMPUTE_SHADER, Access::NONE)).stages.has(Stage::DrawIndirect));
        assert!(Side::source(scope(Flags::COMPUTE_SHADER, Access::NONE)).stages.has(Stage::DrawIndirect));
    }

    #[test]
    fn graphics_stages_are_links_of_chains() {
        let (fragment, vertex) = (Flags::FRAGMENT_SHADER, Flags::VERTEX_SHADER);
        let meets = |dst, src| !Stages::second_scope(dst).and(Stages::first_scope(src)).is_empty();
        assert!(meets(fragment, fragment) && meets(vertex, fragment) && meets(fragment, vertex | fragment));
        assert!(!meets(fragment, vertex), "it is logically earlier");
        assert!(!meets(fragment, Flags::COMPUTE_SHADER) && !meets(fragment, Flags::ALL_TRANSFER));
        assert!(meets(Flags::DRAW_INDIRECT, vertex) && meets(Flags::BLIT, Flags::ALL_TRANSFER));
        assert!(meets(Flags::VERTEX_INPUT, Flags::PRE_RASTERIZATION_SHADERS));
        assert!(Stages::second_scope(Flags::ALL_GRAPHICS).has(Stage::ComputeShader));
        let drawing = Stages::named(Flags::ALL_GRAPHICS);
        assert!(drawing.has(Stage::DrawIndirect) && !drawing.has(Stage::ComputeShader) && !drawing.has(Stage::Copy));
        assert_eq!([drawing, Stages::named(fragment)].map(Stages::name), ["ALL_GRAPHICS", "FRAGMENT_SHADER"]);
    }

    #[test]
    fn all_commands_exclude_the_host_and_general_accesses_include_all_of_a_kind() {
        assert!(!Side::source(scope(Flags::ALL_COMMANDS, Access::NONE)).stages.has(Stage::Host));
        let all = Side::source(scope(Flags::ALL_COMMANDS, Access::MEMORY_WRITE)).accesses;
        assert!(all.has(Accesses::STORAGE_WRITE) && all.has(Accesses::TRANSFER_WRITE));
        assert!(!all.has(Accesses::STORAGE_READ));
        let shader = Side::destination(scope(Flags::COMPUTE_SHADER, Access::SHADER_READ)).accesses;
        assert!(shader.has(Accesses::STORAGE_READ) && !shader.has(Accesses::UNIFORM_READ));
    }
}
