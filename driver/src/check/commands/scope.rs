//! Pipeline stages and access types of a compute device, as sets.

use ash::vk::{AccessFlags2 as Access, PipelineStageFlags2 as Flags};

use crate::exec::Scope;

/// The pipeline stage in which a command, or the host, accesses memory (Vulkan, "Pipeline Stages").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    DrawIndirect,
    ComputeShader,
    Copy,
    Clear,
    /// Of a barrier: not a stage of Vulkan. It is one of all commands, so that semaphores and fences order it.
    LayoutTransition,
    Host,
}

impl Stage {
    pub(super) const ALL: [Self; 6] =
        [Self::DrawIndirect, Self::ComputeShader, Self::Copy, Self::Clear, Self::LayoutTransition, Self::Host];

    /// The flag without `VK_PIPELINE_STAGE_2_` and `_BIT`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DrawIndirect => "DRAW_INDIRECT",
            Self::ComputeShader => "COMPUTE_SHADER",
            Self::Copy => "COPY",
            Self::Clear => "CLEAR",
            Self::LayoutTransition => "the layout transition",
            Self::Host => "HOST",
        }
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Stages(u8);

impl Stages {
    pub(super) const NONE: Self = Self(0);
    /// `ALL_COMMANDS`: every stage of the device.
    pub(super) const COMMANDS: Self = Self(0b01_1111);

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

    pub(super) fn iter(self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |&stage| self.has(stage))
    }

    /// The stages that a first scope names: `BOTTOM_OF_PIPE` is all of them, `TOP_OF_PIPE` none.
    fn named_first(flags: Flags) -> Self {
        let all = if flags.contains(Flags::BOTTOM_OF_PIPE) { Self::COMMANDS } else { Self::NONE };
        Self::named(flags).or(all)
    }

    /// The stages that a second scope names: `TOP_OF_PIPE` is all of them, `BOTTOM_OF_PIPE` none.
    fn named_second(flags: Flags) -> Self {
        let all = if flags.contains(Flags::TOP_OF_PIPE) { Self::COMMANDS } else { Self::NONE };
        Self::named(flags).or(all)
    }

    /// A first synchronization scope: the stages that flags name, and logically earlier ones.
    pub(super) fn first_scope(flags: Flags) -> Self {
        let named = Self::named_first(flags);
        if named.has(Stage::ComputeShader) { named.or(Self::of(Stage::DrawIndirect)) } else { named }
    }

    /// A second synchronization scope: the stages that flags name, and logically later ones.
    pub(super) fn second_scope(flags: Flags) -> Self {
        let named = Self::named_second(flags);
        if named.has(Stage::DrawIndirect) { named.or(Self::of(Stage::ComputeShader)) } else { named }
    }

    /// The stages that flags name, without `TOP_OF_PIPE` and `BOTTOM_OF_PIPE`.
    fn named(flags: Flags) -> Self {
        let sets = [
            (Flags::ALL_COMMANDS, Self::COMMANDS),
            (Flags::DRAW_INDIRECT, Self::of(Stage::DrawIndirect)),
            (Flags::COMPUTE_SHADER, Self::of(Stage::ComputeShader)),
            (Flags::ALL_TRANSFER, Self::of(Stage::Copy).or(Self::of(Stage::Clear))),
            (Flags::COPY, Self::of(Stage::Copy)),
            (Flags::CLEAR, Self::of(Stage::Clear)),
            (Flags::HOST, Self::of(Stage::Host)),
        ];
        sets.into_iter().filter(|(flag, _)| flags.intersects(*flag)).fold(Self::NONE, |all, (_, set)| all.or(set))
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
    const READS: Self = Self(0b11_1111);
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
    /// The stages that the access scope is limited to: those that were named.
    pub(super) named: Stages,
    pub(super) accesses: Accesses,
}

impl Side {
    /// A first scope.
    pub(super) fn source(scope: Scope) -> Self {
        let (stages, named) = (Stages::first_scope(scope.stages), Stages::named_first(scope.stages));
        Self { stages, named, accesses: Accesses::named(scope.access) }
    }

    /// A second scope.
    pub(super) fn destination(scope: Scope) -> Self {
        let (stages, named) = (Stages::second_scope(scope.stages), Stages::named_second(scope.stages));
        Self { stages, named, accesses: Accesses::named(scope.access) }
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
    fn the_synchronization_scope_has_logically_earlier_and_later_stages() {
        let indirect = Side::destination(scope(Flags::DRAW_INDIRECT, Access::INDIRECT_COMMAND_READ));
        assert!(indirect.stages.has(Stage::ComputeShader) && !indirect.named.has(Stage::ComputeShader));
        assert!(!Side::destination(scope(Flags::COMPUTE_SHADER, Access::NONE)).stages.has(Stage::DrawIndirect));
        assert!(Side::source(scope(Flags::COMPUTE_SHADER, Access::NONE)).stages.has(Stage::DrawIndirect));
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
