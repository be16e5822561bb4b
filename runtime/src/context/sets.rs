//! Descriptor sets: making them, and binding them to the groups of a context.

use super::Context;
use crate::error::{Error, rule};
use crate::program::Program;
use crate::set::{DescriptorSet, DescriptorSetBuilder, SetBinding};

impl Context {
    /// A builder for a set with the descriptors that a program declares in a group.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "@group(0) @binding(0) var<storage, read> source: array<u32>;
    ///      @group(1) @binding(0) var<storage, read_write> sum: u32;
    ///      @compute @workgroup_size(1) fn main() { sum += source[0]; }",
    /// )?;
    /// let (source, sum) = (context.buffer_from(&[5u32])?, context.buffer_zeroed(4)?);
    /// let input = context.descriptor_set(&program, 0).bind(0, &source).build()?;
    /// let output = context.descriptor_set(&program, 1).bind(0, &sum).build()?;
    /// context.dispatch(&program).set(0, &input).set(1, &output).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&sum)?, [5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn descriptor_set<'a>(&'a self, program: &'a Program, group: u32) -> DescriptorSetBuilder<'a> {
        DescriptorSetBuilder::of_program(self.share(), program, group)
    }

    /// A builder for a set with a layout of its own. Programs may use it that declare, in the group, any of its
    /// descriptors.
    ///
    /// ```
    /// use spelter::{BindingKind, SetBinding};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let layout = [SetBinding::new(0, BindingKind::UniformBuffer), SetBinding::new(1, BindingKind::StorageBuffer)];
    /// let (step, sum) = (context.buffer_from(&[5u32])?, context.buffer_zeroed(4)?);
    /// let set = context.descriptor_set_of(&layout).bind(0, &step).bind(1, &sum).build()?;
    /// let increment = context.program_wgsl(
    ///     "@group(0) @binding(1) var<storage, read_write> sum: u32;
    ///      @compute @workgroup_size(1) fn main() { sum += 1u; }",
    /// )?;
    /// context.dispatch(&increment).set(0, &set).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&sum)?, [1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn descriptor_set_of<'a>(&'a self, layout: &'a [SetBinding]) -> DescriptorSetBuilder<'a> {
        DescriptorSetBuilder::of_layout(self.share(), layout)
    }

    /// Binds a set to a group: dispatches take the group's descriptors from it, in place of the slots, until another
    /// one is bound there or [`Context::unbind_set`]. The slots of the group keep what is bound to them.
    ///
    /// Unlike a slot, it makes no bytes valid: those that kernels can write become valid when a dispatch uses the set.
    ///
    /// [`Error::Resource`] if the group is outside the device's limits or the set of another device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// context.bind_set(0, &context.descriptor_set(&program, 0).bind(0, &data).build()?)?;
    /// context.dispatch(&program).groups([1, 1, 1])?;
    /// context.dispatch(&program).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [4, 8, 12, 16]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind_set(&self, group: u32, set: &DescriptorSet) -> Result<(), Error> {
        self.check_group(group)?;
        if !set.inner().is_of(self.share()) {
            let problem = format!("{} is of another context's device", set.inner().described());
            return Err(Error::resource(problem, rule::DEVICE));
        }
        let old = self.inner.lock().group_sets.put(group, Some(set.clone()));
        drop(old); // when no lock is held
        Ok(())
    }

    /// Unbinds the set of a group: its descriptors are taken from the slots again. [`Error::Resource`] if the group is
    /// outside the device's limits.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// context.bind_set(0, &context.descriptor_set(&program, 0).bind(0, &data).build()?)?;
    /// context.unbind_set(0)?;
    /// assert!(context.dispatch(&program).groups([1, 1, 1]).is_err()); // nothing is bound to the slot
    /// # Ok(())
    /// # }
    /// ```
    pub fn unbind_set(&self, group: u32) -> Result<(), Error> {
        self.check_group(group)?;
        let old = self.inner.lock().group_sets.put(group, None);
        drop(old); // when no lock is held
        Ok(())
    }

    fn check_group(&self, group: u32) -> Result<(), Error> {
        let groups = self.device().limits().max_bound_descriptor_sets;
        if group < groups {
            return Ok(());
        }
        Err(Error::resource(format!("group {group}: groups are numbered 0 to {}", groups - 1), rule::SLOT))
    }
}
