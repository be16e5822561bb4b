//! Output of a run: values of buffers, files, times.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use spelter::{Context, Program};

use super::bind::{BoundBuffer, BoundResources, info_of, variable};
use super::checked::Checked;
use super::images::BoundImage;
use super::messages::Messages;
use crate::args::RunArgs;
use crate::columns;
use crate::element::Element;
use crate::failure::Failure;
use crate::file;
use crate::image::{self, Clamped};
use crate::output::Output;
use crate::slot::{Slot, named};
use crate::statistics::Samples;
use crate::structured::{Print, Save};

/// The number of values on a line of a long list.
const ON_A_LINE: usize = 8;

/// The largest number of scalars that one `--out` prints; each takes many times its own size in memory.
const MAX_SHOWN: u64 = 1 << 20;

/// Checks `--out`, `--save` and `--trace` before the run.
pub(super) fn check(bound: &BoundResources, args: &RunArgs) -> Result<(), Failure> {
    for print in &args.out {
        let place = named(print.slot, print.name.as_deref());
        let found = find(bound, "--out", (print.slot, &print.name))?;
        let elements = found.bytes() / print.element.stride();
        if let Some((first, last)) = print.range
            && last > elements
        {
            let of = format!("{} of {elements} elements", found.kind());
            return Err(Failure::misuse(format!("--out {place}: elements {first}..{last} of {of}")));
        }
        let (first, last) = print.range.unwrap_or((0, elements));
        let scalars = (last - first).saturating_mul(print.element.scalars());
        if scalars > MAX_SHOWN {
            let problem = "values are too many to print: use FIRST..LAST or --save";
            return Err(Failure::misuse(format!("--out {place}: {scalars} {problem}")));
        }
    }
    args.trace.iter().try_for_each(|path| file::check_target(path))?;
    args.save.iter().try_for_each(|save| {
        let found = find(bound, "--save", (save.slot, &save.name))?;
        if has_extension(save, &["png"]) && !matches!(found, ShownResource::Image(_)) {
            let slot = named(save.slot, save.name.as_deref());
            let (path, kind) = (save.path.display(), found.kind());
            let problem = "is no picture, as a storage texture is; a file with another extension gets the bytes";
            return Err(Failure::misuse(format!("--save {slot}: {path}: {kind} {problem}")));
        }
        file::check_target(&save.path)
    })
}

/// Whether the file has one of these extensions.
fn has_extension(save: &Save, extensions: &[&str]) -> bool {
    let extension = save.path.extension().unwrap_or_default();
    extensions.iter().any(|other| extension.eq_ignore_ascii_case(other))
}

/// Extensions of pictures that are not written.
const OTHER_PICTURES: [&str; 7] = ["jpg", "jpeg", "bmp", "gif", "webp", "tif", "tiff"];

/// Writes the files of `--save`: pictures of images, bytes of everything else. Returns notes.
pub(super) fn save(context: &Context, bound: &BoundResources, args: &RunArgs) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    for save in &args.save {
        let found = find(bound, "--save", (save.slot, &save.name))?;
        match found {
            ShownResource::Image(image) if has_extension(save, &["png"]) => {
                let texels = image.texels(context)?;
                let clamped = image::save(&save.path, image.format, image.sheet(), &texels)?;
                if clamped == Clamped(true) {
                    let (place, path) = (named(save.slot, save.name.as_deref()), save.path.display());
                    notes.push(format!("--save {place}: {path}: values outside of 0 to 1 were clamped"));
                }
            }
            found => {
                if matches!(found, ShownResource::Image(_)) && has_extension(save, &OTHER_PICTURES) {
                    let (slot, path) = (save.slot, save.path.display());
                    notes.push(format!("--save {slot}: {path} has the bytes of the texels; pictures are .png"));
                }
                let bytes = found.read(context, 0..found.bytes())?;
                std::fs::write(&save.path, bytes).map_err(|error| Failure::file(&save.path, error))?;
            }
        }
    }
    Ok(notes)
}

/// Prints values and times, as text or as one JSON object.
pub(super) fn print(
    context: &Context,
    program: &Program,
    bound: &BoundResources,
    (times, notes, messages, checked): (&[Duration], &[String], &Messages, Option<&Checked>),
    args: &RunArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let values: Vec<ShownValues> =
        args.out.iter().map(|print| read(context, bound, print)).collect::<Result<_, _>>()?;
    let bytes = bound.buffers.iter().map(|bound| bound.buffer.size()).sum();
    let times = Times::new(times, (program, bytes), args);
    if args.json {
        let mut shown = json!({
            "file": args.file.display().to_string(),
            "entry": program.entry(),
            "groups": args.groups(program.workgroup_size()),
            "workgroup_size": program.workgroup_size(),
            "interpreted_because": program.fallback(),
            "workers": context.device().properties().workers,
            "outputs": values.iter().map(|shown| shown.json(program)).collect::<Vec<_>>(),
            "times": times.json(),
            "notes": notes,
            "messages": messages.json(),
            "stats": context.stats().iter().map(|(name, count)| (name.to_owned(), count.into())).collect::<Map<_, _>>(),
        });
        if let (Some(checked), Some(object)) = (checked, shown.as_object_mut()) {
            object.extend(checked.json());
            // As after other failures. What was computed is there all the same.
            if let Some(denied) = checked.denied(&args.check) {
                object.insert("error".to_owned(), denied.to_string().into());
            }
        }
        return output.json(&shown);
    }
    values.iter().try_for_each(|shown| shown.print(output))?;
    if args.time { times.print(output) } else { Ok(()) }
}

/// What is bound to a slot and can be shown.
#[derive(Clone, Copy)]
pub(super) enum ShownResource<'a> {
    Buffer(&'a BoundBuffer),
    Image(&'a BoundImage),
}

impl<'a> ShownResource<'a> {
    /// The slot as text.
    pub(super) fn name(self) -> &'a str {
        match self {
            Self::Buffer(buffer) => &buffer.name,
            Self::Image(image) => &image.name,
        }
    }

    /// Bytes of the buffer, or of level 0 of the image.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Buffer(buffer) => buffer.buffer.size(),
            Self::Image(image) => {
                let [width, height] = image.sheet().map(u64::from);
                width * height * u64::from(image.format.bytes())
            }
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Buffer(_) => "a buffer",
            Self::Image(_) => "an image",
        }
    }

    fn read(self, context: &Context, range: Range<u64>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Buffer(buffer) => Ok(context.read_range(&buffer.buffer, range)?),
            Self::Image(image) => Ok(image.texels(context)?[range.start as usize..range.end as usize].to_vec()),
        }
    }
}

/// What is bound to the slot of an option, for which the user may have written a name.
pub(super) fn find<'a>(
    bound: &'a BoundResources,
    option: &str,
    (slot, name): (Slot, &Option<String>),
) -> Result<ShownResource<'a>, Failure> {
    let buffers = || bound.buffers.iter().map(|buffer| (buffer.slot, ShownResource::Buffer(buffer)));
    let images = || bound.images.iter().map(|image| (image.slot, ShownResource::Image(image)));
    let Some((_, found)) = buffers().chain(images()).find(|(at, _)| *at == slot) else {
        let list: Vec<_> = buffers().chain(images()).map(|(_, found)| found.name()).collect();
        let has = if list.is_empty() { "nothing is bound".into() } else { format!("bound are {}", list.join(", ")) };
        return Err(Failure::misuse(format!(
            "{option} {}: no buffer is bound to it; {has}",
            named(slot, name.as_deref())
        )));
    };
    Ok(found)
}

/// Values of a buffer or an image, for one `--out`.
struct ShownValues<'a> {
    slot: Slot,
    /// The slot as text.
    place: &'a str,
    /// The name that the user wrote for it.
    name: Option<&'a str>,
    element: &'a Element,
    hex: bool,
    first: u64,
    bytes: Vec<u8>,
}

fn read<'a>(context: &Context, bound: &'a BoundResources, print: &'a Print) -> Result<ShownValues<'a>, Failure> {
    let found = find(bound, "--out", (print.slot, &print.name))?;
    let each = print.element.stride();
    let (first, last) = print.range.unwrap_or((0, found.bytes() / each));
    let bytes = found.read(context, first * each..last * each)?;
    Ok(ShownValues {
        slot: print.slot,
        place: found.name(),
        name: print.name.as_deref(),
        element: &print.element,
        hex: print.hex,
        first,
        bytes,
    })
}

impl ShownValues<'_> {
    fn elements(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.element.stride() as usize)
    }

    /// The object of an output. Its binding is named as `spelter reflect --json` names it.
    fn json(&self, program: &Program) -> Json {
        let info = info_of(program.bindings(), self.slot);
        json!({
            "set": self.slot.group,
            "binding": self.slot.binding,
            "element": info.filter(|info| info.count > 1).map(|_| self.slot.element),
            "name": info.and_then(variable),
            "type": self.element.to_string(),
            "first": self.first,
            "values": self.elements().map(|bytes| self.element.json(bytes, self.hex)).collect::<Vec<_>>(),
        })
    }

    /// Prints a short list on one line, a long one in rows that begin with the index of their first element: `[8]`.
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let shown: Vec<String> = self.elements().map(|bytes| self.element.show(bytes, self.hex)).collect();
        let on_a_line = (ON_A_LINE / self.element.scalars().max(1) as usize).max(1);
        let head = output.faint(&format!("{} {}", named(self.place, self.name), self.element));
        if shown.len() <= on_a_line {
            return output.line(format!("{head}  {}", shown.join(" ")));
        }
        output.line(head)?;
        let first = self.first as usize;
        let width = shown.iter().map(String::len).max().unwrap_or(0);
        let last_row = first + (shown.len() - 1) / on_a_line * on_a_line;
        let index_width = last_row.to_string().len() + 2;
        shown.chunks(on_a_line).enumerate().try_for_each(|(row, values)| {
            let index = format!("[{}]", first + row * on_a_line);
            let index = output.faint(&format!("{index:>index_width$}"));
            let values: Vec<_> = values.iter().map(|value| format!("{value:>width$}")).collect();
            output.line(format!("{index}  {}", values.join(" ")))
        })
    }
}

/// The times of the repetitions.
struct Times {
    repeats: usize,
    /// The first repetition, if there are others: a warm-up.
    warm_up: Option<Duration>,
    /// The other repetitions, or the only one, in seconds.
    median: f64,
    best: f64,
    /// Invocations per second at the median; only after a warm-up.
    rate: Option<f64>,
    /// Bytes of all bound buffers per second at the median; `None` without buffers.
    bandwidth: Option<f64>,
    /// The distance of the quartiles, as a part of the median; only for several repetitions after the warm-up.
    spread: Option<f64>,
}

impl Times {
    fn new(times: &[Duration], (program, bytes): (&Program, u64), args: &RunArgs) -> Self {
        let (warm_up, measured) = match times {
            [first, others @ ..] if !others.is_empty() => (Some(*first), others),
            all => (None, all),
        };
        // A clock may be too coarse for a run.
        let seconds = measured.iter().map(|time| time.as_secs_f64().max(1e-9)).collect();
        let samples = Samples::new(seconds).unwrap_or_else(|| unreachable!("there is at least one repetition"));
        let (median, best) = (samples.median(), samples.least());
        let size = program.workgroup_size();
        let invocations: f64 = args.groups(size).into_iter().chain(size).map(f64::from).product();
        let rate = warm_up.map(|_| invocations / median);
        let bandwidth = (bytes > 0).then(|| bytes as f64 / median);
        let spread = (measured.len() > 1).then(|| samples.spread());
        Self { repeats: times.len(), warm_up, median, best, rate, bandwidth, spread }
    }

    fn json(&self) -> Json {
        json!({
            "repeats": self.repeats,
            "warm_up_seconds": self.warm_up.map(|time| time.as_secs_f64()),
            "median_seconds": self.median,
            "best_seconds": self.best,
            "invocations_per_second": self.rate,
            "bound_bytes_per_second": self.bandwidth,
            "spread": self.spread,
        })
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let mut rows: Vec<_> = self.warm_up.iter().map(|time| ("warm-up", short(time.as_secs_f64()))).collect();
        rows.extend([("median", short(self.median)), ("best", short(self.best))]);
        if let Some(spread) = self.spread {
            rows.push(("spread", columns::percent(spread)));
        }
        if let Some(rate) = self.rate {
            rows.push(("rate", format!("{:.3} M invocations/s", rate / 1e6)));
        }
        if let Some(bandwidth) = self.bandwidth {
            rows.push(("bound", format!("{} GB/s", columns::digits(bandwidth / 1e9))));
        }
        output.table(&rows)
    }
}

fn short(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.3} µs", s * 1e6),
    }
}
