//! Pipeline and descriptor bindings, and dispatches.

use std::sync::Arc;

use ash::vk;
use smallvec::SmallVec;
use spelter_shaders::ir::Binding;

use super::CommandBuffer;
use super::dispatch_rules::{DISPATCH, DISPATCH_BASE, DISPATCH_INDIRECT, DispatchRules};
use super::dispatch_state::BoundSet;
use super::recorder::CommandRecorder;
use crate::descriptor::{
    DescriptorSet, DescriptorSetLayout, DescriptorSources, FlatDescriptors, check_sample, spread_offsets,
};
use crate::error::{Error, Misuse, require};
use crate::exec::{DispatchState, DispatchWork, Groups, Work};
use crate::limits::Limits;
use crate::pipeline::{ComputePipeline, PipelineLayout};
use crate::resource::{Buffer, BufferRules};

const INDIRECT_BUFFER: BufferRules = BufferRules {
    at: "vkCmdDispatchIndirect",
    usage: vk::BufferUsageFlags::INDIRECT_BUFFER,
    usage_vuid: "VUID-vkCmdDispatchIndirect-buffer-02709",
    memory_vuid: "VUID-vkCmdDispatchIndirect-buffer-02708",
    parent_vuid: "VUID-vkCmdDispatchIndirect-commonparent",
};

impl CommandBuffer {
    /// `vkCmdBindPipeline`.
    pub fn bind_pipeline(&self, pipeline: &ComputePipeline) -> Result<(), Error> {
        let at = "vkCmdBindPipeline";
        let mut recorder = self.recorder(at, "VUID-vkCmdBindPipeline-commandBuffer-recording")?;
        let same = pipeline.device().is(&recorder.device);
        require(same, at, "VUID-vkCmdBindPipeline-commonparent", || "a pipeline of another device".into())?;
        if !recorder.pipeline.as_ref().is_some_and(|bound| bound.is(pipeline)) {
            recorder.pipeline = Some(pipeline.clone());
            recorder.dispatch_state = None;
        }
        if recorder.kernel_name.take().is_some() {
            recorder.dispatch_state = None;
        }
        Ok(())
    }

    /// `vkCmdBindDescriptorSets`: binds `sets` as sets `first` and following. `dynamic_offsets` has one offset for each
    /// dynamic descriptor, by set, then by binding number, then by array element.
    pub fn bind_descriptor_sets(
        &self,
        layout: &PipelineLayout,
        first: u32,
        sets: &[&DescriptorSet],
        dynamic_offsets: &[u32],
    ) -> Result<(), Error> {
        let vuid = "VUID-vkCmdBindDescriptorSets-commandBuffer-recording";
        let mut recorder = self.recorder(BIND_SETS, vuid)?;
        let same = layout.device().is(&recorder.device);
        require(same, BIND_SETS, "VUID-vkCmdBindDescriptorSets-commonparent", || "a layout of another device".into())?;
        let first = first as usize;
        let places = check_places(layout, first, sets, dynamic_offsets)?;
        let mut rest = dynamic_offsets;
        let mut bound = SmallVec::<[_; 4]>::new();
        for (set, place) in sets.iter().zip(places) {
            let (mine, others) = rest.split_at(place.dynamic());
            rest = others;
            bound.push(bind(layout, set, mine)?);
        }
        recorder.put_sets(layout, first, bound);
        Ok(())
    }

    /// `vkCmdPushConstants`: sets the bytes from `offset`, for later dispatches.
    pub fn push_constants(&self, layout: &PipelineLayout, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        let at = "vkCmdPushConstants";
        let mut recorder = self.recorder(at, "VUID-vkCmdPushConstants-commandBuffer-recording")?;
        let same = layout.device().is(&recorder.device);
        require(same, at, "VUID-vkCmdPushConstants-commonparent", || "a layout of another device".into())?;
        check_push(at, layout, offset, bytes.len())?;
        let offset = offset as usize;
        Arc::make_mut(&mut recorder.push)[offset..offset + bytes.len()].copy_from_slice(bytes);
        recorder.push_layout = Some(layout.clone());
        Ok(())
    }

    /// Names the kernel of the bound pipeline in timelines and in the reasons of a loss, until another pipeline is
    /// bound.
    pub fn set_kernel_name(&self, name: Option<&str>) -> Result<(), Error> {
        let mut recorder = self.recorder("vkCmdBindPipeline", "VUID-vkCmdBindPipeline-commandBuffer-recording")?;
        recorder.kernel_name = name.map(Into::into);
        recorder.dispatch_state = None;
        Ok(())
    }

    /// Labels the following commands in timelines, and dispatches in the reasons of a loss; the label precedes the
    /// kernel's name.
    pub fn set_label(&self, label: Option<&str>) -> Result<(), Error> {
        let at = "vkCmdBeginDebugUtilsLabelEXT";
        let mut recorder = self.recorder(at, "VUID-vkCmdBeginDebugUtilsLabelEXT-commandBuffer-recording")?;
        recorder.label = label.map(Into::into);
        recorder.dispatch_state = None;
        Ok(())
    }

    /// `vkCmdDispatch`: runs this many workgroups in each dimension.
    pub fn dispatch(&self, x: u32, y: u32, z: u32) -> Result<(), Error> {
        let mut recorder = self.recorder(DISPATCH.at, DISPATCH.recording)?;
        Self::check_groups([x, y, z])?;
        Ok(recorder.dispatch(&DISPATCH, [0; 3], Groups::Direct([x, y, z]))?)
    }

    /// Checks numbers of workgroups as [`CommandBuffer::dispatch`] does, and records nothing.
    #[inline]
    pub fn check_groups([x, y, z]: [u32; 3]) -> Result<(), Misuse> {
        const MAX: [u32; 3] = Limits::DEVICE.max_compute_work_group_count;
        // The usual case, decided by the caller.
        if x <= MAX[0] && y <= MAX[1] && z <= MAX[2] { Ok(()) } else { Self::too_many_groups([x, y, z], MAX) }
    }

    #[cold]
    fn too_many_groups([x, y, z]: [u32; 3], max: [u32; 3]) -> Result<(), Misuse> {
        for (count, max, vuid) in [
            (x, max[0], "VUID-vkCmdDispatch-groupCountX-00386"),
            (y, max[1], "VUID-vkCmdDispatch-groupCountY-00387"),
            (z, max[2], "VUID-vkCmdDispatch-groupCountZ-00388"),
        ] {
            require(count <= max, DISPATCH.at, vuid, || format!("{count} workgroups above the limit {max}"))?;
        }
        Ok(())
    }

    /// `vkCmdDispatchBase`: as [`CommandBuffer::dispatch`], with `WorkgroupId` counted from `base`.
    pub fn dispatch_base(&self, base: [u32; 3], groups: [u32; 3]) -> Result<(), Error> {
        let at = DISPATCH_BASE.at;
        let mut recorder = self.recorder(at, DISPATCH_BASE.recording)?;
        let vuids = [
            ("VUID-vkCmdDispatchBase-baseGroupX-00421", "VUID-vkCmdDispatchBase-groupCountX-00424"),
            ("VUID-vkCmdDispatchBase-baseGroupX-00422", "VUID-vkCmdDispatchBase-groupCountY-00425"),
            ("VUID-vkCmdDispatchBase-baseGroupZ-00423", "VUID-vkCmdDispatchBase-groupCountZ-00426"),
        ];
        for (dimension, (base_vuid, count_vuid)) in vuids.into_iter().enumerate() {
            let (base, count) = (base[dimension], groups[dimension]);
            let max = Limits::DEVICE.max_compute_work_group_count[dimension];
            require(base < max, at, base_vuid, || format!("base {base} of at most {max} workgroups"))?;
            require(count <= max - base, at, count_vuid, || {
                format!("{count} workgroups from {base}, above the limit {max}")
            })?;
        }
        Ok(recorder.dispatch(&DISPATCH_BASE, base, Groups::Direct(groups))?)
    }

    /// `vkCmdDispatchIndirect`: the counts are three words at `offset`, read when the command runs. Counts above the
    /// limits run nothing.
    pub fn dispatch_indirect(&self, buffer: &Buffer, offset: u64) -> Result<(), Error> {
        let at = DISPATCH_INDIRECT.at;
        let mut recorder = self.recorder(at, DISPATCH_INDIRECT.recording)?;
        let storage = buffer.checked(&recorder.device, &INDIRECT_BUFFER)?.clone();
        Self::check_indirect_offset(offset)?;
        let (size, bytes) = (buffer.size(), 12);
        require(offset <= size && bytes <= size - offset, at, "VUID-vkCmdDispatchIndirect-offset-00407", || {
            format!("{bytes} bytes at offset {offset} in a buffer of {size} bytes")
        })?;
        recorder.dispatch(&DISPATCH_INDIRECT, [0; 3], Groups::Indirect(storage.slice.slice(offset, bytes)))?;
        recorder.keep(&storage.allocation);
        Ok(())
    }

    /// Checks the offset of counts as [`CommandBuffer::dispatch_indirect`] does, and records nothing.
    pub fn check_indirect_offset(offset: u64) -> Result<(), Misuse> {
        require(offset.is_multiple_of(4), DISPATCH_INDIRECT.at, "VUID-vkCmdDispatchIndirect-offset-02710", || {
            format!("offset {offset} is not a multiple of 4")
        })
    }
}

const BIND_SETS: &str = "vkCmdBindDescriptorSets";

/// The set layouts that the pipeline layout has for these sets, if the sets and the offsets fit them.
fn check_places<'a>(
    layout: &'a PipelineLayout,
    first: usize,
    sets: &[&DescriptorSet],
    offsets: &[u32],
) -> Result<&'a [DescriptorSetLayout], Misuse> {
    let at = BIND_SETS;
    require(!sets.is_empty(), at, "VUID-vkCmdBindDescriptorSets-descriptorSetCount-arraylength", || {
        "descriptorSetCount is 0".into()
    })?;
    let places = layout.sets().get(first..).and_then(|places| places.get(..sets.len())).ok_or_else(|| {
        let problem = format!("{} sets from {first}, the layout has {}", sets.len(), layout.sets().len());
        Misuse::new(at, problem, "VUID-vkCmdBindDescriptorSets-firstSet-00360")
    })?;
    for (at, (set, place)) in sets.iter().zip(places).enumerate() {
        let (same, fits) = (set.layout().device().is(layout.device()), set.layout() == place);
        if same && fits {
            continue;
        }
        let (at, vuid) = (format!("pDescriptorSets[{at}]"), "VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358");
        require(same, &at, "VUID-vkCmdBindDescriptorSets-commonparent", || "a set of another device".into())?;
        require(fits, &at, vuid, || "the set's layout is not the one that the pipeline layout has for the set".into())?;
    }
    let wanted: usize = places.iter().map(DescriptorSetLayout::dynamic).sum();
    require(offsets.len() == wanted, at, "VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359", || {
        format!("{} dynamic offsets for {wanted} dynamic descriptors", offsets.len())
    })?;
    Ok(places)
}

fn bind(layout: &PipelineLayout, set: &DescriptorSet, given: &[u32]) -> Result<BoundSet, Error> {
    let contents = set.snapshot();
    let offsets = spread_offsets(BIND_SETS, set.layout(), &contents, given)?;
    let (layout, late) = (layout.clone(), set.layout().updates_after_bind());
    Ok(BoundSet { layout, set: set.downgrade(), late, contents, offsets, given: given.into() })
}

fn is_late(place: &Option<BoundSet>) -> bool {
    place.as_ref().is_some_and(|bound| bound.late)
}

fn check_push(at: &str, layout: &PipelineLayout, offset: u32, len: usize) -> Result<(), Misuse> {
    let (max, len) = (u64::from(Limits::DEVICE.max_push_constants_size), len as u64);
    require(offset.is_multiple_of(4), at, "VUID-vkCmdPushConstants-offset-00368", || {
        format!("offset {offset} is not a multiple of 4")
    })?;
    let offset = u64::from(offset);
    require(offset < max, at, "VUID-vkCmdPushConstants-offset-00370", || {
        format!("offset {offset} of maxPushConstantsSize {max}")
    })?;
    require(len > 0, at, "VUID-vkCmdPushConstants-size-arraylength", || "size is 0".into())?;
    require(len.is_multiple_of(4), at, "VUID-vkCmdPushConstants-size-00369", || {
        format!("size {len} is not a multiple of 4")
    })?;
    require(len <= max - offset, at, "VUID-vkCmdPushConstants-size-00371", || {
        format!("size {len} at offset {offset} of maxPushConstantsSize {max}")
    })?;
    let inside = layout.push().is_some_and(|range| {
        u64::from(range.offset) <= offset && offset + len <= u64::from(range.offset) + u64::from(range.size)
    });
    require(inside, at, "VUID-vkCmdPushConstants-offset-01795", || {
        let last = offset + len - 1;
        match layout.push() {
            Some(range) => {
                let end = u64::from(range.offset) + u64::from(range.size);
                format!(
                    "bytes {offset} to {last} are not in the layout's, which are {} to {}",
                    range.offset,
                    end.saturating_sub(1)
                )
            }
            None => format!("bytes {offset} to {last}, and the layout has no push constants"),
        }
    })
}

impl CommandRecorder {
    /// Binds sets, and unbinds other sets that the layout disturbs.
    fn put_sets(&mut self, layout: &PipelineLayout, first: usize, sets: SmallVec<[BoundSet; 4]>) {
        let end = first + sets.len();
        if self.bound_sets.len() < end {
            self.bound_sets.resize_with(end, || None);
        }
        for (number, place) in self.bound_sets.iter_mut().enumerate() {
            let upto = if number < first { number } else { end - 1 };
            let outside = number < first || number >= end;
            if outside && place.as_ref().is_some_and(|bound| !bound.layout.compatible_for_set(layout, upto)) {
                *place = None;
                self.dispatch_state = None;
            }
        }
        for (place, set) in self.bound_sets[first..end].iter_mut().zip(sets) {
            let same = place.as_ref().is_some_and(|bound| bound.sees_the_same(&set));
            if !same {
                self.dispatch_state = None;
            }
            *place = Some(set);
        }
    }

    fn dispatch(&mut self, rules: &DispatchRules, base: [u32; 3], groups: Groups) -> Result<(), Misuse> {
        let pipeline = self
            .pipeline
            .as_ref()
            .ok_or_else(|| Misuse::new(rules.at, "no compute pipeline is bound", rules.pipeline))?;
        // Without a push constant range the program cannot push; a misuse was reported when the pipeline was created.
        if pipeline.push_bytes() > 0 && pipeline.layout().push().is_some() {
            self.check_pushed(rules, pipeline)?;
        }
        let state = match &self.dispatch_state {
            Some(state) if Arc::ptr_eq(&state.push, &self.push) => Arc::clone(state),
            Some(state) => {
                let state = Arc::new(DispatchState { push: Arc::clone(&self.push), ..(**state).clone() });
                Arc::clone(self.dispatch_state.insert(state))
            }
            None => self.resolve_state(pipeline.clone(), rules)?,
        };
        // Nothing runs, but the rules above apply.
        if matches!(groups, Groups::Direct(counts) if counts.contains(&0)) {
            return Ok(());
        }
        self.add(Work::Dispatch(DispatchWork { state, base, groups, condition: self.condition }));
        Ok(())
    }

    /// The name of a dispatch of the pipeline: with the label, if there is one.
    fn name(&self, pipeline: &ComputePipeline) -> Arc<str> {
        let kernel = self.kernel_name.as_ref().unwrap_or(pipeline.name());
        match &self.label {
            Some(label) => format!("{label}: {kernel}").into(),
            None => Arc::clone(kernel),
        }
    }

    fn check_pushed(&self, rules: &DispatchRules, pipeline: &ComputePipeline) -> Result<(), Misuse> {
        let pushed = self.push_layout.as_ref();
        require(pushed.is_some(), rules.at, rules.push, || {
            format!("the pipeline has {} bytes of push constants, and none were pushed", pipeline.push_bytes())
        })?;
        let fits = pushed.is_some_and(|layout| layout.compatible_for_push(pipeline.layout()));
        require(fits, rules.at, rules.push, || {
            "the push constants were pushed with a layout that is not compatible with the pipeline's".into()
        })
    }

    /// Resolves the dispatch state of the pipeline and caches it until another binding changes.
    fn resolve_state(
        &mut self,
        pipeline: ComputePipeline,
        rules: &DispatchRules,
    ) -> Result<Arc<DispatchState>, Misuse> {
        let has_images = pipeline.has_images();
        // If one set may be updated after it was bound, all are read again: the slices of a dispatch are one list.
        let late = pipeline.slot_ranges().iter().any(|range| self.bound_sets.get(range.set).is_some_and(is_late));
        let (mut flat, mut sources) = (FlatDescriptors::default(), DescriptorSources::new(has_images));
        for range in pipeline.slot_ranges() {
            let bound = self.bound_sets.get(range.set).and_then(Option::as_ref).ok_or_else(|| {
                Misuse::new(rules.at, format!("the pipeline uses set {}, and none is bound", range.set), rules.sets)
            })?;
            require(bound.layout.compatible_for_set(pipeline.layout(), range.set), rules.at, rules.sets, || {
                format!("set {} was bound with a layout that is not compatible with the pipeline's", range.set)
            })?;
            if let Some(image) = range.image.filter(|_| self.device.is_strict() && !bound.late) {
                let fits = bound.contents.check_view(range.first, &image);
                fits.map_err(|broken| rules.view_misuse(&pipeline, range, broken))?;
            }
            let slots = range.first..range.first + range.count;
            flat.add(&bound.contents, &bound.offsets, slots.clone(), has_images);
            if late {
                sources.add((&bound.set, bound.late), &bound.contents, &bound.offsets, slots);
            }
        }
        if self.device.is_strict() {
            self.check_samples(&pipeline, rules)?;
        }
        // After the checks, so that a dispatch that is refused keeps nothing alive.
        for range in pipeline.slot_ranges() {
            self.keep_set(range.set);
        }
        let (buffers, images) = flat.share();
        let state = Arc::new(DispatchState {
            name: self.name(&pipeline),
            pipeline_name: if self.device.is_checked() { pipeline.debug_name() } else { None },
            module_name: if self.device.is_checked() { pipeline.module_name() } else { None },
            code: pipeline.code(),
            pipeline: if self.device.is_observed() { pipeline.identity() } else { 0 },
            source: Some(pipeline.source()),
            buffers,
            images,
            addresses: pipeline.has_addresses().then(|| Arc::clone(pipeline.device().heap())),
            late: late.then(|| Arc::new(sources) as _),
            push: Arc::clone(&self.push),
        });
        self.dispatch_state = Some(Arc::clone(&state));
        Ok(state)
    }

    /// Checks that images fit the samplers that they are sampled through. Arrays are skipped: the element is known only
    /// when the shader runs.
    fn check_samples(&self, pipeline: &ComputePipeline, rules: &DispatchRules) -> Result<(), Misuse> {
        let one = |binding: Binding| {
            let range = pipeline.slot_ranges().get(binding.as_u32() as usize).filter(|range| range.count == 1)?;
            let bound = self.bound_sets.get(range.set)?.as_ref().filter(|bound| !bound.late)?;
            Some((range, &*bound.contents))
        };
        for pair in pipeline.pairs() {
            let (Some((image, images)), Some((sampler, samplers))) = (one(pair.image), one(pair.sampler)) else {
                continue;
            };
            check_sample(pair, (images, image.first), (samplers, sampler.first))
                .map_err(|why| rules.sample_misuse(pipeline, [image, sampler], why))?;
        }
        Ok(())
    }
}
