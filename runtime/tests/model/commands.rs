//! Command buffers of the naive reference: commands with the resources that they name, executed at each submission.

use std::cell::RefCell;
use std::rc::Rc;

use crate::model::kernels;
use crate::model::racy;
use crate::model::reference::{Reference, Seen, Set, Shown, Slot, copy};
use crate::model::resource::{Handle, overlap};
use crate::model::shape::Place;
use crate::model::step::{BUFFERS, Recorded};

/// A recorded command, with the resources that it names.
#[derive(Debug)]
pub(crate) enum Command {
    Dispatch(Dispatch),
    Copy((Handle, Place), (Handle, Place)),
    Fill(Handle, Vec<Place>, u32),
    Execute(Commands),
}

/// A recorded dispatch.
#[derive(Debug)]
pub(crate) struct Dispatch {
    program: usize,
    push: u32,
    /// By descriptor of the program, what it binds itself.
    own: Vec<Option<Slot>>,
    /// Where it takes the others from: a submission sees what the set names then.
    set: Option<Rc<Set>>,
}

impl Dispatch {
    /// What a submission sees; `None` if something is destroyed or too small.
    fn seen(&self) -> Option<Vec<Seen>> {
        let takes = kernels::TAKES[self.program].iter().zip(&self.own);
        let slots = takes.map(|(take, own)| match own {
            Some(slot) => slot.now(),
            None => self.set.as_ref()?.slots.borrow()[take.binding as usize].as_ref()?.now(),
        });
        slots.collect()
    }
}

/// A command buffer.
pub(crate) type Commands = Rc<RefCell<Vec<Command>>>;

/// Whether no resource that the commands name is destroyed, and each has the parts that they name. Parts that are
/// copied have the same size.
fn can_run(commands: &Commands) -> bool {
    let long = |handle: &Handle, place: &Place| {
        place.of(handle.size()).filter(|_| !handle.is_destroyed()).map(|words| words.end - words.start)
    };
    commands.borrow().iter().all(|command| match command {
        Command::Dispatch(dispatch) => dispatch.seen().is_some(),
        Command::Copy((from, place), (to, target)) => {
            let copied = long(from, place);
            copied.is_some() && copied == long(to, target)
        }
        Command::Fill(handle, places, _) => places.iter().all(|place| long(handle, place).is_some()),
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
                let slots = self.taken(*program, own, of_set)?.into_iter().zip(own);
                let own = slots.map(|(slot, own)| own.map(|_| slot)).collect();
                Command::Dispatch(Dispatch { program: *program, push: *push, own, set: set.cloned() })
            }
            Recorded::Copy { from, to, part, at } => {
                let [from, to] = self.both(*from, *to)?;
                let range = part.of(from.size().min(to.size()), false);
                let at = at % (to.size() - (range.end - range.start) + 1);
                let target = at..at + range.end - range.start;
                if overlap((from, &range), (to, &target)) {
                    return Err(Shown::Refused);
                }
                Command::Copy((Rc::clone(from), Place::Words(range)), (Rc::clone(to), Place::Words(target)))
            }
            Recorded::Fill { resource, part, word } => {
                let handle = Rc::clone(self.live(*resource)?);
                let range = part.of(handle.size(), false);
                Command::Fill(handle, vec![Place::Words(range)], *word)
            }
            Recorded::CopyImage { from, to } => {
                let [source, target] = self.both(from.image(), to.image())?;
                let (one, other) = (from.texels(source.size()), to.texels(target.size()));
                if one.end - one.start != other.end - other.start || overlap((source, &one), (target, &other)) {
                    return Err(Shown::Refused);
                }
                let level = |(level, layer): (u32, u32)| Place::Level(level, layer);
                let (one, other) = (level(from.subresource()), level(to.subresource()));
                Command::Copy((Rc::clone(source), one), (Rc::clone(target), other))
            }
            Recorded::ClearImage { image, part, word } => {
                let handle = Rc::clone(self.live(BUFFERS + image)?);
                let levels = part.subresources().map(|(level, layer)| Place::Level(level, layer));
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
                Command::Dispatch(dispatch) => {
                    let Some(seen) = dispatch.seen() else { continue };
                    self.run(&seen, (dispatch.program, dispatch.push));
                }
                Command::Copy((from, place), (to, target)) => {
                    let Some((range, target)) = place.of(from.size()).zip(target.of(to.size())) else { continue };
                    from.use_words(self.finished, &range);
                    to.use_words(self.finished, &target);
                    copy((from, &range), (to, &target));
                }
                Command::Fill(handle, places, word) => {
                    for range in places.iter().filter_map(|place| place.of(handle.size())) {
                        handle.use_words(self.finished, &range);
                        racy::overwrites(handle, &range);
                        handle.put(range.start, &vec![Some(*word); (range.end - range.start) as usize]);
                    }
                }
                Command::Execute(commands) => self.execute(commands),
            }
        }
    }
}
