//! The programs of `shaders/library`, with small inputs.

use super::work::{Same, Work};
use crate::common::floats;
use crate::programs::word;

macro_rules! library {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../shaders/library/", $name, ".wgsl")))
    };
}

fn work(
    (name, source): (&str, &str),
    immediates: &[u32],
    buffers: Vec<Vec<u32>>,
    groups: [u32; 3],
    same: Same,
) -> Work {
    Work {
        name: format!("library/{name}"),
        source: source.to_owned(),
        entry: "main".to_owned(),
        constants: Vec::new(),
        immediates: immediates.to_vec(),
        buffers: (0..).map(|binding| (0, binding)).zip(buffers).collect(),
        groups,
        same,
    }
}

/// Floats whose sums and products are exact: small numbers of quarters.
fn quarters(count: u32) -> Vec<u32> {
    (0..count).map(|i| ((i * 7 % 61) as f32 * 0.25 - 7.5).to_bits()).collect()
}

pub(crate) fn all() -> Vec<Work> {
    let words: Vec<u32> = (0..5000).map(|i| word(i) ^ i << 7).collect();
    let zeros = |count: usize| vec![0; count];
    let mut scan = work(library!("scan"), &[5000], vec![words.clone(), zeros(5000), zeros(5)], [5, 1, 1], Same::Bits);
    scan.entry = "scan".to_owned();
    vec![
        scan,
        work(library!("histogram"), &[5000], vec![words.clone(), zeros(256)], [2, 1, 1], Same::Bits),
        work(library!("reduce"), &[5000], vec![words, zeros(3)], [3, 1, 1], Same::Bits),
        work(library!("saxpy"), &[2.5f32.to_bits(), 1000], vec![quarters(1000), quarters(1000)], [8, 1, 1], Same::Bits),
        work(
            library!("matmul"),
            &[64],
            vec![quarters(64 * 64), quarters(64 * 64), zeros(64 * 64)],
            [4, 4, 1],
            Same::Bits,
        ),
        nbody(),
        mandelbrot(),
        pathtracer(),
    ]
}

/// Its reciprocal roots are not exact (WGSL: 2 ULP), and sums of them are of either sign.
fn nbody() -> Work {
    let positions = (0..256u32).flat_map(|i| {
        let angle = i as f32 * 0.37;
        floats(&[angle.cos() * (3.0 + i as f32), angle.sin() * (3.0 + i as f32), (i % 17) as f32, 1.0 + (i % 3) as f32])
    });
    let buffers = vec![positions.collect(), vec![0; 1024], vec![0; 1024]];
    let parameters = [256, 0.25f32.to_bits(), 0.01f32.to_bits()];
    work(library!("nbody"), &parameters, buffers, [4, 1, 1], Same::Near(2e-3))
}

/// The whole set, in few steps: rounding grows with each of them.
fn mandelbrot() -> Work {
    let view = [floats(&[-0.6, 0.0, 3.0 / 108.0]), vec![40, 108, 72, 0]].concat();
    work(library!("mandelbrot"), &[], vec![view, vec![0; 108 * 72]], [14, 9, 1], Same::Codes { apart: 2, share: 20 })
}

/// One light, one sphere of glass and one of metal over the floor; a sample for each of 32 times 32 pixels.
fn pathtracer() -> Work {
    let camera = [
        floats(&[0.0, 1.0, 4.0, 0.02]),
        floats(&[-2.0, -1.0, 0.0]),
        vec![3],
        floats(&[4.0, 0.0, 0.0]),
        vec![32],
        floats(&[0.0, 4.0, 0.0]),
        vec![32],
    ];
    let sphere = |centre: [f32; 3], radius: f32, colour: [f32; 3], material: u32, quality: f32| {
        [floats(&centre), floats(&[radius]), floats(&colour), vec![material], floats(&[quality, 0.0, 0.0, 0.0])]
            .concat()
    };
    let spheres = [
        sphere([0.0, 3.0, 0.0], 0.5, [4.0, 4.0, 4.0], 3, 0.0),
        sphere([-0.7, 0.6, 0.5], 0.6, [1.0, 1.0, 1.0], 2, 1.5),
        sphere([0.8, 0.7, 0.0], 0.7, [0.8, 0.7, 0.6], 1, 0.1),
    ];
    let buffers = vec![camera.concat(), spheres.concat(), vec![0; 32 * 32 * 4]];
    // A rounding decides at which sphere a ray ends: few pixels are another colour.
    work(library!("pathtracer"), &[0, 1, 1], buffers, [4, 4, 1], Same::NearMostly { part: 1e-3, share: 20 })
}
