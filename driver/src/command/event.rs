//! Events in command buffers. Each of these commands runs after all earlier commands, whatever stages the program
//! names.

use std::ops::Range;
use std::sync::Arc;

use super::CommandBuffer;
use super::dependency::Barrier2;
use super::recorder::CommandRecorder;
use crate::error::{Error, require};
use crate::event::Event;
use crate::exec::Work;
use crate::host_memory;

/// The scopes for some events of a command, which are given by their places.
type EventDependency<'a> = (Range<usize>, &'a [Barrier2<'a>]);

impl CommandBuffer {
    /// `vkCmdSetEvent`, after all stages: sets the event when all earlier commands are done.
    pub fn set_event(&self, event: &Event) -> Result<(), Error> {
        self.set_event2(event, &[Barrier2::FULL])
    }

    /// `vkCmdSetEvent2`: as [`CommandBuffer::set_event`], with the first scopes of `barriers`.
    pub fn set_event2(&self, event: &Event, barriers: &[Barrier2<'_>]) -> Result<(), Error> {
        self.change_event("vkCmdSetEvent", "VUID-vkCmdSetEvent-commandBuffer-recording", event, barriers, true)
    }

    /// `vkCmdResetEvent`, `vkCmdResetEvent2`: resets the event when all earlier commands are done.
    pub fn reset_event(&self, event: &Event) -> Result<(), Error> {
        self.change_event("vkCmdResetEvent", "VUID-vkCmdResetEvent-commandBuffer-recording", event, &[], false)
    }

    /// `vkCmdWaitEvents` with all stages and accesses: later commands start when all of the events are set, and see the
    /// writes of earlier commands. Meanwhile the workers serve other queues.
    pub fn wait_events(&self, events: &[&Event]) -> Result<(), Error> {
        self.wait_events_with(events, &[Barrier2::FULL])
    }

    /// `vkCmdWaitEvents`: as [`CommandBuffer::wait_events`], with the scopes of `barriers`, for all of the events.
    pub fn wait_events_with(&self, events: &[&Event], barriers: &[Barrier2<'_>]) -> Result<(), Error> {
        self.wait(events, &[(0..events.len(), barriers)])
    }

    /// `vkCmdWaitEvents2`: as [`CommandBuffer::wait_events`], with the scopes of barriers for each event.
    pub fn wait_events2(&self, events: &[(&Event, &[Barrier2<'_>])]) -> Result<(), Error> {
        let each = events.iter().enumerate().map(|(place, (_, barriers))| (place..place + 1, *barriers));
        let dependencies = host_memory::collect(each)?;
        self.wait(&host_memory::collect(events.iter().map(|(event, _)| *event))?, &dependencies)
    }

    fn wait(&self, events: &[&Event], dependencies: &[EventDependency<'_>]) -> Result<(), Error> {
        let at = "vkCmdWaitEvents";
        let mut recorder = self.recorder(at, "VUID-vkCmdWaitEvents-commandBuffer-recording")?;
        require(!events.is_empty(), at, "VUID-vkCmdWaitEvents-eventCount-arraylength", || "eventCount is 0".into())?;
        let same = events.iter().all(|event| event.device().is(&recorder.device));
        require(same, at, "VUID-vkCmdWaitEvents-commonparent", || "an event of another device".into())?;
        dependencies.iter().try_for_each(|(_, barriers)| recorder.check_memory(barriers))?;
        let counters = host_memory::collect(events.iter().map(|event| Arc::clone(event.counter())))?;
        recorder.add_alone(Work::WaitEvents(counters.into()), dependencies);
        Ok(())
    }

    fn change_event(
        &self,
        at: &'static str,
        recording: &'static str,
        event: &Event,
        barriers: &[Barrier2<'_>],
        set: bool,
    ) -> Result<(), Error> {
        let mut recorder = self.recorder(at, recording)?;
        let same = event.device().is(&recorder.device);
        require(same, at, "VUID-vkCmdSetEvent-commonparent", || "an event of another device".into())?;
        recorder.check_memory(barriers)?;
        let work = Work::Event { event: Arc::clone(event.counter()), set };
        recorder.add_alone(work, &[(0..1, barriers)]);
        Ok(())
    }
}

impl CommandRecorder {
    /// Adds a command in its own phase, with the scopes of the dependencies that it is.
    pub(super) fn add_alone(&mut self, work: Work, dependencies: &[EventDependency<'_>]) {
        self.end_phase();
        for (events, barriers) in dependencies.iter().filter(|(_, barriers)| !barriers.is_empty()) {
            self.depend(barriers.iter().copied(), Some(events.clone()));
        }
        self.add(work);
        self.end_phase();
    }
}
