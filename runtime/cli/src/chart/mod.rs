//! Charts as pictures: panels with lines over a logarithmic axis.

mod canvas;
mod font;

use crate::columns;
use crate::rgb_picture::RgbPicture;
use canvas::{Align, Canvas, Rgb};

/// Pixels of a panel, and of the margins around its axes.
const WIDTH: u32 = 520;
const HEIGHT: u32 = 340;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 34.0;

/// Pixels above and below the panels.
const TITLE: u32 = 34;
const LEGEND: u32 = 22;

const INK: Rgb = [40, 40, 40];
const PALE: Rgb = [226, 226, 226];
const GREY: Rgb = [110, 110, 110];

/// Colors that are distinct with the common forms of color blindness (Okabe and Ito 2008).
const COLORS: [Rgb; 7] =
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233], [90, 90, 90]];

/// A line of a panel.
pub(crate) struct Line {
    /// Its color, by the number of its name in the legend.
    pub(crate) color: usize,
    /// Dashed: a limit, say.
    pub(crate) dashed: bool,
    /// In ascending order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A panel.
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Whether y is logarithmic, too; else it starts at 0.
    pub(crate) logarithmic: bool,
    pub(crate) lines: Vec<Line>,
    /// The text in place of lines without points.
    pub(crate) empty: &'static str,
}

/// Draws the panels in rows of `columns`. `show` prints a value of x; `legend` has the names of the colors.
pub(crate) fn draw(
    title: &str,
    (x_name, show): (&str, fn(f64) -> String),
    legend: &[String],
    panels: &[Panel],
    columns: usize,
) -> RgbPicture {
    let rows = panels.len().div_ceil(columns).max(1) as u32;
    let below = TITLE + rows * HEIGHT;
    let mut canvas = Canvas::new(columns as u32 * WIDTH, below + LEGEND * (legend.len() as u32).div_ceil(3) + 8);
    canvas.text((LEFT, 14.0), title, Align::Left, 2, INK);
    for (number, panel) in panels.iter().enumerate() {
        let corner = ((number % columns) as u32 * WIDTH, TITLE + (number / columns) as u32 * HEIGHT);
        draw_panel(&mut canvas, panel, (f64::from(corner.0), f64::from(corner.1)), (x_name, show));
    }
    for (number, name) in legend.iter().enumerate() {
        let x = LEFT + (number % 3) as f64 * f64::from(columns as u32 * WIDTH) / 3.2;
        let y = f64::from(below) + (number / 3) as f64 * f64::from(LEGEND) + 10.0;
        canvas.line((x, y), (x + 24.0, y), 3.0, COLORS[number % COLORS.len()], None);
        canvas.text((x + 32.0, y - 5.0), name, Align::Left, 1, INK);
    }
    canvas.picture()
}

/// The values of an axis, and what it shows of them.
struct Axis {
    logarithmic: bool,
    low: f64,
    high: f64,
    /// Pixels of both ends.
    from: f64,
    to: f64,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.max(1e-300).ln() } else { value };
        let part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low)).max(1e-12);
        self.from + (self.to - self.from) * part.clamp(0.0, 1.0)
    }
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel, (left, top): (f64, f64), (x_name, show): (&str, fn(f64) -> String)) {
    let (from, to) = ((left + LEFT, top + f64::from(HEIGHT) - BOTTOM), (left + f64::from(WIDTH) - RIGHT, top + TOP));
    canvas.text((from.0, top + 12.0), &panel.title, Align::Left, 1, INK);
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    if points().next().is_none() {
        canvas.text(((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0), panel.empty, Align::Center, 2, GREY);
        return;
    }
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let (low, high) = bounds(&mut points().map(|(x, _)| *x));
    let high = if high > low { high } else { low * 2.0 };
    let x_axis = Axis { logarithmic: true, low, high, from: from.0 + 8.0, to: to.0 - 8.0 };
    let (low, high) = bounds(&mut points().map(|(_, y)| *y));
    let (low, high, ticks) = if panel.logarithmic { decades(low, high) } else { steps(high) };
    let y_axis = Axis { logarithmic: panel.logarithmic, low, high, from: from.1, to: to.1 };
    for tick in ticks {
        let y = y_axis.at(tick);
        canvas.line((from.0, y), (to.0, y), 1.0, PALE, None);
        canvas.text((from.0 - 6.0, y - 4.0), &columns::count(tick), Align::Right, 1, GREY);
    }
    let mut values: Vec<f64> = points().map(|(x, _)| *x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let each = values.len().div_ceil(7).max(1);
    for x in values.iter().step_by(each) {
        let at = x_axis.at(*x);
        canvas.line((at, from.1), (at, from.1 + 4.0), 1.0, GREY, None);
        canvas.text((at, from.1 + 8.0), &show(*x), Align::Center, 1, GREY);
    }
    canvas.line(from, (to.0, from.1), 1.0, GREY, None);
    canvas.line(from, (from.0, to.1), 1.0, GREY, None);
    canvas.text((to.0, from.1 + 20.0), x_name, Align::Right, 1, GREY);
    for line in &panel.lines {
        let color = COLORS[line.color % COLORS.len()];
        let at = |(x, y): &(f64, f64)| (x_axis.at(*x), y_axis.at(*y));
        for pair in line.points.windows(2) {
            canvas.line(at(&pair[0]), at(&pair[1]), 2.0, color, line.dashed.then_some(6.0));
        }
        if !line.dashed {
            line.points.iter().for_each(|point| canvas.dot(at(point), 3.5, color));
        }
    }
}

/// A range of whole decades with their ticks; also 2 and 5 times where there are few.
fn decades(low: f64, high: f64) -> (f64, f64, Vec<f64>) {
    let first = low.max(1e-12).log10().floor() as i32;
    let last = (high.max(1e-12).log10().ceil() as i32).max(first + 1);
    let factors: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let ticks = (first..=last).flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)));
    let (low, high) = (10f64.powi(first), 10f64.powi(last));
    (low, high, ticks.filter(|tick| *tick <= high * 1.001).collect())
}

/// A range from 0 with about five ticks.
fn steps(high: f64) -> (f64, f64, Vec<f64>) {
    let high = high.max(1e-9);
    let unit = 10f64.powf((high / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| step * 5.5 >= high);
    let step = step.unwrap_or(unit * 10.0);
    let count = (high / step).ceil().max(1.0) as u32;
    (0.0, step * f64::from(count), (0..=count).map(|at| step * f64::from(at)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_hold_their_values() {
        for high in [0.003, 1.0, 7.3, 99.0, 1234.0] {
            let (low, top, ticks) = steps(high);
            assert!(
                low == 0.0 && top >= high && top <= high * 2.0 && (3..=9).contains(&ticks.len()),
                "{high}: {ticks:?}"
            );
        }
        for (low, high) in [(1.0, 1.0), (0.5, 3000.0), (3e-6, 4e-6)] {
            let (bottom, top, ticks) = decades(low, high);
            assert!(bottom <= low && top >= high && ticks.len() >= 2, "{low} {high}: {ticks:?}");
        }
    }

    #[test]
    fn a_panel_without_points_says_why() {
        let drawn = |empty| {
            let panels = [Panel { title: "a".to_owned(), logarithmic: true, lines: Vec::new(), empty }];
            draw("title", ("groups", |x| x.to_string()), &[], &panels, 1).bytes
        };
        assert_ne!(drawn("unknown"), drawn("no float operations"));
    }

    #[test]
    fn a_chart_has_its_lines_and_nothing_is_outside() {
        let points = vec![(1.0, 0.0), (4.0, 10.0), (16.0, 5.0)];
        let line = Line { color: 1, dashed: false, points };
        let panels = [Panel { title: "a".to_owned(), logarithmic: false, lines: vec![line], empty: "none" }];
        let picture = draw("title", ("groups", |x| x.to_string()), &["one".to_owned()], &panels, 1);
        assert_eq!(picture.bytes.len() as u32, picture.width * picture.height * 3);
        let colored = picture.bytes.chunks(3).filter(|pixel| *pixel == COLORS[1]).count();
        assert!(colored > 300, "{colored} pixels of the line");
    }
}
