//! Draws a part of a timeline as a picture for the documentation: from a trace in Chrome's format to SVG.
//!
//!     cargo run --release -p spelter --example streaming -- timeline.json
//!     cargo run -p spelter-tests --bin timeline -- timeline.json docs/pictures/timeline.svg --from 20 --to 60

mod picture;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;

use picture::{Event, Picture, Track};

/// Draws a part of a timeline that `Context::write_trace` or `spelter run --trace` wrote.
#[derive(Debug, Parser)]
struct Args {
    /// The timeline.
    trace: PathBuf,
    /// The picture, in SVG.
    picture: PathBuf,
    /// Start, in milliseconds of the trace.
    #[arg(long, default_value_t = 0.0)]
    from: f64,
    /// End, in milliseconds; by default the end of the trace.
    #[arg(long)]
    to: Option<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let trace: Value = serde_json::from_slice(&std::fs::read(&args.trace)?)?;
    let events = trace["traceEvents"].as_array().ok_or("no traceEvents")?;
    let tracks = tracks(events);
    let end = tracks.iter().flat_map(|track| &track.events).map(|event| event.end).fold(0.0, f64::max);
    let (from, to) = (args.from, args.to.unwrap_or(end));
    if !(from < to && to.is_finite()) {
        return Err(format!("nothing lies between {from} and {to} ms").into());
    }
    std::fs::write(&args.picture, Picture { from, to }.draw(&tracks))?;
    Ok(())
}

/// The tracks with a name, in the order of processes and threads; times in milliseconds.
fn tracks(events: &[Value]) -> Vec<Track> {
    let place = |event: &Value| Some((event["pid"].as_u64()?, event["tid"].as_u64()?));
    let named = events.iter().filter(|event| event["ph"] == "M" && event["name"] == "thread_name");
    let mut tracks: BTreeMap<(u64, u64), Track> = named
        .filter_map(|event| {
            let name = event["args"]["name"].as_str()?.to_owned();
            Some((place(event)?, Track { name, events: Vec::new() }))
        })
        .collect();
    for event in events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "i") {
        let (Some(place), Some(name), Some(start)) = (place(event), event["name"].as_str(), event["ts"].as_f64())
        else {
            continue;
        };
        let time = event["dur"].as_f64();
        let event = Event {
            name: name.to_owned(),
            start: start / 1000.0,
            end: (start + time.unwrap_or(0.0)) / 1000.0,
            instant: time.is_none(),
        };
        if let Some(track) = tracks.get_mut(&place) {
            track.events.push(event);
        }
    }
    tracks.into_values().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn threads_of_processes_are_tracks_of_their_own() {
        let name = |pid: u64, name: &str| json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": 1, "args": { "name": name } });
        let slice =
            |pid: u64, name: &str| json!({ "ph": "X", "name": name, "pid": pid, "tid": 1, "ts": 1000, "dur": 500 });
        let counter = json!({ "ph": "C", "name": "depth", "pid": 1, "ts": 0, "args": { "value": 1 } });
        let found = tracks(&[name(2, "worker"), name(1, "queue"), slice(2, "scan"), slice(1, "submission"), counter]);
        let shown: Vec<_> = found.iter().map(|track| (track.name.as_str(), track.events[0].name.as_str())).collect();
        assert_eq!(shown, [("queue", "submission"), ("worker", "scan")]);
        assert_eq!((found[0].events[0].start, found[0].events[0].end, found[0].events.len()), (1.0, 1.5, 1));
    }
}
