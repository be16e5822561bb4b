//! Coordinates to texels: address modes (Vulkan, "Wrapping Operation") and nearest and linear footprints.

use super::descriptor::Wrap;

/// Bound of texel coordinates: no image is that large, and integers near it do not overflow.
const FAR: f32 = 1_073_741_824.0;

/// Steps between two texels that linear filters distinguish.
pub(crate) const PLACES: f32 = 65_536.0;

/// The texel of an integer coordinate in a dimension of `size` texels; `None` for the border.
pub(super) fn wrap(mode: Wrap, coordinate: i32, size: u32) -> Option<u32> {
    let (at, size) = (i64::from(coordinate), i64::from(size));
    let mirror = |n: i64| if n >= 0 { n } else { -(1 + n) };
    let texel = match mode {
        Wrap::Repeat => at.rem_euclid(size),
        Wrap::MirroredRepeat => size - 1 - mirror(at.rem_euclid(2 * size) - size),
        Wrap::ClampToEdge => at.clamp(0, size - 1),
        Wrap::ClampToBorder => return (0..size).contains(&at).then_some(at as u32),
        Wrap::MirrorClampToEdge => mirror(at).clamp(0, size - 1),
    };
    Some(texel as u32)
}

/// The two texels around a coordinate, and the distance from the first, in [`PLACES`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) first: i32,
    pub(super) part: u16,
}

impl Span {
    /// The weight of the second texel.
    pub(super) fn weight(self) -> f32 {
        f32::from(self.part) * (1.0 / PLACES)
    }
}

/// The texel that contains a coordinate in texels; 0 for NaN.
pub(super) fn nearest(u: f32, offset: i32) -> i32 {
    floor(u).saturating_add(offset)
}

/// The two texels nearest to a coordinate. `scale` is the size of the dimension in texels; `middle` is the distance
/// from a texel's edge to its centre, in [`PLACES`]. The sum is rounded once, then down to a whole place.
pub(super) fn linear(coordinate: f32, scale: f32, middle: f32, offset: i32) -> Span {
    let at = coordinate.mul_add(scale * PLACES, -middle);
    // NaN as in `floor`; 64 bits hold coordinates in places.
    let at = if at.is_nan() { 0 } else { at.floor().clamp(-FAR * PLACES, FAR * PLACES) as i64 };
    Span { first: ((at >> 16) as i32).saturating_add(offset), part: at as u16 }
}

fn floor(u: f32) -> i32 {
    // `max` and `min` would return a bound for NaN.
    if u.is_nan() { 0 } else { u.floor().clamp(-FAR, FAR) as i32 }
}

/// The layer of a coordinate: the nearest, ties to even, clamped to the array.
pub(super) fn layer(coordinate: f32, layers: u32) -> u32 {
    let max = layers.saturating_sub(1);
    (coordinate.round_ties_even().max(0.0) as u32).min(max)
}
