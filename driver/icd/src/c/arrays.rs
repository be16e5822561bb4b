//! Tables of the pointer fields of Vulkan structures: arrays with their lengths, strings and single structures.
//!
//! The tables are the registry's `len` attributes (vk.xml), for the structures that are read here. Each line becomes a
//! safe method.
//!
//! # Safety
//!
//! By the contract of [`crate::c`], the fields of a structure that a caller passes are as the registry says. The tables
//! must agree with the registry, too. Fields that may be null although their length is not zero are `optional`.

use std::ffi::c_void;

use ash::vk;

use super::pointer::{In, Slice};
use super::text::Text;

macro_rules! arrays {
    ($($structure:ty { $($method:ident: $element:ty = $pointer:ident[$($len:tt)+] $($optional:ident)?;)* })*) => {
        $(#[allow(dead_code, reason = "a table is complete for its structures")]
        impl<'a> In<'a, $structure> {
            $(
                /// The array; empty if it is null.
                pub(crate) fn $method(self) -> Slice<'a, $element> {
                    let this = self.get();
                    let (at, len) = (this.$pointer.cast::<$element>(), arrays!(@len this $($len)+));
                    arrays!(@slice at, len, (stringify!($structure), stringify!($pointer)) $(, $optional)?)
                }
            )*
        })*
    };
    // SAFETY: these are lines of the registry.
    (@slice $at:ident, $len:ident, $name:expr) => { unsafe { Slice::wanted($at, $len, $name) } };
    // SAFETY: likewise.
    (@slice $at:ident, $len:ident, $name:expr, optional) => { unsafe { Slice::new($at, $len) } };
    (@len $this:ident bytes $len:ident) => { $this.$len };
    (@len $this:ident $len:ident) => { $this.$len as usize };
    (@len $this:ident $len:ident / $by:literal) => { $this.$len / $by };
}

arrays! {
    vk::DeviceCreateInfo<'a> { queues: vk::DeviceQueueCreateInfo<'a> = p_queue_create_infos[queue_create_info_count]; }
    vk::DeviceQueueCreateInfo<'a> { priorities: f32 = p_queue_priorities[queue_count]; }
    vk::SubmitInfo<'a> {
        waits: vk::Semaphore = p_wait_semaphores[wait_semaphore_count];
        wait_stages: vk::PipelineStageFlags = p_wait_dst_stage_mask[wait_semaphore_count];
        commands: vk::CommandBuffer = p_command_buffers[command_buffer_count];
        signals: vk::Semaphore = p_signal_semaphores[signal_semaphore_count];
    }
    vk::TimelineSemaphoreSubmitInfo<'a> {
        wait_values: u64 = p_wait_semaphore_values[wait_semaphore_value_count] optional;
        signal_values: u64 = p_signal_semaphore_values[signal_semaphore_value_count] optional;
    }
    vk::SubmitInfo2<'a> {
        waits: vk::SemaphoreSubmitInfo<'a> = p_wait_semaphore_infos[wait_semaphore_info_count];
        commands: vk::CommandBufferSubmitInfo<'a> = p_command_buffer_infos[command_buffer_info_count];
        signals: vk::SemaphoreSubmitInfo<'a> = p_signal_semaphore_infos[signal_semaphore_info_count];
    }
    vk::SemaphoreWaitInfo<'a> {
        semaphores: vk::Semaphore = p_semaphores[semaphore_count];
        values: u64 = p_values[semaphore_count];
    }
    vk::ShaderModuleCreateInfo<'a> { words: u32 = p_code[code_size / 4]; }
    vk::SpecializationInfo<'a> {
        entries: vk::SpecializationMapEntry = p_map_entries[map_entry_count];
        bytes: u8 = p_data[bytes data_size];
    }
    vk::PipelineCacheCreateInfo<'a> { bytes: u8 = p_initial_data[bytes initial_data_size]; }
    vk::DescriptorSetLayoutCreateInfo<'a> { all: vk::DescriptorSetLayoutBinding<'a> = p_bindings[binding_count]; }
    vk::DescriptorSetLayoutBinding<'a> {
        samplers: vk::Sampler = p_immutable_samplers[descriptor_count] optional;
    }
    vk::DescriptorSetLayoutBindingFlagsCreateInfo<'a> {
        flags_of_bindings: vk::DescriptorBindingFlags = p_binding_flags[binding_count];
    }
    vk::DescriptorPoolCreateInfo<'a> { sizes: vk::DescriptorPoolSize = p_pool_sizes[pool_size_count]; }
    vk::DescriptorSetAllocateInfo<'a> { layouts: vk::DescriptorSetLayout = p_set_layouts[descriptor_set_count]; }
    vk::DescriptorSetVariableDescriptorCountAllocateInfo<'a> {
        counts: u32 = p_descriptor_counts[descriptor_set_count];
    }
    vk::WriteDescriptorSet<'a> {
        images: vk::DescriptorImageInfo = p_image_info[descriptor_count];
        buffers: vk::DescriptorBufferInfo = p_buffer_info[descriptor_count];
        texel_buffers: vk::BufferView = p_texel_buffer_view[descriptor_count];
    }
    vk::WriteDescriptorSetInlineUniformBlock<'a> { bytes: u8 = p_data[data_size]; }
    vk::DescriptorUpdateTemplateCreateInfo<'a> {
        entries: vk::DescriptorUpdateTemplateEntry = p_descriptor_update_entries[descriptor_update_entry_count];
    }
    vk::BindDescriptorSetsInfoKHR<'a> {
        sets: vk::DescriptorSet = p_descriptor_sets[descriptor_set_count];
        offsets: u32 = p_dynamic_offsets[dynamic_offset_count];
    }
    vk::PushConstantsInfoKHR<'a> { values: u8 = p_values[size]; }
    vk::PushDescriptorSetInfoKHR<'a> {
        writes: vk::WriteDescriptorSet<'a> = p_descriptor_writes[descriptor_write_count];
    }
    vk::PipelineLayoutCreateInfo<'a> {
        layouts: vk::DescriptorSetLayout = p_set_layouts[set_layout_count];
        ranges: vk::PushConstantRange = p_push_constant_ranges[push_constant_range_count];
    }
    vk::DependencyInfo<'a> {
        memory: vk::MemoryBarrier2<'a> = p_memory_barriers[memory_barrier_count];
        buffers: vk::BufferMemoryBarrier2<'a> = p_buffer_memory_barriers[buffer_memory_barrier_count];
        images: vk::ImageMemoryBarrier2<'a> = p_image_memory_barriers[image_memory_barrier_count];
    }
    vk::CopyBufferInfo2<'a> { copies: vk::BufferCopy2<'a> = p_regions[region_count]; }
    vk::CopyImageInfo2<'a> { copies: vk::ImageCopy2<'a> = p_regions[region_count]; }
    vk::CopyBufferToImageInfo2<'a> { copies: vk::BufferImageCopy2<'a> = p_regions[region_count]; }
    vk::CopyImageToBufferInfo2<'a> { copies: vk::BufferImageCopy2<'a> = p_regions[region_count]; }
    vk::CopyMemoryToImageInfoEXT<'a> { copies: vk::MemoryToImageCopyEXT<'a> = p_regions[region_count]; }
    vk::CopyImageToMemoryInfoEXT<'a> { copies: vk::ImageToMemoryCopyEXT<'a> = p_regions[region_count]; }
    vk::CopyImageToImageInfoEXT<'a> { copies: vk::ImageCopy2<'a> = p_regions[region_count]; }
    vk::BlitImageInfo2<'a> { blits: vk::ImageBlit2<'a> = p_regions[region_count]; }
    vk::DebugUtilsMessengerCallbackDataEXT<'a> {
        about: vk::DebugUtilsObjectNameInfoEXT<'a> = p_objects[object_count];
        queue_labels: vk::DebugUtilsLabelEXT<'a> = p_queue_labels[queue_label_count];
        command_labels: vk::DebugUtilsLabelEXT<'a> = p_cmd_buf_labels[cmd_buf_label_count];
    }
    vk::ImageFormatListCreateInfo<'a> { formats: vk::Format = p_view_formats[view_format_count]; }
}

/// Fields that point to a single structure.
macro_rules! fields {
    ($($structure:ty { $($method:ident: $target:ty = $pointer:ident;)* })*) => {
        $(impl<'a> In<'a, $structure> {
            $(
                /// The structure, unless it is null.
                pub(crate) fn $method(self) -> Option<In<'a, $target>> {
                    // SAFETY: this is a line of the registry.
                    unsafe { In::new(self.get().$pointer) }
                }
            )*
        })*
    };
}

fields! {
    vk::InstanceCreateInfo<'a> { application: vk::ApplicationInfo<'a> = p_application_info; }
    vk::PipelineShaderStageCreateInfo<'a> { specialization: vk::SpecializationInfo<'a> = p_specialization_info; }
    vk::DeviceCreateInfo<'a> { features: vk::PhysicalDeviceFeatures = p_enabled_features; }
    vk::DeviceBufferMemoryRequirements<'a> { create: vk::BufferCreateInfo<'a> = p_create_info; }
    vk::DeviceImageMemoryRequirements<'a> { create: vk::ImageCreateInfo<'a> = p_create_info; }
    vk::DeviceImageSubresourceInfoKHR<'a> {
        create: vk::ImageCreateInfo<'a> = p_create_info;
        subresource: vk::ImageSubresource2KHR<'a> = p_subresource;
    }
}

/// Strings, and lists of them.
macro_rules! strings {
    ($($structure:ty { $($method:ident = $pointer:ident $([$len:ident])?;)* })*) => {
        $(impl<'a> In<'a, $structure> { $(strings!(@one $method $pointer $($len)?);)* })*
    };
    (@one $method:ident $pointer:ident) => {
        /// The string, unless it is null.
        pub(crate) fn $method(self) -> Option<Text<'a>> {
            // SAFETY: this is a line of the registry.
            unsafe { Text::new(self.get().$pointer) }
        }
    };
    (@one $method:ident $pointer:ident $len:ident) => {
        /// The strings, without those that are null.
        pub(crate) fn $method(self) -> Vec<Text<'a>> {
            let this = self.get();
            // SAFETY: this is a line of the registry.
            let list = unsafe { Slice::new(this.$pointer, this.$len as usize) };
            // SAFETY: the elements of the list are strings.
            list.get().iter().filter_map(|&raw| unsafe { Text::new(raw) }).collect()
        }
    };
}

strings! {
    vk::InstanceCreateInfo<'a> { extensions = pp_enabled_extension_names[enabled_extension_count]; }
    vk::ApplicationInfo<'a> { engine = p_engine_name; }
    vk::DeviceCreateInfo<'a> { extensions = pp_enabled_extension_names[enabled_extension_count]; }
    vk::PipelineShaderStageCreateInfo<'a> { entry = p_name; }
    vk::DebugUtilsObjectNameInfoEXT<'a> { name = p_object_name; }
    vk::DebugUtilsLabelEXT<'a> { name = p_label_name; }
    vk::DebugUtilsMessengerCallbackDataEXT<'a> { id = p_message_id_name; text = p_message; }
}

/// The data of a descriptor update template, which is read at the offsets of its entries.
pub(crate) struct TemplateData<'a>(In<'a, c_void>);

impl<'a> super::entry::FromC<*const c_void> for TemplateData<'a> {
    unsafe fn from_c(raw: *const c_void, place: super::entry::Place) -> Result<Self, crate::error::Error> {
        // SAFETY: by the trait's contract; nothing of a `c_void` is read.
        unsafe { In::new(raw) }.map(Self).ok_or_else(|| place.invalid("is null"))
    }
}

impl<'a> TemplateData<'a> {
    /// The value at byte `offset`, which the template says is a `T`.
    pub(crate) fn read<T: Copy>(&self, offset: usize) -> T {
        let at = std::ptr::from_ref(self.0.get()).cast::<u8>().wrapping_add(offset).cast::<T>();
        // SAFETY: the program promises that its data is as its template says; it need not be aligned.
        unsafe { at.read_unaligned() }
    }

    /// `len` bytes from `offset` on, which the template says are there.
    pub(crate) fn bytes(&self, offset: usize, len: usize) -> &'a [u8] {
        let at = std::ptr::from_ref(self.0.get()).cast::<u8>().wrapping_add(offset);
        // SAFETY: as above.
        unsafe { Slice::new(at, len) }.get()
    }
}

impl<'a> In<'a, vk::PushDescriptorSetWithTemplateInfoKHR<'a>> {
    /// The data that the template describes.
    pub(crate) fn data(self) -> Option<TemplateData<'a>> {
        // SAFETY: this is a line of the registry; nothing of a `c_void` is read.
        unsafe { In::new(self.get().p_data) }.map(TemplateData)
    }
}

/// Writes the result of one binding to memory, if the program asks for it (`VkBindMemoryStatus`).
pub(crate) fn put_status(info: Option<In<'_, vk::BindMemoryStatusKHR<'_>>>, result: vk::Result) {
    if let Some(info) = info.filter(|info| !info.p_result.is_null()) {
        // SAFETY: by the contract of `crate::c` it points to one result, for the call to write.
        unsafe { info.p_result.write(result) };
    }
}

impl<'a> In<'a, vk::ComputePipelineCreateInfo<'a>> {
    /// The one stage, with its chain.
    pub(crate) fn stage(self) -> In<'a, vk::PipelineShaderStageCreateInfo<'a>> {
        In::of(&self.get().stage)
    }
}

/// Where the feedback of a pipeline creation is written.
pub(crate) struct Feedback<'a>(In<'a, vk::PipelineCreationFeedbackCreateInfo<'a>>);

impl<'a> Feedback<'a> {
    /// `None` if the program does not ask for feedback.
    pub(crate) fn of(info: In<'a, vk::ComputePipelineCreateInfo<'a>>) -> Option<Self> {
        info.next().map(Self)
    }

    /// Writes the feedback, for the pipeline and for its one stage.
    pub(crate) fn put(&mut self, feedback: vk::PipelineCreationFeedback) {
        let this = self.0.get();
        let stages = if this.p_pipeline_stage_creation_feedbacks.is_null() {
            0
        } else {
            this.pipeline_stage_creation_feedback_count
        };
        if !this.p_pipeline_creation_feedback.is_null() {
            // SAFETY: by the contract of `crate::c` it points to one structure, for the call to write.
            unsafe { this.p_pipeline_creation_feedback.write(feedback) };
        }
        for stage in 0..stages as usize {
            let at = this.p_pipeline_stage_creation_feedbacks.wrapping_add(stage);
            // SAFETY: as above, for `count` structures.
            unsafe { at.write(feedback) };
        }
    }
}

/// Writes a zero-terminated text if the caller has a buffer, else its length in bytes. Returns false if the text was
/// truncated.
pub(crate) fn put_text(to: &mut vk::PipelineExecutableInternalRepresentationKHR<'_>, text: &str) -> bool {
    // A zero byte inside would end the text.
    let bytes = text.bytes().map(|byte| byte.max(1)).chain([0]);
    let len = text.len() + 1;
    let room = if to.p_data.is_null() { 0 } else { to.data_size.min(len) };
    let start = to.p_data.cast::<u8>();
    for (index, byte) in bytes.take(room).enumerate() {
        // A truncated text is terminated, too.
        let byte = if index + 1 == room { 0 } else { byte };
        // SAFETY: by the contract of `crate::c` there are `dataSize` bytes, for the call to write.
        unsafe { start.wrapping_add(index).write(byte) };
    }
    let whole = to.p_data.is_null() || room == len;
    to.is_text = vk::TRUE;
    to.data_size = if to.p_data.is_null() { len } else { room };
    whole
}

impl In<'_, vk::ClearColorValue> {
    /// The bits of the four numbers, of any type.
    pub(crate) fn bits(self) -> [u32; 4] {
        // SAFETY: each of the union's fields is four words, and any bits are a `u32`.
        unsafe { self.get().uint32 }
    }
}
