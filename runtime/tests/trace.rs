//! The timeline that is written for viewers: its slices nest, and what overlaps is told apart.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;

use serde_json::Value;
use spelter::Context;

const ADD: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { to[id.x] += source[id.x]; }";

fn events() -> Vec<Value> {
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
    let mut text = Vec::new();
    context.write_trace(&mut text).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

#[test]
fn slices_of_a_track_nest_and_batches_are_pairs() {
    let events = events();
    let of = |ph: &'static str| events.iter().filter(move |event| event["ph"] == ph);
    let mut tracks: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for slice in of("X") {
        let track = (slice["pid"].as_u64().unwrap(), slice["tid"].as_u64().unwrap());
        let (start, time) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        tracks.entry(track).or_default().push((start, start + time));
    }
    assert!(tracks.keys().any(|(process, _)| *process == 1) && tracks.keys().any(|(process, _)| *process == 3));
    for (track, mut slices) in tracks {
        slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut open: Vec<f64> = Vec::new();
        for (start, end) in slices {
            open.retain(|outer| *outer > start + 1e-6);
            assert!(open.iter().all(|outer| end <= outer + 1e-6), "track {track:?}: {start}..{end} in {open:?}");
            open.push(end);
        }
    }
    let ids = |ph| of(ph).map(|event| event["id"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(ids("b"), ids("e"));
    let named = |what: &str| of("b").filter(|event| event["name"].as_str().unwrap().starts_with(what)).count();
    assert!(named("record batch") >= 20 && named("batch") >= 20);
    assert!(of("i").any(|event| event["name"].as_str().unwrap().starts_with("rename")));
}
