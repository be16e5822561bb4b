//! The environment of a step: everything it accesses besides registers.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::code::{Tables, VariableRange};
use crate::abi::{DispatchArgs, MAX_PUSH_BYTES, SUBGROUP_SIZE, Stop};
use crate::back::watch::Watch;
use crate::guest::GuestSlice;
use crate::host::Host;
use crate::image::Descriptor;
use crate::ir::{BuiltIn, VariableSpace};

/// Environment of one workgroup and of its current invocation.
pub(super) struct Env<'a> {
    pub buffers: &'a [GuestSlice],
    pub images: &'a [Descriptor],
    pub push: &'a [u8; MAX_PUSH_BYTES],
    pub tables: &'a Tables,
    pub host: &'a Host,
    /// Shared memory, then private memory: one copy without barriers, else one for each invocation.
    pub memory: &'a mut [u32],
    /// First word of the current invocation's private memory.
    pub private: usize,
    /// Built-ins by [`builtin_index`].
    pub builtins: [u32; BUILTINS * 3],
    stop: &'a AtomicU32,
    /// What listens to a kernel with checks.
    pub watch: Option<Watch<'a>>,
}

const BUILTINS: usize = 8;

/// Index of a built-in's component in [`Env::builtins`].
pub(super) fn builtin_index(builtin: BuiltIn, component: u8) -> u32 {
    builtin as u32 * 3 + u32::from(component.min(2))
}

impl<'a> Env<'a> {
    pub(super) fn new(
        args: &DispatchArgs<'a>,
        (tables, host): (&'a Tables, &'a Host),
        memory: &'a mut [u32],
        workgroup: [u32; 3],
        invocations: u32,
    ) -> Self {
        let mut env = Self {
            buffers: args.buffers,
            images: args.images,
            push: args.push,
            tables,
            host,
            memory,
            private: 0,
            builtins: [0; BUILTINS * 3],
            stop: args.stop,
            watch: None,
        };
        env.set_builtin(BuiltIn::NumWorkgroups, args.num_workgroups);
        env.set_builtin(BuiltIn::WorkgroupId, workgroup);
        env.set_builtin(BuiltIn::NumSubgroups, [invocations.div_ceil(SUBGROUP_SIZE), 0, 0]);
        env
    }

    fn set_builtin(&mut self, builtin: BuiltIn, value: [u32; 3]) {
        let at = builtin_index(builtin, 0) as usize;
        self.builtins[at..at + 3].copy_from_slice(&value);
    }

    /// Makes `index` the current invocation.
    pub(super) fn enter(&mut self, index: u32, size: [u32; 3], private: usize) {
        let local = [index % size[0], index / size[0] % size[1], index / size[0] / size[1]];
        let group = builtin_index(BuiltIn::WorkgroupId, 0) as usize;
        let global = std::array::from_fn(|i| self.builtins[group + i].wrapping_mul(size[i]).wrapping_add(local[i]));
        self.set_builtin(BuiltIn::LocalInvocationId, local);
        self.set_builtin(BuiltIn::GlobalInvocationId, global);
        self.set_builtin(BuiltIn::LocalInvocationIndex, [index, 0, 0]);
        self.set_builtin(BuiltIn::SubgroupId, [index / SUBGROUP_SIZE, 0, 0]);
        self.set_builtin(BuiltIn::SubgroupLocalInvocationId, [index % SUBGROUP_SIZE, 0, 0]);
        self.private = private;
    }

    /// Reports that the current invocation was stopped in the loop at that SPIR-V word.
    pub(super) fn stop_at(&self, word: u32) -> Stop {
        let builtin = |builtin| {
            let at = builtin_index(builtin, 0) as usize;
            std::array::from_fn(|i| self.builtins[at + i])
        };
        let invocation = Some(builtin(BuiltIn::GlobalInvocationId));
        Stop { word: (word != 0).then_some(word), workgroup: builtin(BuiltIn::WorkgroupId), invocation }
    }

    /// `LocalInvocationIndex` of the current invocation.
    pub(super) fn local_index(&self) -> u32 {
        self.builtins[builtin_index(BuiltIn::LocalInvocationIndex, 0) as usize]
    }

    /// Whether the dispatch has been asked to stop.
    #[inline(always)]
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Relaxed) != 0
    }

    /// The buffer that a register of type `buffer` names.
    #[inline(always)]
    pub(super) fn buffer(&self, register: u64) -> GuestSlice {
        self.buffers.get(register as usize).copied().unwrap_or(GuestSlice::EMPTY)
    }

    /// The image and sampler that a register of type `buffer` names.
    pub(super) fn image(&self, register: u64) -> &'a Descriptor {
        const NONE: &Descriptor = &Descriptor::NULL;
        self.images.get(register as usize).unwrap_or(NONE)
    }

    /// The word at an aligned byte offset in a variable; 0 outside it.
    #[inline(always)]
    pub(super) fn read_variable(&mut self, variable: VariableRange, offset: u32) -> Option<u32> {
        if variable.space == VariableSpace::Constant {
            let inside = offset.is_multiple_of(4) && offset < variable.bytes;
            return inside.then(|| self.tables.words.get(variable.first_word + (offset / 4) as usize).copied())?;
        }
        self.variable_word(variable, offset).copied()
    }

    /// The word of a variable at an aligned byte offset inside it.
    #[inline(always)]
    pub(super) fn variable_word(&mut self, variable: VariableRange, offset: u32) -> Option<&mut u32> {
        if !offset.is_multiple_of(4) || offset >= variable.bytes {
            return None;
        }
        let base = match variable.space {
            VariableSpace::Workgroup => 0,
            VariableSpace::Private => self.private,
            // Constant memory is never written.
            VariableSpace::Constant => return None,
        };
        self.memory.get_mut(base + variable.first_word + (offset / 4) as usize)
    }
}
