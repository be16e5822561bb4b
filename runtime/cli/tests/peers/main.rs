//! Kernels that were written for other Vulkan drivers, from GLSL through `spelter run`, against references in Rust.
//!
//! Needs `glslangValidator` and a folder of the peers' shaders in `SPELTER_PEER_SHADERS`. Where they are absent the
//! tests are reported as ignored, with the reason on standard error; where `CI` is set they fail.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing test panics, and says what it did not run")]

mod harness;
mod reference;

use harness::{Kernel, floats, random_floats, random_words, to_floats, to_words, words};
use libtest_mimic::{Arguments, Trial};

/// The tests by name.
const TESTS: [(&str, fn()); 14] = [
    ("empty", empty),
    ("increment", increment),
    ("atomic_counter", atomic_counter),
    ("saxpy", saxpy),
    ("reduce", reduce),
    ("histogram_slm", histogram_slm),
    ("matrix_products", matrix_products),
    ("nbody", nbody),
    ("mandelbrot", mandelbrot),
    ("black_scholes", black_scholes),
    ("fft", fft),
    ("spmv", spmv),
    ("pathtrace", pathtrace),
    ("stencil2d_needs_images", stencil2d_needs_images),
];

fn main() {
    let arguments = Arguments::from_args();
    let missing = harness::missing();
    if let Some(missing) = missing {
        eprintln!("peers: NOT RUN: {missing}");
    }
    let ignored = missing.is_some() && std::env::var_os("CI").is_none();
    let trials = TESTS.map(|(name, test)| {
        let run = move || match missing {
            Some(missing) => Err(missing.into()),
            None => {
                test();
                Ok(())
            }
        };
        Trial::test(name, run).with_ignored_flag(ignored)
    });
    libtest_mimic::run(&arguments, trials.into()).exit();
}

fn empty() {
    let kernel = Kernel::compile("empty");
    kernel.run([64, 1, 1], &[], &[], &[]);
}

fn increment() {
    let kernel = Kernel::compile("increment");
    let out = kernel.run([1, 1, 1], &[words(&[41])], &[], &[0]);
    assert_eq!(to_words(&out[0]), [42]);
}

fn atomic_counter() {
    let kernel = Kernel::compile("atomic_counter");
    let out = kernel.run([40, 1, 1], &[words(&[5])], &[], &[0]);
    assert_eq!(to_words(&out[0]), [5 + 40 * 256]);
}

fn saxpy() {
    let kernel = Kernel::compile("saxpy");
    let n = 1000;
    let (x, y) = (random_floats(n, 1), random_floats(n, 2));
    let push = [words(&[n as u32]), floats(&[2.5])].concat();
    let out = kernel.run([4, 1, 1], &[floats(&x), floats(&y)], &push, &[1]);
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y + 2.5 * x).collect();
    harness::assert_near(&to_floats(&out[0]), &expected, 1e-6);
}

fn reduce() {
    let kernel = Kernel::compile("reduce");
    let source = random_floats(5000, 3);
    let out = kernel.run([5, 1, 1], &[floats(&source), vec![0; 20]], &words(&[5000]), &[1]);
    let expected: Vec<f32> =
        source.chunks(1024).map(|part| part.iter().map(|&x| f64::from(x)).sum::<f64>() as f32).collect();
    harness::assert_near(&to_floats(&out[0]), &expected, 1e-5);
}

fn histogram_slm() {
    let kernel = Kernel::compile("histogram_slm");
    let source = random_words(10_000, 4);
    let out = kernel.run([3, 1, 1], &[words(&source), vec![0; 1024]], &words(&[10_000]), &[1]);
    let mut expected = vec![0u32; 256];
    for word in source {
        expected[(word & 255) as usize] += 1;
    }
    assert_eq!(to_words(&out[0]), expected);
}

fn matrix_products() {
    let n = 48;
    let (a, b) = (random_floats(n * n, 5), random_floats(n * n, 6));
    let expected = reference::product(&a, &b, n);
    for name in ["sgemm_naive", "sgemm_tiled"] {
        let kernel = Kernel::compile(name);
        let buffers = [floats(&a), floats(&b), vec![0; n * n * 4]];
        let out = kernel.run([3, 3, 1], &buffers, &words(&[n as u32]), &[2]);
        harness::assert_near(&to_floats(&out[0]), &expected, 1e-5);
    }
}

fn nbody() {
    let kernel = Kernel::compile("nbody");
    let n = 512;
    let bodies = random_floats(n * 4, 7);
    let push = [words(&[n as u32]), floats(&[0.01])].concat();
    let out = kernel.run([2, 1, 1], &[floats(&bodies), vec![0; n * 16]], &push, &[1]);
    harness::assert_near(&to_floats(&out[0]), &reference::accelerations(&bodies, 0.01), 2e-4);
}

fn mandelbrot() {
    let kernel = Kernel::compile("mandelbrot");
    let (n, limit) = (64u32, 100);
    let (left, top, step) = (-2.0f32, -1.5f32, 3.0 / 64.0);
    let push = [words(&[n, limit]), floats(&[left, top, step])].concat();
    let out = kernel.run([4, 4, 1], &[vec![0; 64 * 64 * 4]], &push, &[0]);
    assert_eq!(to_words(&out[0]), reference::mandelbrot(n, limit, left, top, step));
}

fn black_scholes() {
    let kernel = Kernel::compile("black_scholes");
    let n = 700;
    let spot: Vec<f32> = random_floats(n, 8).iter().map(|x| 5.0 + 25.0 * x.abs()).collect();
    let strike: Vec<f32> = random_floats(n, 9).iter().map(|x| 1.0 + 99.0 * x.abs()).collect();
    let years: Vec<f32> = random_floats(n, 10).iter().map(|x| 0.25 + 9.0 * x.abs()).collect();
    let buffers = [floats(&spot), floats(&strike), floats(&years), vec![0; n * 4], vec![0; n * 4]];
    let push = [words(&[n as u32]), floats(&[0.02, 0.3])].concat();
    let out = kernel.run([3, 1, 1], &buffers, &push, &[3, 4]);
    let (call, put) = reference::black_scholes(&spot, &strike, &years, 0.02, 0.3);
    harness::assert_near_absolute(&to_floats(&out[0]), &call, 2e-4);
    harness::assert_near_absolute(&to_floats(&out[1]), &put, 2e-4);
}

fn fft() {
    let kernel = Kernel::compile("fft");
    let source = random_floats(2 * 1024 * 2, 11);
    let twiddles = reference::twiddles();
    let buffers = [floats(&source), vec![0; source.len() * 4], floats(&twiddles)];
    let out = kernel.run([2, 1, 1], &buffers, &[], &[1]);
    let expected: Vec<f32> = source.chunks(2048).flat_map(reference::fourier).collect();
    harness::assert_near_absolute(&to_floats(&out[0]), &expected, 1e-3);
}

fn spmv() {
    let kernel = Kernel::compile("spmv");
    let rows = 300usize;
    let starts: Vec<u32> = (0..=rows as u32)
        .map(|row| row * (row % 7) / 2)
        .scan(0, |last, s| {
            *last = s.max(*last);
            Some(*last)
        })
        .collect();
    let count = starts[rows] as usize;
    let columns: Vec<u32> = random_words(count, 12).iter().map(|w| w % 500).collect();
    let (values, x) = (random_floats(count, 13), random_floats(500, 14));
    let buffers = [words(&starts), words(&columns), floats(&values), floats(&x), vec![0; rows * 4]];
    let out = kernel.run([3, 1, 1], &buffers, &words(&[rows as u32]), &[4]);
    let expected = reference::sparse_product(&starts, &columns, &values, &x);
    harness::assert_near_absolute(&to_floats(&out[0]), &expected, 1e-3);
}

fn pathtrace() {
    let kernel = Kernel::compile("pathtrace");
    let scene: Vec<f32> = [
        [0.0f32, -100.5, -1.0, 100.0, 0.8, 0.8, 0.0, -1.0],
        [0.0, 0.0, -1.0, 0.5, 0.7, 0.3, 0.3, -1.0],
        [1.0, 0.0, -1.0, 0.5, 0.8, 0.6, 0.2, 0.3],
        [-1.0, 0.0, -1.0, 0.5, 0.8, 0.8, 0.8, 0.0],
    ]
    .concat();
    let (n, samples) = (32u32, 8);
    let out = kernel.run([4, 4, 1], &[floats(&scene), vec![0; 32 * 32 * 16]], &words(&[n, samples, 4]), &[1]);
    let expected = reference::paths::trace(&scene, n, samples);
    // A path with different rounding may take another branch; that changes a few pixels at most.
    let pixels = to_floats(&out[0]);
    let different = pixels.iter().zip(&expected).filter(|(a, b)| (**a - **b).abs() > 1e-3).count();
    assert!(different <= pixels.len() / 100, "{different} of {} components differ", pixels.len());
}

fn stencil2d_needs_images() {
    let kernel = Kernel::compile("stencil2d");
    let message = kernel.refused();
    assert!(message.contains("a storage image, has no image: use --image 0.0=FILE.png"), "{message}");
}
