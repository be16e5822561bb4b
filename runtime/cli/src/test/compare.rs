//! Comparison of buffers with the expectations of a script.

use crate::amber::number::{AmberScalar, Number};
use crate::amber::script::{Buffer, Comparator, ExpectTexels, ExpectValues, Likeness, Tolerance};
use crate::amber::types::Type;

/// The relative tolerance of floats that are compared without a tolerance.
const EPSILON: f64 = 1e-8;

/// The tolerance of channels, from 0 to 1, that are compared without a tolerance.
const TEXEL_EPSILON: f64 = 0.002;

/// `EXPECT … IDX …`: values from a byte on.
pub(super) fn values(buffer: &Buffer, bytes: &[u8], expect: &ExpectValues) -> Result<(), String> {
    let layout = &buffer.layout;
    let stride = u64::from(layout.stride);
    if !expect.offset.is_multiple_of(stride) {
        return Err(format!("IDX {} is not a multiple of the {stride} bytes of an element", expect.offset));
    }
    let first = usize::try_from(expect.offset / stride).unwrap_or(usize::MAX).saturating_mul(layout.slots.len());
    for (index, &wanted) in expect.values.iter().enumerate() {
        let slot = first.checked_add(index).and_then(|at| layout.slot(at));
        let found = slot.and_then(|(at, scalar)| Some((at, scalar, scalar.read(bytes, at)?)));
        let Some((at, scalar, bits)) = found else {
            return Err(format!("value {index} from IDX {} on is outside of {} bytes", expect.offset, bytes.len()));
        };
        let (found, wanted) = (scalar.decode(bits), rounded(scalar, wanted)?);
        let tolerance = tolerance(&expect.tolerances, index % layout.slots.len());
        if !holds(expect.comparator, found, wanted, tolerance) {
            let comparator = symbol(expect.comparator);
            let within = tolerance.map(|t| format!(" within {}{}", t.value, if t.percent { "%" } else { "" }));
            let (found, wanted, within) = (show(found), show(wanted), within.unwrap_or_default());
            return Err(format!(
                "byte {at} of `{}` (value {index}): {found} {comparator} {wanted}{within} is false",
                buffer.name
            ));
        }
    }
    Ok(())
}

/// The tolerance of a component: a single one is for all components; of several, each is for one component, and further
/// components have none.
fn tolerance(all: &[Tolerance], component: usize) -> Option<Tolerance> {
    if all.len() == 1 { all.first().copied() } else { all.get(component).copied() }
}

/// The expected number, rounded to the buffer's type.
fn rounded(scalar: AmberScalar, number: Number) -> Result<Number, String> {
    Ok(scalar.decode(scalar.encode(number)?))
}

fn holds(comparator: Comparator, found: Number, wanted: Number, tolerance: Option<Tolerance>) -> bool {
    let equal = || match (found, wanted, tolerance) {
        (Number::Int(found), Number::Int(wanted), None) => found == wanted,
        _ => near(found.real(), wanted.real(), tolerance),
    };
    let order = match (found, wanted) {
        (Number::Int(found), Number::Int(wanted)) => Some(found.cmp(&wanted)),
        _ => found.real().partial_cmp(&wanted.real()),
    };
    match comparator {
        Comparator::Equal => equal(),
        Comparator::NotEqual => !equal(),
        Comparator::Less => order.is_some_and(|order| order.is_lt()),
        Comparator::LessOrEqual => order.is_some_and(|order| order.is_le()),
        Comparator::Greater => order.is_some_and(|order| order.is_gt()),
        Comparator::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}

/// Whether two floats are equal within the tolerance. All NaNs are equal.
fn near(found: f64, wanted: f64, tolerance: Option<Tolerance>) -> bool {
    if found.is_nan() || wanted.is_nan() {
        return found.is_nan() && wanted.is_nan();
    }
    let distance = match tolerance {
        None => EPSILON * wanted.abs(),
        Some(Tolerance { value, percent: true }) => value / 100.0 * wanted.abs(),
        Some(Tolerance { value, percent: false }) => value,
    };
    // Equal infinities have no finite distance.
    found == wanted || (found - wanted).abs() <= distance
}

fn symbol(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Equal => "EQ",
        Comparator::NotEqual => "NE",
        Comparator::Less => "LT",
        Comparator::LessOrEqual => "LE",
        Comparator::Greater => "GT",
        Comparator::GreaterOrEqual => "GE",
    }
}

fn show(number: Number) -> String {
    match number {
        Number::Int(int) => int.to_string(),
        Number::Real(real) => format!("{real:?}"),
    }
}

/// `EXPECT … EQ_RGB` and `EQ_RGBA`: a rectangle of one colour.
pub(super) fn texels(buffer: &Buffer, bytes: &[u8], expect: &ExpectTexels) -> Result<(), String> {
    let texel = buffer.ty.texel().ok_or_else(|| format!("`{}` is not an image", buffer.name))?;
    let [width, height, _] = buffer.image.size;
    let ([x, y], [columns, rows]) = (expect.origin, expect.size);
    let inside = u64::from(x) + u64::from(columns) <= width.into() && u64::from(y) + u64::from(rows) <= height.into();
    if !inside {
        return Err(format!("{columns} x {rows} texels at {x}, {y} of an image of {width} x {height}"));
    }
    let mut wrong = 0u64;
    let mut first = None;
    for row in y..y + rows {
        for column in x..x + columns {
            let at = (row as usize * width as usize + column as usize) * buffer.layout.stride as usize;
            let bytes = bytes.get(at..at + texel.bytes() as usize).unwrap_or_default();
            let bad = texel.decode(bytes).into_iter().find(|(channel, found)| {
                let Some(index) = "RGBA".find(channel.name) else { return false };
                let Some(&wanted) = expect.color.get(index) else { return false };
                let wanted = if channel.is_integer() { f64::from(wanted) } else { f64::from(wanted) / 255.0 };
                let default = Some(Tolerance { value: TEXEL_EPSILON, percent: false });
                !near(*found, wanted, tolerance(&expect.tolerances, index).or(default))
            });
            if let Some((channel, found)) = bad {
                wrong += 1;
                first.get_or_insert((column, row, channel.name, found));
            }
        }
    }
    match first {
        None => Ok(()),
        Some((x, y, channel, found)) => {
            let (name, color) = (&buffer.name, &expect.color);
            Err(format!("{wrong} texels of `{name}` are not {color:?}, first at {x}, {y}: {channel} is {found}"))
        }
    }
}

/// `EXPECT … EQ_BUFFER`, `RMSE_BUFFER` and `EQ_HISTOGRAM_EMD_BUFFER`.
pub(super) fn buffers(buffer: &Buffer, left: &[u8], right: &[u8], likeness: Likeness) -> Result<(), String> {
    match likeness {
        Likeness::Equal => equal(buffer, left, right),
        Likeness::RootMeanSquare(max_error) => {
            let error = root_mean_square(buffer, left, right);
            // Written so that NaN fails.
            if error <= max_error {
                Ok(())
            } else {
                Err(format!("the root mean square error is {error}, above {max_error}"))
            }
        }
        Likeness::EarthMover(max_error) => {
            let distance = earth_mover(buffer, left, right)?;
            if distance <= max_error {
                Ok(())
            } else {
                Err(format!("the earth mover's distance is {distance}, above {max_error}"))
            }
        }
    }
}

fn equal(buffer: &Buffer, left: &[u8], right: &[u8]) -> Result<(), String> {
    if left.len() != right.len() {
        return Err(format!("{} and {} bytes", left.len(), right.len()));
    }
    let differ = left.iter().zip(right).filter(|(a, b)| a != b).count();
    let Some(at) = left.iter().zip(right).position(|(a, b)| a != b) else { return Ok(()) };
    let element = at / buffer.layout.stride.max(1) as usize;
    Err(format!("{differ} bytes differ, first byte {at} (element {element}): {} and {}", left[at], right[at]))
}

/// The values of the scalars of both buffers, in pairs.
fn pairs<'a>(buffer: &'a Buffer, left: &'a [u8], right: &'a [u8]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let slots = (0..).map_while(|index| buffer.layout.slot(index));
    slots.map_while(|(at, scalar)| {
        let value = |bytes| scalar.read(bytes, at).map(|bits| scalar.decode(bits).real());
        Some((value(left)?, value(right)?))
    })
}

fn root_mean_square(buffer: &Buffer, left: &[u8], right: &[u8]) -> f64 {
    let (count, sum) =
        pairs(buffer, left, right).fold((0u64, 0.0), |(n, sum), (a, b)| (n + 1, sum + (a - b) * (a - b)));
    if count == 0 { 0.0 } else { (sum / count as f64).sqrt() }
}

/// The largest earth mover's distance of the channels' histograms; for four channels with 8 bits.
fn earth_mover(buffer: &Buffer, left: &[u8], right: &[u8]) -> Result<f64, String> {
    let bytes = buffer.layout.slots.len() == 4 && buffer.layout.slots.iter().all(|slot| slot.scalar.bits == 8);
    if !bytes || !matches!(buffer.ty, Type::Texel(_) | Type::Vector(..)) {
        return Err("EQ_HISTOGRAM_EMD_BUFFER compares texels of four channels of 8 bits".to_owned());
    }
    let mut counts = [[0i64; 256]; 4];
    for (side, bytes) in [(1, left), (-1, right)] {
        for (at, &byte) in bytes.iter().enumerate() {
            counts[at % 4][usize::from(byte)] += side;
        }
    }
    let texels = (left.len() / 4).max(1) as f64;
    // The sum, over all bins, of the amount that has to be moved past the bin, relative to the whole range.
    let distance = |bins: &[i64; 256]| {
        let moved = bins.iter().scan(0, |carried, bin| {
            *carried += bin;
            Some(carried.abs())
        });
        moved.sum::<i64>() as f64 / texels / 256.0
    };
    Ok(counts.iter().map(distance).fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::amber;
    use crate::amber::script::Action;

    /// The result of the last command of a script, an `EXPECT`, for the initial contents of the buffers.
    fn expect(text: &str) -> Result<(), String> {
        let script = amber::parse(&format!("#!amber\n{text}"), Path::new(""));
        let script = script.unwrap_or_else(|stop| panic!("{stop:?}"));
        let buffer = |index: usize| &script.buffers[index];
        match script.commands.last().map(|command| &command.what) {
            Some(Action::ExpectValues(expect)) => values(buffer(expect.buffer), &buffer(expect.buffer).bytes, expect),
            Some(Action::ExpectTexels(expect)) => texels(buffer(expect.buffer), &buffer(expect.buffer).bytes, expect),
            Some(Action::ExpectBuffer(expect)) => {
                let (left, right) = (buffer(expect.left), buffer(expect.right));
                buffers(left, &left.bytes, &right.bytes, expect.likeness)
            }
            other => panic!("{other:?}"),
        }
    }

    fn holds(text: &str) {
        assert_eq!(expect(text), Ok(()), "{text}");
    }

    fn fails(text: &str, part: &str) {
        let found = expect(text);
        assert!(found.as_ref().is_err_and(|message| message.contains(part)), "{text}: {found:?}");
    }

    #[test]
    fn every_comparator() {
        let with = |comparison: &str| format!("BUFFER b DATA_TYPE int32 DATA 5 -3 END\nEXPECT b IDX 4 {comparison}");
        for good in ["EQ -3", "NE 3", "LT -2", "LE -3", "GT -4", "GE -3"] {
            holds(&with(good));
        }
        for bad in ["EQ 3", "NE -3", "LT -3", "LE -4", "GT -3", "GE -2"] {
            fails(&with(bad), "is false");
        }
        fails(&with("EQ -3 1"), "outside of 8 bytes");
        fails("BUFFER b DATA_TYPE int32 DATA 5 END\nEXPECT b IDX 2 EQ 5", "not a multiple of the 4 bytes");
    }

    #[test]
    fn floats_are_compared_as_the_buffer_holds_them() {
        holds("BUFFER b DATA_TYPE float DATA 0.1 END\nEXPECT b IDX 0 EQ 0.1");
        holds("BUFFER b DATA_TYPE float16 DATA 0.1 END\nEXPECT b IDX 0 EQ 0.1");
        fails("BUFFER b DATA_TYPE float DATA 0.1 END\nEXPECT b IDX 0 EQ 0.10001", "is false");
        holds("BUFFER b DATA_TYPE float DATA nan END\nEXPECT b IDX 0 EQ nan");
        fails("BUFFER b DATA_TYPE float DATA nan END\nEXPECT b IDX 0 EQ 1", "is false");
        fails("BUFFER b DATA_TYPE float DATA nan END\nEXPECT b IDX 0 GE 1", "is false");
        holds("BUFFER b DATA_TYPE float DATA -inf END\nEXPECT b IDX 0 LT 0");
    }

    #[test]
    fn tolerances_are_distances_or_parts() {
        let with =
            |rest: &str| format!("BUFFER b DATA_TYPE vec2<float> DATA 100 10 END\nEXPECT b IDX 0 TOLERANCE {rest}");
        holds(&with("1 EQ 101 9"));
        fails(&with("1 EQ 101.5 9"), "within 1 is false");
        holds(&with("5% EQ 104 10.2"));
        fails(&with("5 % EQ 104 11"), "within 5% is false");
        holds(&with("5 0.125 EQ 104 10.125"));
        fails(&with("5 0.125 EQ 104 11"), "within 0.125 is false");
        holds("BUFFER b DATA_TYPE int32 DATA -7 END\nEXPECT b IDX 0 TOLERANCE 1 EQ -8");
    }

    #[test]
    fn padding_is_skipped() {
        let buffer = "BUFFER b DATA_TYPE vec3<int16> DATA 1 2 3 4 5 6 END\n";
        holds(&format!("{buffer}EXPECT b IDX 0 EQ 1 2 3 4 5 6"));
        holds(&format!("{buffer}EXPECT b IDX 8 EQ 4 5"));
        fails(&format!("{buffer}EXPECT b IDX 8 EQ 4 6"), "byte 10");
    }

    #[test]
    fn rectangles_of_a_colour() {
        let image = "IMAGE i FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 2 HEIGHT 2 DATA 9 9 9 9 1 2 3 4 0 0 0 0 1 2 3 5 END\n";
        holds(&format!("{image}EXPECT i IDX 1 0 SIZE 1 2 EQ_RGB 1 2 3"));
        fails(&format!("{image}EXPECT i IDX 1 0 SIZE 1 2 EQ_RGBA 1 2 3 4"), "1 texels of `i`");
        holds(&format!("{image}EXPECT i IDX 1 0 SIZE 1 2 EQ_RGBA 1 2 3 4 TOLERANCE 0.01"));
        fails(&format!("{image}EXPECT i IDX 1 1 SIZE 2 1 EQ_RGB 0 0 0"), "of an image of 2 x 2");
        let integers = "IMAGE i FORMAT R16_UINT DIM_1D WIDTH 1 DATA 200 END\n";
        holds(&format!("{integers}EXPECT i IDX 0 0 SIZE 1 1 EQ_RGB 200 0 0"));
    }

    #[test]
    fn buffers_are_alike_to_a_bit_or_nearly() {
        let two = "BUFFER a DATA_TYPE float DATA 1 2 END\nBUFFER b DATA_TYPE float DATA 1 4 END\n";
        holds(&format!("{two}EXPECT a EQ_BUFFER a"));
        fails(&format!("{two}EXPECT a EQ_BUFFER b"), "element 1");
        // The differences are 0 and 2: the root of (0 + 4) / 2.
        holds(&format!("{two}EXPECT a RMSE_BUFFER b TOLERANCE 1.4143"));
        fails(&format!("{two}EXPECT a RMSE_BUFFER b TOLERANCE 1.4142"), "above 1.4142");
    }

    #[test]
    fn histograms_are_as_far_apart_as_their_earth_must_go() {
        let image = |name, red| format!("IMAGE {name} FORMAT R8G8B8A8_UNORM DIM_1D WIDTH 1 DATA {red} 0 0 0 END\n");
        let two = image("a", 0) + &image("b", 128);
        // All of a channel is moved by half of the range.
        holds(&format!("{two}EXPECT a EQ_HISTOGRAM_EMD_BUFFER b TOLERANCE 0.5"));
        fails(&format!("{two}EXPECT a EQ_HISTOGRAM_EMD_BUFFER b TOLERANCE 0.49"), "distance is 0.5");
    }
}
