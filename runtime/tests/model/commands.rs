//! Command buffers of the naive reference: commands with the resources that they name, executed at each submission.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::model::kernels;
use crate::model::reference::{Reference, Shown, Slot};
use crate::model::resource::{Handle, overlap};
use crate::model::step::{BUFFERS, Recorded, level_of};

/// A recorded command, with the resources that it names.
#[derive(Debug)]
pub(crate) enum Command {
    Dispatch(usize, u32, Vec<Slot>),
    Copy((Handle, Range<u64>), (Handle, Range<u64>)),
    Fill(Handle, Vec<Range<u64>>, u32),
    Execute(Commands),
}

/// A command buffer.
pub(crate) type Commands = Rc<RefCell<Vec<Command>>>;

/// Whether no resource that the commands name is destroyed, and each has the parts that they name.
fn can_run(commands: &Commands) -> bool {
    let has = |handle: &Handle, range: &Range<u64>| !handle.is_destroyed() && range.end <= handle.size();
    commands.borrow().iter().all(|command| match command {
        Command::Dispatch(.., slots) => {
            slots.iter().all(|slot| !slot.resource.is_destroyed() && slot.clone().now().is_some())
        }
        Command::Copy((from, range), (to, target)) => has(from, range) && has(to, target),
        Command::Fill(handle, ranges, _) => ranges.iter().all(|range| has(handle, range)),
        Command::Execute(commands) => can_run(commands),
    })
}

impl Reference {
    /// Records a command buffer. If a handle is missing, the step does nothing; if a command is refused, all is.
    pub(crate) fn record(&mut self, into: usize, again: bool, commands: &[Recorded]) -> Shown {
        let any_missing = commands.iter().any(|command| {
            let missing = |which: usize| self.handles[which].is_none();
            match command {
                Recorded::Dispatch { program, set, own, .. } => {
                    let mut own = kernels::TAKES[*program].iter().zip(own);
                    set.is_some_and(|set| self.sets[set].is_none())
                        || own.any(|(take, own)| own.is_some_and(|bound| missing(bound.handle(take.kind))))
                }
                Recorded::Copy { from, to, .. } => missing(*from) || missing(*to),
                Recorded::Fill { resource, .. } => missing(*resource),
                Recorded::CopyImage { from, to } => missing(from.image()) || missing(to.image()),
                Recorded::ClearImage { image, .. } => missing(BUFFERS + image),
                Recorded::Execute { commands } => *commands >= into || self.commands[*commands].is_none(),
            }
        });
        if any_missing {
            return Shown::Nothing;
        }
        let recorded: Result<Vec<_>, Shown> = commands.iter().map(|command| self.command(command)).collect();
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(shown) => return shown,
        };
        let place = &mut self.commands[into];
        match place.as_ref().filter(|_| again) {
            Some(known) => *known.borrow_mut() = recorded,
            None => *place = Some(Rc::new(RefCell::new(recorded))),
        }
        Shown::Nothing
    }

    /// A command with the resources that it names, all of which have handles.
    fn command(&self, command: &Recorded) -> Result<Command, Shown> {
        Ok(match command {
            Recorded::Dispatch { program, set, own, push } => {
                let set = set.and_then(|set| self.sets[set].as_ref());
                let of_set = |binding: usize| set.and_then(|set| set.slots.borrow()[binding].clone());
                let slots = self.taken(*program, own, of_set)?;
                Command::Dispatch(*program, *push, slots)
            }
            Recorded::Copy { from, to, part, at } => {
                let [from, to] = self.both(*from, *to)?;
                let range = part.of(from.size().min(to.size()), false);
                let at = at % (to.size() - (range.end - range.start) + 1);
                let target = at..at + range.end - range.start;
                if overlap((from, &range), (to, &target)) {
                    return Err(Shown::Refused);
                }
                Command::Copy((Rc::clone(from), range), (Rc::clone(to), target))
            }
            Recorded::Fill { resource, part, word } => {
                let handle = Rc::clone(self.live(*resource)?);
                let range = part.of(handle.size(), false);
                Command::Fill(handle, vec![range], *word)
            }
            Recorded::CopyImage { from, to } => {
                let [source, target] = self.both(from.image(), to.image())?;
                let (one, other) = (from.texels(), to.texels());
                if one.end - one.start != other.end - other.start || overlap((source, &one), (target, &other)) {
                    return Err(Shown::Refused);
                }
                Command::Copy((Rc::clone(source), one), (Rc::clone(target), other))
            }
            Recorded::ClearImage { image, part, word } => {
                let handle = Rc::clone(self.live(BUFFERS + image)?);
                let levels = part.subresources().map(|(level, layer)| level_of(level as usize, layer as usize));
                Command::Fill(handle, levels.collect(), *word)
            }
            Recorded::Execute { commands } => {
                let commands = self.commands[*commands].as_ref().ok_or(Shown::Nothing)?;
                Command::Execute(Rc::clone(commands))
            }
        })
    }

    pub(crate) fn submit(&self, commands: usize) -> Shown {
        match &self.commands[commands] {
            None => Shown::Nothing,
            // A resource that is destroyed, or too small now, is an error, and nothing runs.
            Some(commands) if !can_run(commands) => Shown::Refused,
            Some(commands) => {
                self.execute(commands);
                Shown::Nothing
            }
        }
    }

    fn execute(&self, commands: &Commands) {
        for command in &*commands.borrow() {
            match command {
                Command::Dispatch(program, push, slots) => {
                    let slots: Vec<Slot> = slots.iter().filter_map(|slot| slot.clone().now()).collect();
                    self.run(&slots, (*program, *push));
                }
                Command::Copy((from, range), (to, target)) => {
                    from.use_words(self.finished, range);
                    to.use_words(self.finished, target);
                    to.put(target.start, &from.get(range));
                }
                Command::Fill(handle, ranges, word) => {
                    for range in ranges {
                        handle.use_words(self.finished, range);
                        handle.put(range.start, &vec![Some(*word); (range.end - range.start) as usize]);
                    }
                }
                Command::Execute(commands) => self.execute(commands),
            }
        }
    }
}
