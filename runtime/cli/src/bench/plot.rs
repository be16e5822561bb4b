//! The picture of a sweep.

use std::collections::BTreeSet;

use super::report::{Point, groups};
use crate::chart::{self, Line, Panel};
use crate::columns;
use crate::rgb_picture::RgbPicture;

/// What the horizontal axis shows: the quantity with the most values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Groups,
    Bytes,
    Workers,
}

impl Over {
    fn of(self, point: &Point) -> f64 {
        match self {
            Self::Groups => point.workgroups() as f64,
            Self::Bytes => point.bytes as f64,
            Self::Workers => point.workers as f64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Groups => "workgroups",
            Self::Bytes => "bytes bound",
            Self::Workers => "workers",
        }
    }

    fn show(self) -> fn(f64) -> String {
        match self {
            Self::Bytes => |x| columns::bytes(x as u64),
            _ => |x| if x < 10_000.0 { format!("{x:.0}") } else { columns::count(x) },
        }
    }
}

/// Draws the points: one color for each combination of what the horizontal axis does not show.
pub(super) fn draw(title: &str, points: &[Point]) -> RgbPicture {
    let different = |over: Over| points.iter().map(|point| over.of(point) as u64).collect::<BTreeSet<_>>().len();
    let over = [Over::Bytes, Over::Workers].into_iter().fold(Over::Groups, |most, other| {
        let more = different(other) > different(most);
        if more { other } else { most }
    });
    let sized = different(Over::Bytes) > 1 && over != Over::Bytes && fixed_sizes(points);
    let name = |point: &Point| {
        let mut parts = Vec::new();
        if over != Over::Workers {
            parts.push(format!("{} worker{}", point.workers, if point.workers == 1 { "" } else { "s" }));
        }
        if over != Over::Groups {
            parts.push(format!("workgroups {}", groups(point.groups)));
        }
        if sized {
            parts.push(columns::bytes(point.bytes));
        }
        parts.join(", ")
    };
    let mut names: Vec<String> = Vec::new();
    for point in points {
        let name = name(point);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let lines = |dashed: bool, value: &dyn Fn(&Point) -> Option<f64>| -> Vec<Line> {
        let line = |(color, wanted): (usize, &String)| {
            let own = points.iter().filter(|point| name(point) == *wanted);
            let mut points: Vec<_> = own.filter_map(|point| Some((over.of(point), value(point)?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { color, dashed, points }
        };
        names.iter().enumerate().map(line).collect()
    };
    let both = |value: &dyn Fn(&Point) -> Option<f64>, limit: &dyn Fn(&Point) -> Option<f64>| {
        let mut all = lines(false, value);
        if all.iter().any(|line| !line.points.is_empty()) {
            all.extend(lines(true, limit));
        }
        all
    };
    let panel = |title: &str, logarithmic, lines| {
        let is_zero = |point: &Point| point.flops() == Some(0.0);
        let empty = if points.iter().all(is_zero) { "no float operations" } else { "unknown" };
        Panel { title: title.to_owned(), logarithmic, lines, empty }
    };
    let micros = |q: f64| move |point: &Point| Some(point.measured.latency.quantile(q) * 1e6);
    let busy = |point: &Point| Some(point.busy.iter().sum::<f64>() / point.busy.len().max(1) as f64 * 100.0);
    let panels = [
        panel("workgroups/s", true, lines(false, &|point| Some(point.workgroups_per_second()))),
        panel(
            "GB/s of what is bound (dashed: memory limit)",
            false,
            both(&|point| Some(point.bandwidth()), &|point| Some(point.position?.bandwidth / 1e9)),
        ),
        panel(
            "GFLOP/s (dashed: multiply-add limit)",
            true,
            both(&|point| point.flops().filter(|flops| *flops > 0.0), &|point| Some(point.position?.peak? / 1e9)),
        ),
        panel("submit to done, µs (dashed: p99)", true, both(&micros(0.5), &micros(0.99))),
        panel("workers busy, %", false, lines(false, &busy)),
        panel("part of the limit, %", false, lines(false, &|point| Some(point.position?.share * 100.0))),
    ];
    chart::draw(title, (over.name(), over.show()), &names, &panels, 3)
}

/// Whether sizes do not follow from the numbers of workgroups.
fn fixed_sizes(points: &[Point]) -> bool {
    points.iter().any(|a| points.iter().any(|b| a.groups == b.groups && a.bytes != b.bytes))
}
