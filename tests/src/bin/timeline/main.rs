//! Draws a part of a timeline as a picture for the documentation: from a trace in Chrome's format to SVG.
//!
//!     cargo run --release -p spelter --example streaming -- timeline.json
//!     cargo run -p spelter-tests --bin timeline -- timeline.json docs/pictures/timeline.svg --from 20 --to 60

mod picture;

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

/// The tracks with a name, in the order of their numbers; times in milliseconds.
fn tracks(events: &[Value]) -> Vec<Track> {
    let named = events.iter().filter(|event| event["ph"] == "M" && event["name"] == "thread_name");
    let mut tracks: Vec<(u64, Track)> = named
        .filter_map(|event| {
            let name = event["args"]["name"].as_str()?.to_owned();
            Some((event["tid"].as_u64()?, Track { name, events: Vec::new() }))
        })
        .collect();
    tracks.sort_by_key(|(tid, _)| *tid);
    for event in events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "i") {
        let (Some(tid), Some(name), Some(start)) =
            (event["tid"].as_u64(), event["name"].as_str(), event["ts"].as_f64())
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
        if let Some((_, track)) = tracks.iter_mut().find(|(number, _)| *number == tid) {
            track.events.push(event);
        }
    }
    tracks.into_iter().map(|(_, track)| track).collect()
}
