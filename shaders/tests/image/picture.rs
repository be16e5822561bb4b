//! Random images, samplers and coordinates.

use proptest::prelude::*;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{
    Compare, Descriptor, Dim, Extent, Filter, Format, Layout, Rows, Sampler, Swizzle, TexelView, Wrap, store_raw,
};

/// An image with random texels.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) dim: Dim,
    pub(crate) arrayed: bool,
    pub(crate) view: TexelView,
}

impl Picture {
    pub(crate) fn new(dim: Dim, arrayed: bool, format: Format, side: u32, levels: u32, seed: u64) -> Self {
        let size = match dim {
            Dim::D1 | Dim::Buffer => [side, 1, 1],
            Dim::D2 => [side, side.div_ceil(2) + 1, 1],
            Dim::D3 => [side, side.div_ceil(2), side.div_ceil(3) + 1],
            Dim::Cube => [side, side, 1],
        };
        let faces = if dim == Dim::Cube { 6 } else { 1 };
        let layers = faces * if arrayed { 3 } else { 1 };
        let extent = Extent { size, levels: 1, layers };
        let extent = Extent { levels: levels.min(extent.max_levels()), ..extent };
        let layout = Layout::new(&extent, format.bytes(), Rows::Spread).expect("it is small");
        let memory = GuestSlice::leak(layout.bytes as usize);
        let (levels, layers) = ([0, extent.levels], [0, layers]);
        let view = TexelView::of_image(memory, format, &extent, &layout, levels, layers, dim == Dim::D3);
        let mut state = seed | 1;
        for level in 0..extent.levels {
            let [w, h, d] = extent.level(level);
            for (layer, z, y, x) in (0..extent.layers).flat_map(|layer| {
                (0..d).flat_map(move |z| (0..h).flat_map(move |y| (0..w).map(move |x| (layer, z, y, x))))
            }) {
                let offset = view.texel(level, [x, y, z], layer).expect("it is inside");
                store_raw(memory, offset, format.bytes(), raw(format, &mut state));
            }
        }
        Self { dim, arrayed, view }
    }

    pub(crate) fn descriptor(&self, sampler: &Sampler) -> Descriptor {
        Descriptor { view: self.view, sampler: *sampler }
    }
}

/// Bits of a texel that is a number of moderate size in each channel.
fn raw(format: Format, state: &mut u64) -> [u32; 4] {
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 32) as u32
    };
    let texel = [next(), next(), next(), next()];
    match format.class() {
        // Numbers between 0 and 1, so that errors of all formats are of one size.
        spelter_shaders::image::Class::Float => {
            let unit = texel.map(|word| ((word >> 8) as f32 / (1 << 24) as f32).to_bits());
            spelter_shaders::image::encode(format, unit)
        }
        _ => texel,
    }
}

pub(crate) fn wraps() -> impl Strategy<Value = Wrap> {
    prop_oneof![
        Just(Wrap::Repeat),
        Just(Wrap::MirroredRepeat),
        Just(Wrap::ClampToEdge),
        Just(Wrap::ClampToBorder),
        Just(Wrap::MirrorClampToEdge),
    ]
}

fn filters() -> impl Strategy<Value = Filter> {
    prop_oneof![Just(Filter::Nearest), Just(Filter::Linear)]
}

fn compares() -> impl Strategy<Value = Compare> {
    prop_oneof![
        Just(Compare::Never),
        Just(Compare::Less),
        Just(Compare::Equal),
        Just(Compare::LessOrEqual),
        Just(Compare::Greater),
        Just(Compare::NotEqual),
        Just(Compare::GreaterOrEqual),
        Just(Compare::Always),
    ]
}

pub(crate) fn samplers() -> impl Strategy<Value = Sampler> {
    let lods = (-3.0f32..3.0, 0.0f32..3.0, 0.0f32..5.0);
    let borders = prop_oneof![Just([0.0f32; 4]), Just([0.0, 0.0, 0.0, 1.0]), Just([1.0; 4])];
    ([filters(), filters(), filters()], [wraps(), wraps(), wraps()], lods, compares(), borders).prop_map(
        |([mag, min, mip], wrap, (lod_bias, min_lod, more), compare, border)| Sampler {
            mag,
            min,
            mip,
            wrap,
            unnormalized: false,
            compare,
            lod_bias,
            min_lod,
            max_lod: min_lod + more,
            border: border.map(f32::to_bits),
        },
    )
}

pub(crate) fn dims() -> impl Strategy<Value = (Dim, bool)> {
    prop_oneof![
        Just((Dim::D1, false)),
        Just((Dim::D1, true)),
        Just((Dim::D2, false)),
        Just((Dim::D2, true)),
        Just((Dim::D3, false)),
        Just((Dim::Cube, false)),
        Just((Dim::Cube, true)),
    ]
}

pub(crate) fn swizzles() -> impl Strategy<Value = [Swizzle; 4]> {
    let one = || {
        prop_oneof![
            Just(Swizzle::R),
            Just(Swizzle::G),
            Just(Swizzle::B),
            Just(Swizzle::A),
            Just(Swizzle::Zero),
            Just(Swizzle::One)
        ]
    };
    [one(), one(), one(), one()]
}
