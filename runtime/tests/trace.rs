//! The timeline for viewers, which follows the rules of Perfetto's importer of JSON traces.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spelter::Context;
use spelter_driver::{Semaphore, SemaphoreSubmit, SubmitInfo};

const ADD: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { to[id.x] += source[id.x]; }";

fn events() -> Vec<Value> {
    let context = work();
    written(&context)
}

fn work() -> Context {
    let context = Context::builder().workers(2).trace(true).build().unwrap();
    let program = context.program_wgsl(ADD).unwrap();
    let [a, b] = [(); 2].map(|()| context.buffer(64 << 10).zeroed().unwrap());
    let sibling = context.sibling();
    for iteration in 0..10u32 {
        context.upload(&a, &[iteration; 16 << 10]).unwrap();
        context.dispatch(&program).bind(0, 0, &a).bind(0, 1, &b).groups([256, 1, 1]).unwrap();
        sibling.dispatch(&program).bind(0, 0, &b).bind(0, 1, &a).groups([256, 1, 1]).unwrap();
        context.read::<u32>(&b).unwrap();
    }
    context.finish().unwrap();
    sibling.finish().unwrap();
    context
}

/// Checks the rules that Perfetto's documentation states for JSON traces ("Visualizing external trace formats", "Chrome
/// JSON format", and the Trace Event Format that it refers to): the fields of each kind of event, slices that nest,
/// arrows between slices, and names for processes and threads.
fn check_rules(events: &[Value]) {
    let kinds = ["X", "i", "C", "M", "s", "t", "f"];
    let integer = |event: &Value, name: &str| event[name].as_u64().unwrap_or_else(|| panic!("{name} of {event}"));
    let place = |event: &Value| (integer(event, "pid"), integer(event, "tid"));
    let mut named: BTreeSet<(u64, Option<u64>)> = BTreeSet::new();
    let mut slices: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    type Key<'a> = (&'a str, &'a str, u64);
    let mut arrows: BTreeMap<Key<'_>, Vec<(&str, f64)>> = BTreeMap::new();
    for event in events {
        let kind = event["ph"].as_str().unwrap();
        assert!(kinds.contains(&kind) && !event["name"].as_str().unwrap().is_empty(), "{event}");
        integer(event, "pid");
        let ts = event["ts"].as_f64();
        assert!(kind == "M" || ts.is_some_and(|ts| ts >= 0.0 && ts.is_finite()), "{event}");
        match kind {
            "X" => {
                let long = event["dur"].as_f64().unwrap();
                assert!(long >= 0.0 && event["args"].is_object() && event["cat"].is_string(), "{event}");
                slices.entry(place(event)).or_default().push((ts.unwrap(), ts.unwrap() + long));
            }
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}"),
            "i" => assert!(event["s"] == "t" && place(event).1 > 0, "{event}"),
            "M" if event["name"] == "process_name" => _ = named.insert((integer(event, "pid"), None)),
            "M" if event["name"] == "thread_name" => {
                assert!(event["args"]["name"].is_string(), "{event}");
                named.insert((place(event).0, Some(place(event).1)));
            }
            "M" => assert!(event["args"]["sort_index"].is_u64(), "{event}"),
            arrow => {
                // Arrows are joined by id, category and name, and bound to the slice that encloses their time.
                let key = (event["cat"].as_str().unwrap(), event["name"].as_str().unwrap(), integer(event, "id"));
                assert!(["flow", "dependency", "missing"].contains(&key.0), "{event}");
                assert!(arrow == "s" || event["bp"] == "e", "{event}");
                arrows.entry(key).or_default().push((arrow, ts.unwrap()));
            }
        }
    }
    for event in events.iter().filter(|event| ["s", "t", "f"].contains(&event["ph"].as_str().unwrap())) {
        let (at, within) = (event["ts"].as_f64().unwrap(), &slices[&place(event)]);
        assert!(within.iter().any(|(start, end)| *start <= at && at <= *end), "no slice encloses {event}");
    }
    for (key, mut ends) in arrows {
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let kinds: Vec<_> = ends.iter().map(|(kind, _)| *kind).collect();
        // From the recording by the submission to the run; from a command to a later one.
        let expected = if key.0 == "flow" { &["s", "t", "f"][..] } else { &["s", "f"] };
        assert_eq!(kinds, expected, "{key:?}");
    }
    for (process, thread) in slices.keys() {
        assert!(named.contains(&(*process, None)) && named.contains(&(*process, Some(*thread))));
    }
    nested(events);
}

fn written(context: &Context) -> Vec<Value> {
    let mut text = Vec::new();
    context.write_trace(&mut text).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

/// The tracks, each by process and number, whose slices nest.
fn nested(events: &[Value]) -> Vec<(u64, u64)> {
    let mut tracks: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for slice in events.iter().filter(|event| event["ph"] == "X") {
        let track = (slice["pid"].as_u64().unwrap(), slice["tid"].as_u64().unwrap());
        let (start, time) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        tracks.entry(track).or_default().push((start, start + time));
    }
    for (track, slices) in &mut tracks {
        slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut open: Vec<f64> = Vec::new();
        for (start, end) in slices {
            open.retain(|outer| *outer > *start + 1e-6);
            assert!(open.iter().all(|outer| *end <= outer + 1e-6), "track {track:?}: {start}..{end} in {open:?}");
            open.push(*end);
        }
    }
    tracks.into_keys().collect()
}

#[test]
fn slices_of_a_track_nest() {
    let events = events();
    let of = |ph: &'static str| events.iter().filter(move |event| event["ph"] == ph);
    check_rules(&events);
    let tracks = nested(&events);
    for process in 1..=3 {
        assert!(tracks.iter().any(|(of, _)| *of == process), "no track of process {process}");
    }
    let named = |process: u64, what: &str| {
        let is = |event: &&Value| event["pid"] == process && event["name"].as_str().unwrap().starts_with(what);
        of("X").filter(is).count()
    };
    assert!(named(1, "record batch") >= 20 && named(2, "submission") >= 20);
    assert!(of("i").any(|event| event["name"].as_str().unwrap().starts_with("rename")));
    let names: Vec<_> =
        of("M").filter(|event| event["name"] == "thread_name").map(|event| &event["args"]["name"]).collect();
    for wanted in ["context 1", "context 2", "thread 1", "queue 0", "queue 1", "worker "] {
        assert!(
            names.iter().any(|name| name.as_str().unwrap().starts_with(wanted)),
            "no track {wanted:?} in {names:?}"
        );
    }
}

#[test]
fn what_two_threads_do_in_one_context_nests_too() {
    let context = Context::builder().workers(1).trace(true).build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let buffer = context.buffer(1 << 20).build().unwrap();
                for iteration in 0..20u32 {
                    context.write(&buffer, 0, &vec![iteration; 1 << 18]).unwrap();
                    context.fill(&buffer, iteration).unwrap();
                    assert_eq!(context.read_range::<u32>(&buffer, 0..4).unwrap(), [iteration]);
                }
            });
        }
    });
    check_rules(&written(&context));
}

#[test]
fn dispatches_calls_and_counters_are_there() {
    let context = Context::builder().workers(2).trace(true).build().unwrap();
    let program = context.program(ADD).label("add up").build().unwrap();
    let [a, b] = ["first", "second"].map(|name| context.buffer(64 << 10).label(name).zeroed().unwrap());
    for _ in 0..3 {
        context.dispatch(&program).bind(0, 0, &a).bind(0, 1, &b).groups([256, 1, 1]).unwrap();
    }
    context.read::<u32>(&b).unwrap();
    context.write(&a, 0, &[1u32; 4]).unwrap();
    context.finish().unwrap();
    let events = written(&context);
    check_rules(&events);
    let with = |category: &'static str| events.iter().filter(move |event| event["cat"] == category);
    let dispatches: Vec<_> = with("dispatch").collect();
    assert_eq!(dispatches.len(), 3);
    for dispatch in dispatches {
        let args = &dispatch["args"];
        assert_eq!((&dispatch["name"], &args["groups"]), (&"add up".into(), &serde_json::json!([256, 1, 1])));
        assert_eq!((&args["workgroups"], &args["bytes"]), (&256.into(), &(128 << 10).into()));
        assert!(args["busy_us"].as_f64().unwrap() > 0.0);
    }
    let units: u64 = with("chunk").map(|chunk| chunk["args"]["units"].as_u64().unwrap()).sum();
    assert_eq!(units, 3 * 256, "chunks of workers");
    let call = |name: &str| {
        let found = with("host").find(|event| event["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["args"]["resource"].as_str().unwrap().to_owned()
    };
    assert!(call("wait: read back").starts_with("buffer `second`") && call("write").starts_with("buffer `first`"));
    // What counts what waits ends at 0.
    let last = |name: &str| {
        let of = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
        of.max_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()))
            .map(|e| e["args"]["value"].clone())
    };
    for name in ["depth of queue 0", "bytes pending", "busy workers"] {
        assert_eq!(last(name), Some(0.into()), "{name}");
    }
}

/// A dispatch with a label has it, before the name of its program; the next one has its own, or none.
#[test]
fn a_dispatch_has_its_label() {
    let context = Context::builder().workers(1).trace(true).build().unwrap();
    let program = context.program(ADD).label("add up").build().unwrap();
    let [a, b] = [(); 2].map(|()| context.buffer(64 << 10).zeroed().unwrap());
    let dispatch = || context.dispatch(&program).bind(0, 0, &a).bind(0, 1, &b);
    dispatch().label("second pass").groups([256, 1, 1]).unwrap();
    dispatch().groups([256, 1, 1]).unwrap();
    let record = |commands: &mut spelter::Recorder| {
        commands.group("frame", |commands| {
            let dispatch = commands.dispatch(&program).bind(0, 0, &a).bind(0, 1, &b);
            dispatch.label("third").groups([256, 1, 1])
        })
    };
    context.submit(&context.record(record).unwrap()).unwrap();
    context.finish().unwrap();
    let mut dispatches: Vec<_> = written(&context).into_iter().filter(|event| event["cat"] == "dispatch").collect();
    dispatches.sort_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()));
    let names: Vec<_> = dispatches.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["second pass: add up", "add up", "frame/third: add up"]);
}

/// The arrows of a category: their names, with those of the innermost slices from which and to which they lead.
fn arrows<'a>(events: &'a [Value], category: &str) -> Vec<[&'a str; 3]> {
    let of = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let slice = |end: &Value| {
        let time = |slice: &Value| (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        let at = end["ts"].as_f64().unwrap();
        let has = |slice: &&Value| {
            let (start, long) = time(slice);
            slice["pid"] == end["pid"] && slice["tid"] == end["tid"] && start <= at && at <= start + long
        };
        let inner = of("X").filter(has).min_by(|a, b| time(a).1.total_cmp(&time(b).1)).unwrap();
        inner["name"].as_str().unwrap()
    };
    let begins = of("s").filter(|event| event["cat"] == category);
    let arrow = |begin: &'a Value| {
        let ends = |end: &&Value| ["cat", "name", "id"].iter().all(|key| end[key] == begin[key]);
        let end = of("f").find(ends).unwrap();
        [begin["name"].as_str().unwrap(), slice(begin), slice(end)]
    };
    begins.map(arrow).collect()
}

#[test]
fn dependencies_are_arrows_between_commands() {
    let context = Context::builder().workers(2).trace(true).build().unwrap();
    let sibling = context.sibling();
    let program = context.program(ADD).label("add").build().unwrap();
    let [a, b] = [(); 2].map(|()| context.buffer(64 << 10).zeroed().unwrap());
    let [first, second, third] = ["first", "second", "third"];
    let dispatch = |on: &Context, label: &'static str| {
        on.dispatch(&program).label(label).bind(0, 0, &a).bind(0, 1, &b).groups([256, 1, 1]).unwrap();
    };
    dispatch(&context, first);
    dispatch(&context, second);
    context.flush().unwrap();
    dispatch(&context, first);
    dispatch(&sibling, third);
    sibling.finish().unwrap();
    context.finish().unwrap();
    let events = written(&context);
    check_rules(&events);
    let dependencies = arrows(&events, "dependency");
    let of = |what: &str| dependencies.iter().filter(|[name, ..]| *name == what).collect::<Vec<_>>();
    assert_eq!(of("barrier"), [&["barrier", "first: add", "second: add"]], "{dependencies:?}");
    assert!(
        of("submission order").contains(&&["submission order", "submission 1", "submission 2"]),
        "{dependencies:?}"
    );
    assert_eq!(of("semaphore").len(), 1, "{dependencies:?}");
    assert!(of("semaphore")[0][1].starts_with("submission"), "{dependencies:?}");
    assert!(arrows(&events, "missing").is_empty());
}

/// A wait that ended by the initial value or by the host has no arrow, and a semaphore none from another one.
#[test]
fn an_arrow_of_a_semaphore_leads_from_the_signal_that_ended_the_wait() {
    let context = Context::builder().workers(1).trace(true).build().unwrap();
    let device = context.device();
    let queue = device.queue();
    let submit = |wait: Option<(&Semaphore, u64)>, signal: Option<(&Semaphore, u64)>| {
        let waits: Vec<_> = wait.into_iter().map(|(of, value)| SemaphoreSubmit::new(of, value)).collect();
        let signals: Vec<_> = signal.into_iter().map(|(of, value)| SemaphoreSubmit::new(of, value)).collect();
        queue.submit_all(&[SubmitInfo { waits: &waits, commands: &[], signals: &signals }], None).unwrap()
    };
    // Later semaphores may have the addresses of these.
    let destroyed: Vec<Semaphore> = (0..16).map(|_| device.create_timeline_semaphore(0)).collect();
    destroyed.iter().for_each(|semaphore| _ = submit(None, Some((semaphore, 5))));
    queue.wait_idle().unwrap();
    drop(destroyed);
    let initial: Vec<Semaphore> = (0..16).map(|_| device.create_timeline_semaphore(3)).collect();
    initial.iter().for_each(|semaphore| _ = submit(Some((semaphore, 2)), None));
    // Nor does a later signal end such a wait.
    submit(None, Some((&initial[0], 7)));
    submit(Some((&initial[0], 2)), None);
    let by_host = device.create_timeline_semaphore(0);
    by_host.signal(4).unwrap();
    let signaller = submit(None, Some((&by_host, 6)));
    submit(Some((&by_host, 4)), None);
    let waiter = submit(Some((&by_host, 5)), None);
    queue.wait_idle().unwrap();
    let events = written(&context);
    let mut semaphores = arrows(&events, "dependency");
    semaphores.retain(|[name, ..]| *name == "semaphore");
    let [from, to] = [signaller, waiter].map(|serial| format!("submission {serial}"));
    assert_eq!(semaphores, [["semaphore", &*from, &*to]]);
}

#[test]
fn an_event_is_an_arrow_from_where_it_was_set_to_what_waited_for_it() {
    let context = Context::builder().workers(1).trace(true).build().unwrap();
    let device = context.device();
    let buffer = context.buffer_zeroed(1024).unwrap();
    let [event, by_host, again] = [0; 3].map(|_| device.create_event());
    by_host.set();
    // A command sets one, and the host resets it and sets it again.
    let recorded = |record: &dyn Fn(&spelter_driver::CommandBuffer)| {
        let commands = device.create_command_pool().allocate();
        commands.begin(spelter::vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT).unwrap();
        record(&commands);
        commands.end().unwrap();
        commands
    };
    let lend = || context.lend(&[spelter::Lend::write(&buffer)]).unwrap();
    lend().submit(&[&recorded(&|commands| commands.set_event(&again).unwrap())]).unwrap();
    context.finish().unwrap();
    again.reset();
    again.set();
    let loan = lend();
    let commands = recorded(&|commands| {
        let lent = &loan.buffers()[0];
        let fill = |name: &str, part: u64| {
            commands.set_label(Some(name)).unwrap();
            commands.fill_buffer(lent.buffer, lent.offset + 256 * part, 256, 1).unwrap();
        };
        fill("first", 0);
        for name in ["between", "no effect"] {
            commands.set_label(Some(name)).unwrap();
            commands.set_event(&event).unwrap();
        }
        fill("second", 1);
        commands.wait_events(&[&by_host, &again]).unwrap();
        fill("third", 2);
        commands.wait_events(&[&event]).unwrap();
        fill("fourth", 3);
    });
    loan.submit(&[&commands]).unwrap();
    context.finish().unwrap();
    let events = written(&context);
    check_rules(&events);
    let mut of_events = arrows(&events, "dependency");
    of_events.retain(|[name, ..]| *name == "event");
    assert_eq!(of_events, [["event", "between: set event", "fourth: fill"]]);
}

/// Two commands of the program's own, without a barrier.
#[test]
fn the_dependency_that_a_finding_misses_is_an_arrow() {
    let context = Context::builder().check(Default::default()).trace(true).build().unwrap();
    let buffer = context.buffer_zeroed(1024).unwrap();
    let loan = context.lend(&[spelter::Lend::write(&buffer)]).unwrap();
    let commands = context.device().create_command_pool().allocate();
    commands.begin(spelter::vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT).unwrap();
    {
        let lent = &loan.buffers()[0];
        for (name, word) in [("one", 1), ("other", 2)] {
            commands.set_label(Some(name)).unwrap();
            commands.fill_buffer(lent.buffer, lent.offset, lent.bytes, word).unwrap();
        }
    }
    commands.end().unwrap();
    loan.submit(&[&commands]).unwrap();
    context.finish().unwrap();
    let findings = context.findings().unwrap();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let events = written(&context);
    check_rules(&events);
    let missing = arrows(&events, "missing");
    assert_eq!(missing, [["missing dependency: SPELTER-RACE-WAW", "one: fill", "other: fill"]], "{events:#?}");
}
