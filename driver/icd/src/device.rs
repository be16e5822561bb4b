//! Devices and their queues.

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

use ash::vk;
use spelter_driver as driver;
use spelter_locks::Mutex;

use crate::c::callback::Message;
use crate::c::entry::entry_points;
use crate::c::version_1_4::PhysicalDeviceVulkan14Features;
use crate::c::{In, Out, Text};
use crate::current_call::Owner;
use crate::error::{Error, require};
use crate::findings::DeviceFindings;
use crate::labels::Labels;
use crate::message;
use crate::options::Options;
use crate::physical_device::{PRIORITY, PhysicalDevice, extensions, memory_types, versions};
use crate::profile::DeviceProfile;
use crate::table::{Object, Ref, object};
use crate::trace::Trace;

entry_points! {
    PFN_vkCreateDevice(
        physical_device: vk::PhysicalDevice, p_create_info: *const vk::DeviceCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_device: *mut vk::Device,
    ) -> vk::Result => create;
    PFN_vkDestroyDevice(device: vk::Device, p_allocator: *const vk::AllocationCallbacks<'_>) => destroy;
    PFN_vkGetDeviceQueue(
        device: vk::Device, queue_family_index: u32, queue_index: u32, p_queue: *mut vk::Queue,
    ) => queue;
    PFN_vkGetDeviceQueue2(
        device: vk::Device, p_queue_info: *const vk::DeviceQueueInfo2<'_>, p_queue: *mut vk::Queue,
    ) => queue2;
    PFN_vkDeviceWaitIdle(device: vk::Device) -> vk::Result => wait_idle;
    PFN_vkGetDeviceGroupPeerMemoryFeatures(
        device: vk::Device, heap_index: u32, local_device_index: u32, remote_device_index: u32,
        p_peer_memory_features: *mut vk::PeerMemoryFeatureFlags,
    ) => peer_memory;
    PFN_vkGetRenderingAreaGranularityKHR(
        device: vk::Device, p_rendering_area_info: *const vk::RenderingAreaInfoKHR<'_>,
        p_granularity: *mut vk::Extent2D,
    ) => granularity;
}

/// `VkDevice`.
pub(crate) struct Device {
    pub(crate) driver: driver::Device,
    /// Handles of the queues that the program asked for.
    queues: Vec<vk::Queue>,
    extensions: HashSet<String>,
    instance_extensions: Arc<HashSet<String>>,
    /// With `maintenance5`, the newest minor version whose commands the device has.
    newest: Option<u32>,
    profile: Option<Arc<DeviceProfile>>,
    trace: Option<Arc<Trace>>,
    findings: Option<Arc<DeviceFindings>>,
    owner: Owner,
}

object!(dispatchable Device: vk::Device, |device| device.owner);

/// `VkQueue`.
pub(crate) struct Queue {
    pub(crate) driver: driver::Queue,
    pub(crate) labels: Mutex<Labels>,
    /// The timeline for its labels, with its number there.
    pub(crate) trace: Option<(Arc<Trace>, usize)>,
    owner: Owner,
}

object!(dispatchable Queue: vk::Queue, |queue| queue.owner, |queue, message| {
    message.queue_labels = queue.labels.lock().open();
});

impl Device {
    /// The instance that the device belongs to.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether the device has a command of this name: commands of extensions need the extension enabled.
    pub(crate) fn offers(&self, name: &str) -> bool {
        if self.newest.is_some_and(|newest| versions::since(name) > newest) {
            return false;
        }
        extensions::offers(extensions::of_device(Options::get()), &self.extensions, name)
            || extensions::offers(extensions::INSTANCE, &self.instance_extensions, name)
    }
}

fn create(
    physical: Ref<PhysicalDevice>,
    info: In<'_, vk::DeviceCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Device>,
) -> Result<(), Error> {
    let extensions = check_extensions(info)?;
    let missing = physical.supported.missing(info);
    if !missing.is_empty() {
        return Err(Error::Code(
            vk::Result::ERROR_FEATURE_NOT_PRESENT,
            format!("features are not supported: {missing:?}"),
        ));
    }
    let options = &physical.options.device;
    let wanted = check_queues(info, options.queues)?;
    let owner = physical.owner;
    let options = driver::DeviceOptions { printer: Some(message::printer(owner)), ..options.clone() };
    let trace = Trace::of_device(owner).map(Arc::new);
    let profile = DeviceProfile::of_device(owner).map(Arc::new);
    let profiles = profile.iter().map(|profile| Arc::clone(profile) as Arc<dyn driver::Observer>);
    let traces = trace.iter().map(|trace| trace.observer());
    let findings = DeviceFindings::of_device(owner);
    let found = findings.iter().map(|findings| Arc::clone(findings) as Arc<dyn driver::Observer>);
    let observers: Vec<_> = traces.chain(profiles).chain(found).collect();
    let driver = match &observers[..] {
        [] => driver::Device::new(options)?,
        [only] => driver::Device::with_observer(options, Arc::clone(only))?,
        _ => driver::Device::with_observer(options, Arc::new(driver::Observers(observers)))?,
    };
    trace.iter().for_each(|trace| trace.name_workers(driver.properties().workers));
    let queue = |(number, driver)| {
        let trace = trace.as_ref().map(|trace| (Arc::clone(trace), number));
        Queue { driver, labels: Mutex::default(), trace, owner }
    };
    let queues = Queue::insert_all(driver.queues().into_iter().take(wanted).enumerate().map(queue))?;
    let instance_extensions = Arc::clone(&physical.instance_extensions);
    let newest = has_maintenance5(info).then_some(physical.minor);
    let handles = queues.clone();
    findings.iter().for_each(|findings| findings.started(&driver, &handles));
    let device = Device { driver, queues, extensions, instance_extensions, newest, profile, trace, findings, owner };
    out.put(device.insert().inspect_err(|_| Queue::take_back(&handles))?);
    mark(owner);
    Ok(())
}

/// Marks that the program has a device here, as its caller asked for. A failure is reported, and fails no call.
fn mark(owner: Owner) {
    let Some(path) = &Options::get().device_mark else { return };
    if let Err(error) = File::options().create(true).append(true).open(path) {
        let text = format!("SPELTER_DEVICE_MARK: {} cannot be written: {error}", path.display());
        message::warn(owner, "spelter-device-mark", text);
    }
}

fn has_maintenance5(info: In<'_, vk::DeviceCreateInfo<'_>>) -> bool {
    let of_extension = info.next::<vk::PhysicalDeviceMaintenance5FeaturesKHR<'_>>();
    let of_version = info.next::<PhysicalDeviceVulkan14Features<'_>>();
    of_extension.is_some_and(|features| features.maintenance5 != vk::FALSE)
        || of_version.is_some_and(|features| features.maintenance5 != vk::FALSE)
}

fn check_extensions(info: In<'_, vk::DeviceCreateInfo<'_>>) -> Result<HashSet<String>, Error> {
    let mut enabled = HashSet::new();
    for extension in info.extensions().into_iter().map(Text::as_str) {
        if !extensions::of_device(Options::get()).any(|(name, ..)| *name == extension) {
            let what = format!("there is no device extension `{extension}`");
            return Err(Error::Code(vk::Result::ERROR_EXTENSION_NOT_PRESENT, what));
        }
        enabled.insert(extension.to_owned());
    }
    Ok(enabled)
}

/// The number of queues that the program asks for, all of one family.
fn check_queues(info: In<'_, vk::DeviceCreateInfo<'_>>, there_are: usize) -> Result<usize, Error> {
    let at = "vkCreateDevice";
    let mut wanted = 0;
    for queues in info.queues().each() {
        if queues.queue_family_index != 0 {
            let problem = format!("queueFamilyIndex {} of 1 family", queues.queue_family_index);
            return Err(Error::misuse(at, problem, "VUID-VkDeviceQueueCreateInfo-queueFamilyIndex-00381"));
        }
        let count = queues.queue_count as usize;
        if count == 0 || count > there_are {
            let problem = format!("queueCount {count} of {there_are} queues");
            return Err(Error::misuse(at, problem, "VUID-VkDeviceQueueCreateInfo-queueCount-00382"));
        }
        if let Some(asked) = queues.next::<vk::DeviceQueueGlobalPriorityCreateInfoKHR<'_>>() {
            check_priority(asked.global_priority)?;
        }
        wanted = wanted.max(count);
    }
    Ok(wanted)
}

/// Queues of any other priority than [`PRIORITY`] are not permitted (`VK_ERROR_NOT_PERMITTED_KHR`).
fn check_priority(asked: vk::QueueGlobalPriorityKHR) -> Result<(), Error> {
    use vk::QueueGlobalPriorityKHR as P;
    let known = [P::LOW, P::MEDIUM, P::HIGH, P::REALTIME].contains(&asked);
    let vuid = "VUID-VkDeviceQueueGlobalPriorityCreateInfo-globalPriority-parameter";
    require(known, "vkCreateDevice", vuid, || format!("globalPriority {asked:?}"))?;
    if asked == PRIORITY {
        return Ok(());
    }
    let what = format!("queues have the global priority {PRIORITY:?}, and not {asked:?}");
    Err(Error::Code(vk::Result::ERROR_NOT_PERMITTED_KHR, what))
}

fn destroy(device: vk::Device, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    let Some(device) = Device::remove(device, "vkDestroyDevice-device")? else { return Ok(()) };
    // Before its queues, which messages name.
    device.findings.iter().for_each(DeviceFindings::finish);
    for &queue in &device.queues {
        Queue::remove(queue, "vkDestroyDevice-device")?;
    }
    if Options::get().stats {
        report_statistics(&device);
    }
    if let Some(profile) = &device.profile {
        profile.finish(device.owner);
    }
    if let Some(trace) = &device.trace {
        trace.finish(device.owner);
    }
    Ok(())
}

fn report_statistics(device: &Device) {
    let pipelines = device.driver.pipeline_cache_stats();
    let submitted: u64 = device.driver.queues().iter().map(driver::Queue::retired).sum();
    message::print_line(&format!(
        "spelter: {submitted} submissions, {} kernels compiled, {} shared, {} from caches, at most {} bytes of memory",
        pipelines.compiled,
        pipelines.shared,
        pipelines.stored,
        memory_types::peak_bytes_in_use(),
    ));
    let severity = vk::DebugUtilsMessageSeverityFlagsEXT::INFO;
    let types = vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE;
    let text = format!("{submitted} submissions");
    message::send(device.owner, &Message::new(severity, types, "spelter-statistics", text));
}

fn find_queue(device: &Device, family: u32, index: u32) -> Result<vk::Queue, Error> {
    let queue = device.queues.get(index as usize).filter(|_| family == 0);
    queue.copied().ok_or_else(|| {
        let problem = format!("queue {index} of family {family}, the device was created with {}", device.queues.len());
        Error::misuse("vkGetDeviceQueue", problem, "VUID-vkGetDeviceQueue-queueIndex-00385")
    })
}

fn queue(device: Ref<Device>, family: u32, index: u32, mut out: Out<'_, vk::Queue>) -> Result<(), Error> {
    let found = find_queue(&device, family, index);
    out.put(found.as_ref().copied().unwrap_or_default());
    found.map(|_| ())
}

fn queue2(device: Ref<Device>, info: In<'_, vk::DeviceQueueInfo2<'_>>, out: Out<'_, vk::Queue>) -> Result<(), Error> {
    queue(device, info.queue_family_index, info.queue_index, out)
}

fn wait_idle(device: Ref<Device>) -> Result<(), Error> {
    for queue in device.driver.queues() {
        queue.wait_idle()?;
    }
    Ok(())
}

/// Any granularity is fine: nothing is rendered.
fn granularity(
    _: Ref<Device>,
    _: In<'_, vk::RenderingAreaInfoKHR<'_>>,
    mut out: Out<'_, vk::Extent2D>,
) -> Result<(), Error> {
    out.put(vk::Extent2D { width: 1, height: 1 });
    Ok(())
}

/// A group of one device has no peers, but a program may query the device itself.
fn peer_memory(
    _: Ref<Device>,
    _heap: u32,
    _local: u32,
    _remote: u32,
    mut out: Out<'_, vk::PeerMemoryFeatureFlags>,
) -> Result<(), Error> {
    out.put(
        vk::PeerMemoryFeatureFlags::COPY_SRC
            | vk::PeerMemoryFeatureFlags::COPY_DST
            | vk::PeerMemoryFeatureFlags::GENERIC_SRC
            | vk::PeerMemoryFeatureFlags::GENERIC_DST,
    );
    Ok(())
}
