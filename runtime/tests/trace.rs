//! The timeline for viewers: a track for each context, queue and worker, with slices that nest.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;

use serde_json::Value;
use spelter::Context;

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
    for turn in 0..10u32 {
        context.upload(&a, &[turn; 16 << 10]).unwrap();
        context.dispatch(&program).bind(0, 0, &a).bind(0, 1, &b).groups([256, 1, 1]).unwrap();
        sibling.dispatch(&program).bind(0, 0, &b).bind(0, 1, &a).groups([256, 1, 1]).unwrap();
        context.read::<u32>(&b).unwrap();
    }
    context.finish().unwrap();
    sibling.finish().unwrap();
    context
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
    let tracks = nested(&events);
    for process in 1..=3 {
        assert!(tracks.iter().any(|(of, _)| *of == process), "no track of process {process}");
    }
    let named = |process: u64, what: &str| {
        let is = |event: &&Value| event["pid"] == process && event["name"].as_str().unwrap().starts_with(what);
        of("X").filter(is).count()
    };
    assert!(named(1, "record batch") >= 20 && named(2, "batch") >= 20);
    assert!(of("i").any(|event| event["name"].as_str().unwrap().starts_with("rename")));
    let names: Vec<_> =
        of("M").filter(|event| event["name"] == "thread_name").map(|event| &event["args"]["name"]).collect();
    for wanted in ["context 1", "context 2", "queue 0", "queue 1", "worker "] {
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
                for turn in 0..20u32 {
                    context.write(&buffer, 0, &vec![turn; 1 << 18]).unwrap();
                    context.fill(&buffer, turn).unwrap();
                    assert_eq!(context.read_range::<u32>(&buffer, 0..4).unwrap(), [turn]);
                }
            });
        }
    });
    nested(&written(&context));
}
