//! Coordinates to texels: address modes (Vulkan, "Wrapping Operation") and nearest and linear footprints.

use super::descriptor::Wrap;

/// Beyond this, floats are no texel of any image; integers near it do not overflow.
const FAR: f32 = 1_073_741_824.0;

/// Places between two texels that linear filters tell apart.
pub(crate) const PLACES: f32 = 65_536.0;

/// The texel that an integer coordinate means in a dimension of `size` texels; `None` for the border.
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

/// Texels that a coordinate falls between, and how far it is from the first to the second, in [`PLACES`].
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

/// The texel that a coordinate in texels falls on; NaN falls on 0.
pub(super) fn nearest(u: f32, offset: i32) -> i32 {
    floor(u).saturating_add(offset)
}

/// The two texels nearest to a coordinate that is `scale` texels long, of which the first texel's middle is `middle` places from
/// its edge. The sum is rounded once, and then down to whole places.
pub(super) fn linear(coordinate: f32, scale: f32, middle: f32, offset: i32) -> Span {
    let at = coordinate.mul_add(scale * PLACES, -middle);
    // As above; 64 bits hold places, too.
    let at = if at.is_nan() { 0 } else { at.floor().clamp(-FAR * PLACES, FAR * PLACES) as i64 };
    Span { first: ((at >> 16) as i32).saturating_add(offset), part: at as u16 }
}

fn floor(u: f32) -> i32 {
    // `max` and `min` take NaN to the bound.
    if u.is_nan() { 0 } else { u.floor().clamp(-FAR, FAR) as i32 }
}

/// The layer that a coordinate means: the nearest, ties to even, held inside.
pub(super) fn layer(coordinate: f32, layers: u32) -> u32 {
    let most = layers.saturating_sub(1);
    (coordinate.round_ties_even().max(0.0) as u32).min(most)
}
