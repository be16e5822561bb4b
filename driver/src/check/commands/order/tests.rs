//! Dependency chains of an access for lists of dependencies, and the condition that fails first.

use super::*;

const EXTENT: Range<u64> = 0..1 << 20;

fn point(stage: Stage, access: Accesses) -> Point {
    Point { queue: Some(0), submitted: 0, stage, access }
}

fn written() -> Order {
    Order::new(point(Stage::ComputeShader, Accesses::STORAGE_WRITE), 0)
}

/// A queue signals after all its commands.
fn signal(events: &mut SyncLog, queue: u32) -> Signal {
    let event = SyncEvent::Signal { queue: Some(queue), submitted: 0, stages: Stages::COMMANDS };
    Signal::new(events.push(event), Some(queue), Stages::COMMANDS)
}

fn side(stage: Stage, accesses: Accesses) -> Side {
    Side { stages: Stages::of(stage), named: Stages::of(stage), accesses }
}

fn barrier(src: Side, dst: Side, memory: Option<Range<u64>>) -> SyncEvent {
    let barriers = [Barrier::new(src, dst, memory.map(|range| [range].into()))];
    SyncEvent::Barrier { queue: 0, submitted: 0, barriers: barriers.into() }
}

fn after(mut order: Order, list: &[SyncEvent], to: Point, range: Range<u64>) -> Result<(), (Lack, Range<u64>)> {
    let mut events = SyncLog::default();
    list.iter().for_each(|event| _ = events.push(event.clone()));
    order.follow(&events, &EXTENT);
    order.precedes(&to, &range)
}

const READ: (Stage, Accesses) = (Stage::ComputeShader, Accesses::STORAGE_READ);
const WRITE: (Stage, Accesses) = (Stage::ComputeShader, Accesses::STORAGE_WRITE);
const COPY: (Stage, Accesses) = (Stage::Copy, Accesses::TRANSFER_READ);

fn of((stage, access): (Stage, Accesses)) -> Side {
    side(stage, access)
}

fn at((stage, access): (Stage, Accesses)) -> Point {
    point(stage, access)
}

#[test]
fn a_write_needs_order_availability_and_visibility() {
    let none = side(Stage::ComputeShader, Accesses::NONE);
    let lack = |list: &[SyncEvent]| after(written(), list, at(READ), 0..4).map_err(|(lack, _)| lack);
    assert_eq!(lack(&[]), Err(Lack::Order));
    assert_eq!(lack(&[barrier(of(COPY), of(READ), None)]), Err(Lack::Order));
    assert_eq!(lack(&[barrier(none, of(READ), None)]), Err(Lack::Availability));
    assert_eq!(lack(&[barrier(of(WRITE), of(WRITE), None)]), Err(Lack::Visibility));
    assert_eq!(lack(&[barrier(of(WRITE), of(READ), None)]), Ok(()));
}

#[test]
fn a_chain_passes_availability_on() {
    let to_copy = barrier(of(WRITE), side(Stage::Copy, Accesses::NONE), None);
    let to_read = barrier(side(Stage::Copy, Accesses::NONE), of(READ), None);
    assert_eq!(after(written(), &[to_copy.clone(), to_read.clone()], at(READ), 0..4), Ok(()));
    let lack = after(written(), &[to_read, to_copy], at(READ), 0..4).unwrap_err().0;
    assert_eq!(lack, Lack::Order, "a chain has an order");
}

#[test]
fn a_read_needs_order_only() {
    let none = |stage| side(stage, Accesses::NONE);
    let read = Order::new(at(READ), 0);
    let ordered = [barrier(none(Stage::ComputeShader), none(Stage::Clear), None)];
    let clear = point(Stage::Clear, Accesses::TRANSFER_WRITE);
    assert_eq!(after(read, &ordered, clear, 0..4), Ok(()));
}

#[test]
fn ranges_limit_availability_and_not_order() {
    let list = [barrier(of(WRITE), of(READ), Some(16..32))];
    assert_eq!(after(written(), &list, at(READ), 16..32), Ok(()));
    assert_eq!(after(written(), &list, at(READ), 8..24), Err((Lack::Availability, 8..16)));
    assert_eq!(after(written(), &list, at(READ), 24..40), Err((Lack::Availability, 32..40)));
    let two = [barrier(of(WRITE), of(COPY), Some(0..32)), barrier(of(WRITE), of(READ), Some(16..48))];
    assert_eq!(after(written(), &two, at(READ), 16..48), Ok(()));
    assert_eq!(after(written(), &two, at(COPY), 0..48), Err((Lack::Availability, 32..48)));
}

#[test]
fn a_chain_through_a_barrier_for_other_memory_keeps_what_is_available() {
    let none = |stage| side(stage, Accesses::NONE);
    let available = barrier(of(WRITE), none(Stage::Copy), None);
    let other = barrier(none(Stage::Copy), none(Stage::Clear), Some(64..128));
    let visible = |memory| barrier(none(Stage::Clear), of(READ), memory);
    let through = |last| after(written(), &[available.clone(), other.clone(), last], at(READ), 0..4);
    assert_eq!(through(visible(None)), Ok(()));
    assert_eq!(through(visible(Some(0..4))), Ok(()));
    assert_eq!(through(visible(Some(4..8))).unwrap_err().0, Lack::Visibility);
}

#[test]
fn the_host_waits_and_submits_again() {
    let mut events = SyncLog::default();
    let signal = signal(&mut events, 0);
    let mut order = written();
    order.follow(&events, &EXTENT);
    let host = Point { queue: None, submitted: 1, stage: Stage::Host, access: Accesses::HOST_READ };
    assert_eq!(order.precedes(&host, &(0..4)).unwrap_err().0, Lack::Order);
    let known = events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals: [signal].as_slice().into() });
    order.follow(&events, &EXTENT);
    assert_eq!(order.precedes(&host, &(0..4)).unwrap_err().0, Lack::HostDomain);
    let next = Point { submitted: known + 1, ..at(READ) };
    assert_eq!(order.precedes(&next, &(0..4)), Ok(()));
    assert_eq!(order.precedes(&at(READ), &(0..4)).unwrap_err().0, Lack::Order, "submitted before the wait");
}

#[test]
fn another_queue_makes_visible_to_the_host_what_it_waited_for() {
    let (src, dst) = (side(Stage::ComputeShader, Accesses::NONE), side(Stage::Host, Accesses::HOST_READ));
    let barriers = [Barrier::new(src, dst, None)];
    let run = |waits: bool| {
        let mut events = SyncLog::default();
        let all = Stages::COMMANDS;
        let signal = signal(&mut events, 0);
        if waits {
            events.push(SyncEvent::Wait { queue: Some(1), stages: all, signals: [signal].as_slice().into() });
        }
        events.push(SyncEvent::Barrier { queue: 1, submitted: 0, barriers: barriers.clone().into() });
        // Done on its own queue, too: only what the host sees is in question.
        let done = [0, 1].map(|queue| self::signal(&mut events, queue));
        events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals: done.as_slice().into() });
        let mut order = written();
        order.follow(&events, &EXTENT);
        let host = Point { queue: None, submitted: 9, stage: Stage::Host, access: Accesses::HOST_READ };
        order.precedes(&host, &(0..4)).map_err(|(lack, _)| lack)
    };
    assert_eq!(run(true), Ok(()));
    assert_eq!(run(false), Err(Lack::HostDomain));
}

#[test]
fn what_a_queue_makes_visible_to_the_host_is_not_known_by_a_signal_of_another_one() {
    let (src, dst) = (side(Stage::ComputeShader, Accesses::NONE), side(Stage::Host, Accesses::HOST_READ));
    let barriers = [Barrier::new(src, dst, None)];
    let run = |awaited: u32| {
        let (mut events, all) = (SyncLog::default(), Stages::COMMANDS);
        let signal = signal(&mut events, 0);
        events.push(SyncEvent::Wait { queue: Some(1), stages: all, signals: [signal].as_slice().into() });
        events.push(SyncEvent::Barrier { queue: 1, submitted: 0, barriers: barriers.clone().into() });
        // Both queues are done with the write when the host has waited for either.
        let done = [0, 1].map(|queue| self::signal(&mut events, queue));
        let signals = [done[awaited as usize]].as_slice().into();
        events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals });
        let mut order = written();
        order.follow(&events, &EXTENT);
        let host = Point { queue: None, submitted: 9, stage: Stage::Host, access: Accesses::HOST_READ };
        assert_eq!(order.is_over(events.next()), awaited == 1);
        order.precedes(&host, &(0..4)).map_err(|(lack, _)| lack)
    };
    assert_eq!([run(0), run(1)], [Err(Lack::HostDomain), Ok(())]);
}

#[test]
fn an_event_makes_visible_to_the_host_what_the_host_knew_before_the_submission() {
    let barriers = [Barrier::new(side(Stage::Copy, Accesses::NONE), side(Stage::Host, Accesses::HOST_READ), None)];
    let run = |waits_first: bool| {
        let mut events = SyncLog::default();
        let signal = signal(&mut events, 0);
        let mut submitted = events.push(SyncEvent::Submission { waits: [].into() });
        events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals: [signal].as_slice().into() });
        if waits_first {
            submitted = events.push(SyncEvent::Submission { waits: [].into() });
        }
        let stages = Stages::of(Stage::Copy);
        let set =
            Signal::new(events.push(SyncEvent::Set { queue: Some(1), object: 0, submitted, stages }), Some(1), stages);
        let signals = [set].as_slice().into();
        events.push(SyncEvent::WaitEvents { queue: 1, signals, barriers: barriers.clone().into() });
        let done = self::signal(&mut events, 1);
        events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals: [done].as_slice().into() });
        let mut order = written();
        order.follow(&events, &EXTENT);
        let host = Point { queue: None, submitted: 9, stage: Stage::Host, access: Accesses::HOST_READ };
        order.precedes(&host, &(0..4)).map_err(|(lack, _)| lack)
    };
    assert_eq!([run(true), run(false)], [Ok(()), Err(Lack::HostDomain)]);
}

#[test]
fn what_comes_before_a_barrier_to_the_host_is_done_when_the_host_knows_of_the_barrier() {
    let stages = Stages::of(Stage::Host);
    let (src, dst) = (side(Stage::Host, Accesses::NONE), side(Stage::Host, Accesses::HOST_READ));
    let run = |earlier: Order, later, barriers: &[Barrier]| {
        let mut events = SyncLog::default();
        let signal = signal(&mut events, 0);
        events.push(SyncEvent::Wait { queue: Some(1), stages, signals: [signal].as_slice().into() });
        for barrier in barriers {
            events.push(SyncEvent::Barrier { queue: 1, submitted: 0, barriers: [barrier.clone()].into() });
        }
        let done = self::signal(&mut events, 1);
        let known =
            events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals: [done].as_slice().into() });
        let mut order = earlier;
        order.follow(&events, &EXTENT);
        let lack = order.precedes(&Point { submitted: known + 1, ..at(later) }, &(0..4)).map_err(|(lack, _)| lack);
        (lack, order)
    };
    let all = Barrier::new(src, dst, None);
    let read = || Order::new(at(READ), 0);
    // A semaphore that only the host's stage waits for is in no scope of a fence.
    assert_eq!(run(written(), READ, &[]).0, Err(Lack::Order));
    assert_eq!(run(read(), WRITE, &[]).0, Err(Lack::Order));
    assert_eq!(run(written(), READ, std::slice::from_ref(&all)).0, Ok(()));
    // Of a read, whatever memory the barrier names.
    let of_other_memory = Barrier::new(src, dst, Some(std::iter::once(64..128).collect()));
    for barrier in [all.clone(), of_other_memory] {
        assert_eq!(run(read(), WRITE, &[barrier]).0, Ok(()));
    }
    // Many of them need no more memory than one.
    let many = vec![all; 1000];
    assert_eq!(run(read(), WRITE, &many).1.bytes(), run(read(), WRITE, &many[..1]).1.bytes());
}

#[test]
fn of_an_event_that_is_set_again_and_again_one_is_kept() {
    let mut events = SyncLog::default();
    for submitted in 0..1000 {
        events.push(SyncEvent::Set { queue: Some(0), object: 7, submitted, stages: Stages::of(Stage::ComputeShader) });
    }
    let mut order = written();
    order.follow(&events, &EXTENT);
    assert_eq!(order.set.iter().map(|set| set.number).collect::<Vec<_>>(), [999]);
}

#[test]
fn an_event_orders_what_had_come_so_far_when_it_was_set() {
    let set = |stage| SyncEvent::Set { queue: Some(0), object: 0, submitted: 0, stages: Stages::of(stage) };
    let wait = |event: u64| {
        let signal = Signal::new(event, Some(0), Stages::of(Stage::Clear));
        let barriers = [Barrier::new(side(Stage::Clear, Accesses::NONE), of(COPY), None)];
        SyncEvent::WaitEvents { queue: 0, signals: [signal].as_slice().into(), barriers: barriers.into() }
    };
    let to_clear = barrier(of(WRITE), side(Stage::Clear, Accesses::NONE), None);
    let before = [to_clear.clone(), set(Stage::Clear), wait(1)];
    assert_eq!(after(written(), &before, at(COPY), 0..4), Ok(()));
    let between = [set(Stage::Clear), to_clear.clone(), wait(0)];
    assert_eq!(after(written(), &between, at(COPY), 0..4).unwrap_err().0, Lack::Order);
    // It is in the scope of the event, by another stage of it: what made it available came later.
    let both = Stages::of(Stage::Clear).or(Stages::of(Stage::ComputeShader));
    let event = SyncEvent::Set { queue: Some(0), object: 0, submitted: 0, stages: both };
    assert_eq!(after(written(), &[event, to_clear, wait(0)], at(COPY), 0..4).unwrap_err().0, Lack::Order);
}

#[test]
fn the_host_sees_what_was_made_visible_before_the_signal_that_it_waited_for() {
    let signal = SyncEvent::Signal { queue: Some(0), submitted: 0, stages: Stages::COMMANDS };
    let wait = |event: u64| {
        let signal = Signal::new(event, Some(0), Stages::COMMANDS);
        let signals = [signal].as_slice().into();
        SyncEvent::Wait { queue: None, stages: Stages::NONE, signals }
    };
    let visible = barrier(of(WRITE), side(Stage::Host, Accesses::HOST_READ), None);
    let host = Point { queue: None, submitted: 9, stage: Stage::Host, access: Accesses::HOST_READ };
    let early = [signal.clone(), visible.clone(), signal.clone(), wait(0)];
    assert_eq!(after(written(), &early, host, 0..4).unwrap_err().0, Lack::HostDomain);
    let late = [signal.clone(), visible, signal, wait(2)];
    assert_eq!(after(written(), &late, host, 0..4), Ok(()));
}

#[test]
fn a_semaphore_orders_queues_from_its_stages_on() {
    let mut events = SyncLog::default();
    let signal = signal(&mut events, 0);
    let stages = Stages::of(Stage::ComputeShader);
    events.push(SyncEvent::Wait { queue: Some(1), stages, signals: [signal].as_slice().into() });
    let mut order = written();
    order.follow(&events, &EXTENT);
    let there = |(stage, access)| Point { queue: Some(1), ..point(stage, access) };
    assert_eq!(order.precedes(&there(READ), &(0..4)), Ok(()));
    assert_eq!(order.precedes(&there(COPY), &(0..4)).unwrap_err().0, Lack::Order);
    assert_eq!(order.precedes(&at(READ), &(0..4)).unwrap_err().0, Lack::Order);
}
