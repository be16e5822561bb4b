//! Tracks as rows of bars.

use std::fmt::Write;

/// Pixels of the whole picture, of the names before the bars, and of a row.
const WIDTH: f64 = 960.0;
const NAMES: f64 = 92.0;
const ROW: f64 = 26.0;
/// Top of the first row.
const TOP: f64 = 22.0;
/// Number of lines for the time.
const LINES: u32 = 6;
/// Minimal width of a bar with a name in it, in pixels per character.
const CHARACTER: f64 = 6.0;

/// An event of a track, with start and end in milliseconds.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) start: f64,
    pub(crate) end: f64,
    /// Whether it has no duration.
    pub(crate) instant: bool,
}

/// A track: an actor and its events.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) name: String,
    pub(crate) events: Vec<Event>,
}

/// The interval that is drawn, in milliseconds.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Picture {
    /// Draws as SVG: a row for each track that is not empty.
    pub(crate) fn draw(&self, tracks: &[Track]) -> String {
        let seen: Vec<_> = tracks.iter().filter(|track| track.events.iter().any(|event| self.shows(event))).collect();
        let height = TOP + ROW * seen.len() as f64 + 6.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for line in 0..LINES {
            let time = self.from + (self.to - self.from) * f64::from(line) / f64::from(LINES - 1);
            let x = self.x(time);
            let anchor = if line + 1 == LINES { "end" } else { "middle" };
            let line = format!("<line x1=\"{x:.1}\" y1=\"17\" x2=\"{x:.1}\" y2=\"{height}\" stroke=\"#dddddd\"/>");
            let text =
                format!("<text x=\"{x:.1}\" y=\"12\" text-anchor=\"{anchor}\" fill=\"#666666\">{time:.1} ms</text>");
            add(&mut svg, &[&line, &text]);
        }
        for (row, track) in seen.iter().enumerate() {
            self.draw_track(&mut svg, TOP + ROW * row as f64, track);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn shows(&self, event: &Event) -> bool {
        event.start < self.to && event.end >= self.from
    }

    fn x(&self, time: f64) -> f64 {
        NAMES + (time.clamp(self.from, self.to) - self.from) / (self.to - self.from) * (WIDTH - 10.0 - NAMES)
    }

    fn draw_track(&self, svg: &mut String, top: f64, track: &Track) {
        let name = escaped(&track.name);
        add(svg, &[&format!("<text x=\"6\" y=\"{:.1}\" fill=\"#222222\">{name}</text>", top + 16.0)]);
        for event in track.events.iter().filter(|event| self.shows(event)) {
            let (x, end, color) = (self.x(event.start), self.x(event.end), color(&event.name));
            let name = escaped(&event.name);
            if event.instant {
                let shape = format!("<path d=\"M{x:.1} {:.1} l3 -5 l-6 0 z\" fill=\"{color}\">", top + 5.0);
                add(svg, &[&format!("{shape}<title>{name}</title></path>")]);
                continue;
            }
            // An event inside another one of the track is drawn over its lower part.
            let inner = track.events.iter().any(|other| holds(other, event));
            let (y, height) = if inner { (top + 17.0, 5.0) } else { (top + 6.0, 16.0) };
            let (width, time) = ((end - x).max(0.4), (event.end - event.start) * 1000.0);
            let shape =
                format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{color}\">");
            add(svg, &[&format!("{shape}<title>{name}, {time:.0} µs</title></rect>")]);
            if !inner && width > CHARACTER * event.name.len() as f64 {
                let at = format!("x=\"{:.1}\" y=\"{:.1}\"", x + 3.0, top + 17.5);
                add(svg, &[&format!("<text {at} fill=\"#ffffff\" font-size=\"10\">{name}</text>")]);
            }
        }
    }
}

/// Whether one event is inside the other, longer one.
fn holds(outer: &Event, inner: &Event) -> bool {
    !outer.instant
        && outer.start <= inner.start
        && inner.end <= outer.end
        && outer.end - outer.start > inner.end - inner.start
}

/// One colour per kind of event.
fn color(name: &str) -> &'static str {
    let kinds = [
        ("wait", "#c0392b"),
        ("write", "#d98f2b"),
        ("record", "#6f97c4"),
        ("rename", "#7a3e9d"),
        ("submission", "#9db187"),
    ];
    kinds.iter().find(|(start, _)| name.starts_with(start)).map_or("#3f6b4f", |(_, color)| color)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn add(svg: &mut String, lines: &[&str]) {
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, start: f64, end: f64) -> Event {
        Event { name: name.to_owned(), start, end, instant: start == end }
    }

    #[test]
    fn what_lies_between_is_drawn_and_names_are_escaped() {
        let inside = vec![event("write", 1.0, 9.0), event("record <1>", 2.0, 3.0), event("rename", 4.0, 4.0)];
        let tracks = [
            Track { name: "context 1".to_owned(), events: inside },
            Track { name: "queue 0".to_owned(), events: vec![event("submission 1", 20.0, 21.0)] },
        ];
        let svg = Picture { from: 0.0, to: 10.0 }.draw(&tracks);
        assert!(svg.contains("context 1") && !svg.contains("queue 0"), "{svg}");
        assert!(svg.contains("<title>record &lt;1&gt;, 1000 µs</title>"), "{svg}");
        // The background, an event that contains another, and that other one; and a triangle.
        assert_eq!((svg.matches("<rect").count(), svg.matches("<path").count()), (3, 1));
        assert_eq!(svg.matches("height=\"5\"").count(), 1, "what lies within is low");
    }
}
