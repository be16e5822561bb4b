//! What a program submitted, queue by queue, and which pairs of accesses its dependencies leave unordered: by Vulkan's
//! rules for full barriers and for semaphores whose waits name all commands.

use std::collections::BTreeMap;

use super::BatchOf;

/// An access of a command to a place: a buffer, or a layer of an image, as it is stored at that time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) place: usize,
    /// The words or texels.
    pub(super) parts: u32,
    pub(super) writes: bool,
}

impl Access {
    fn conflicts(&self, other: &Self) -> bool {
        self.place == other.place && self.parts & other.parts != 0 && (self.writes || other.writes)
    }
}

/// What is in a queue.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Command(Vec<Access>),
    /// A barrier before a command.
    Barrier(usize),
    /// The barrier at the end of a recording, which is one for the host, too.
    End(usize),
    /// The batch that begins here waits for another one.
    Wait {
        number: usize,
        batch: BatchOf,
    },
    /// The end of a batch.
    Signal(BatchOf),
}

/// Two accesses that nothing orders; the host's reads have no place in a queue.
#[derive(Debug)]
#[expect(dead_code, reason = "it is printed")]
pub(super) struct Race(Access, Access);

/// What was submitted.
#[derive(Debug, Default)]
pub(super) struct Execution {
    queues: BTreeMap<usize, Vec<Item>>,
    /// What each dependency is.
    kinds: BTreeMap<usize, &'static str>,
    /// What the host reads when all has run.
    reads: Vec<Access>,
}

/// By queue, the first place from which on all commands come after a command.
type After = BTreeMap<usize, usize>;

impl Execution {
    pub(super) fn push(&mut self, queue: usize, items: impl IntoIterator<Item = Item>) {
        self.queues.entry(queue).or_default().extend(items);
    }

    pub(super) fn note(&mut self, number: usize, kind: &'static str) {
        self.kinds.insert(number, kind);
    }

    pub(super) fn read_by_host(&mut self, access: Access) {
        self.reads.push(access);
    }

    /// The number of dependencies; their numbers are those below.
    pub(super) fn dependencies(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn kind(&self, number: usize) -> &'static str {
        self.kinds.get(&number).copied().unwrap_or("none")
    }

    fn commands(&self) -> impl Iterator<Item = ((usize, usize), &[Access])> {
        self.queues.iter().flat_map(|(queue, items)| {
            items.iter().enumerate().filter_map(move |(at, item)| match item {
                Item::Command(accesses) => Some(((*queue, at), &accesses[..])),
                _ => None,
            })
        })
    }

    fn signal(&self, batch: BatchOf) -> Option<(usize, usize)> {
        self.queues.iter().find_map(|(queue, items)| {
            let at = items.iter().position(|item| matches!(item, Item::Signal(signal) if *signal == batch));
            at.map(|at| (*queue, at))
        })
    }

    /// What comes after the command at that place of that queue, without the dependency `dropped`.
    fn after(&self, (queue, at): (usize, usize), dropped: Option<usize>) -> After {
        let stays = |number: &usize| Some(*number) != dropped;
        let barrier = self.queues[&queue].iter().enumerate().skip(at).find(|(_, item)| match item {
            Item::Barrier(number) | Item::End(number) => stays(number),
            _ => false,
        });
        let mut after: After = barrier.map(|(at, _)| (queue, at)).into_iter().collect();
        loop {
            let mut grows = false;
            for (to, items) in &self.queues {
                for (begin, item) in items.iter().enumerate() {
                    let Item::Wait { number, batch } = item else { continue };
                    let Some((from, end)) = self.signal(*batch).filter(|_| stays(number)) else { continue };
                    // A signal comes after all earlier commands of its queue, and after what these come after.
                    let covers = (from == queue && end > at) || after.get(&from).is_some_and(|first| *first <= end);
                    if covers && after.get(to).is_none_or(|first| begin < *first) {
                        after.insert(*to, begin);
                        grows = true;
                    }
                }
            }
            if !grows {
                return after;
            }
        }
    }

    /// Whether what is written at that place can be read by the host when all queues are idle.
    fn reaches_host(&self, at: (usize, usize), after: &After, dropped: Option<usize>) -> bool {
        self.queues.iter().any(|(queue, items)| {
            items.iter().enumerate().any(|(place, item)| {
                let covers = (*queue == at.0 && place > at.1) || after.get(queue).is_some_and(|first| *first <= place);
                covers && matches!(item, Item::End(number) if Some(*number) != dropped)
            })
        })
    }

    /// Two accesses of which nothing orders one before the other, without the dependency `dropped`.
    pub(super) fn races(&self, dropped: Option<usize>) -> Option<Race> {
        let commands: Vec<_> = self.commands().map(|(at, accesses)| (at, accesses, self.after(at, dropped))).collect();
        for (index, (at, accesses, after)) in commands.iter().enumerate() {
            for (other, others, later) in &commands[index + 1..] {
                let comes =
                    |after: &After, (queue, at): (usize, usize)| after.get(&queue).is_some_and(|first| *first < at);
                if comes(after, *other) || comes(later, *at) {
                    continue;
                }
                let mut pairs = accesses.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
                if let Some((one, other)) = pairs.find(|(one, other)| one.conflicts(other)) {
                    return Some(Race(*one, *other));
                }
            }
            if self.reaches_host(*at, after, dropped) {
                continue;
            }
            let mut pairs = accesses.iter().flat_map(|one| self.reads.iter().map(move |read| (one, read)));
            if let Some((one, read)) = pairs.find(|(one, read)| one.conflicts(read)) {
                return Some(Race(*one, *read));
            }
        }
        None
    }
}
