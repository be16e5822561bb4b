//! The submission of a command buffer: its parts in order, with those of nested ones, and the objects that they use
//! now.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use spelter_driver::CommandBuffer as DriverCommands;

use super::contents::{Contents, Kept, Step};
use super::{CommandBuffer, MAX_DEPTH};
use crate::batch::{CommandCounts, Refusal};
use crate::context::Context;
use crate::context_state::ContextState;
use crate::error::{Error, rule};
use crate::events::Event;
use crate::ids::Serial;

/// The largest number of parts of a submission. Nesting makes exponentially many in a few lines.
const MAX_PARTS: usize = 1 << 16;

/// What is submitted: a command buffer and all nested ones, as they were at one moment.
pub(super) struct Plan {
    /// Each once.
    contents: Vec<Arc<Contents>>,
    parts: Vec<PlanPart>,
    labels: Vec<Arc<str>>,
    /// The number of steps so far, those that execute others included.
    steps: usize,
}

/// A part of the submission.
enum PlanPart {
    /// A segment of the contents with that number.
    Segment(usize, usize),
    /// The timestamp with that number.
    Timestamp(usize),
}

impl Plan {
    pub(super) fn new(context: &Context, commands: &CommandBuffer) -> Result<Self, Error> {
        let mut plan = Self { contents: Vec::new(), parts: Vec::new(), labels: Vec::new(), steps: 0 };
        plan.add(context, commands, &mut HashMap::default(), 0)?;
        Ok(plan)
    }

    fn add(
        &mut self,
        context: &Context,
        commands: &CommandBuffer,
        known: &mut HashMap<*const Contents, usize, FixedState>,
        depth: u32,
    ) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            // A nested one was recorded again since.
            return Err(Error::resource(format!("submit: {commands:?} is nested {depth} deep"), rule::NESTED));
        }
        let contents = commands.current(context)?;
        let number = *known.entry(Arc::as_ptr(&contents)).or_insert(self.contents.len());
        if number == self.contents.len() {
            self.contents.push(Arc::clone(&contents));
        }
        self.steps = self.steps.saturating_add(contents.steps.len());
        if self.steps > MAX_PARTS {
            return Err(Error::resource(format!("submit: {commands:?} has too many parts"), rule::PARTS));
        }
        for step in &contents.steps {
            match step {
                Step::Segment(segment) => self.parts.push(PlanPart::Segment(number, *segment)),
                Step::Timestamp(label) => {
                    self.parts.push(PlanPart::Timestamp(self.labels.len()));
                    self.labels.push(Arc::clone(label));
                }
                Step::Execute(nested) => self.add(context, nested, known, depth + 1)?,
            }
        }
        Ok(())
    }

    /// The labels of its timestamps.
    pub(super) fn labels(&self) -> &[Arc<str>] {
        &self.labels
    }

    /// Drops what was recorded with lost objects, after an error. The caller holds no lock.
    pub(super) fn drop_lost(&self) {
        self.contents.iter().for_each(|contents| contents.drop_lost());
    }

    /// Submits all of it in the context's next batch. `checked`: whether to look at each resource first. If not, what
    /// was recorded is used unless a resource is known to have lost an object; a resource that has another object all
    /// the same is found when the uses are entered.
    pub(super) fn submit(
        &self,
        state: &mut ContextState,
        timestamps: &[DriverCommands],
        checked: bool,
    ) -> Result<Serial, Refusal> {
        let mut counts: SmallVec<[u64; 4]> = SmallVec::new();
        let mut kept: Vec<Arc<Kept>> = Vec::with_capacity(self.contents.len());
        for contents in &self.contents {
            let now = contents.kept();
            let renews = checked || !now.is_complete();
            let (now, count) = if renews { contents.renew(state)? } else { (now, 0) };
            counts.push(count);
            kept.push(now);
        }
        let rerecorded: u64 = counts.iter().sum();
        if rerecorded > 0 {
            state.trace_instant(|| format!("record {rerecorded} commands again"));
        }
        let batch = state.timeline.batch()?;
        let uses = self.contents.iter().zip(&kept).flat_map(|(contents, kept)| contents.uses(kept));
        // The batch orders all that it appends by barriers, so no use is fresh.
        let _ = batch.enter(&state.clock, uses)?;
        let part = |part: &PlanPart| match part {
            PlanPart::Segment(contents, segment) => kept[*contents].segments[*segment].clone(),
            PlanPart::Timestamp(number) => timestamps.get(*number).cloned(),
        };
        let commands: Vec<_> = self.parts.iter().filter_map(part).collect();
        let mut runs = CommandCounts::default();
        for part in &self.parts {
            if let PlanPart::Segment(contents, segment) = part {
                runs += self.contents[*contents].counts(*segment);
            }
        }
        let owners = kept.into_iter().map(|kept| kept as Arc<dyn Any + Send + Sync>);
        batch.append(commands.into_iter(), owners, runs);
        let counters = &state.share.memory().counters;
        let all: usize = self.contents.iter().map(|contents| contents.len()).sum();
        counters.command_buffers_submitted.one();
        counters.commands_rerecorded.add(rerecorded);
        counters.commands_reused.add((all as u64).saturating_sub(rerecorded));
        for (contents, rerecorded) in self.contents.iter().zip(counts).rev() {
            let (commands, batch) = (contents.id, state.log.batch(batch.serial()));
            state.log.note(|| Event::CommandsSubmitted { commands, batch, rerecorded });
        }
        Ok(state.timeline.flush()?)
    }
}
