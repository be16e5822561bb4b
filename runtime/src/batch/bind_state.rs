//! The bind state of a driver's command buffer while it is recorded, so that nothing is bound twice.

use spelter_driver::{CommandBuffer, DescriptorSet};

use crate::error::Error;
use crate::program::Program;

/// Program, push constants and sets that are bound.
#[derive(Debug, Default)]
pub(crate) struct BindState {
    program: Option<u64>,
    /// By group, the number of the set in the cache.
    sets: Vec<Option<u64>>,
    push: Vec<u8>,
}

impl BindState {
    /// Binds pipeline and push constants, unless they are bound.
    pub(crate) fn bind_program(
        &mut self,
        commands: &CommandBuffer,
        program: &Program,
        push: &[u8],
    ) -> Result<(), Error> {
        if self.program != Some(program.id()) {
            self.program = None;
            commands.bind_pipeline(program.pipeline())?;
            if let Some(label) = program.label() {
                commands.set_kernel_name(Some(label))?;
            }
            // Layouts may differ: sets that were bound for another program may be disturbed.
            self.sets.clear();
            self.push.clear();
            self.program = Some(program.id());
        }
        if !push.is_empty() && self.push != push {
            commands.push_constants(program.pipeline().layout(), 0, push)?;
            self.push.clear();
            self.push.extend_from_slice(push);
        }
        Ok(())
    }

    /// Whether the program and its push constants are bound.
    pub(crate) fn has_program(&self, program: &Program, push: &[u8]) -> bool {
        // Empty lists have no address, and libc's `memcmp` by masked loads from there takes 40 ns.
        self.program == Some(program.id()) && (self.push.is_empty() && push.is_empty() || self.push == push)
    }

    /// Whether the set with that number is bound.
    pub(crate) fn has_set(&self, group: u32, number: u64) -> bool {
        self.sets.get(group as usize).is_some_and(|bound| *bound == Some(number))
    }

    /// Binds a descriptor set, by its number in the cache. The program is bound already.
    pub(crate) fn bind_set(
        &mut self,
        commands: &CommandBuffer,
        program: &Program,
        group: u32,
        set: &DescriptorSet,
        number: u64,
    ) -> Result<(), Error> {
        commands.bind_descriptor_sets(program.pipeline().layout(), group, &[set], &[])?;
        if self.sets.len() <= group as usize {
            self.sets.resize(group as usize + 1, None);
        }
        self.sets[group as usize] = Some(number);
        Ok(())
    }

    /// Unbinds everything.
    pub(crate) fn clear(&mut self) {
        self.program = None;
        self.sets.clear();
        self.push.clear();
    }
}
