//! The kernels, in the order of the table. Each file has the input, the same work in plain Rust, and the comparison of
//! one kernel or of several variants.

mod black_scholes;
mod fft;
mod histogram;
mod mandelbrot;
mod memory;
mod nbody;
pub(crate) mod pathtrace;
mod reduce;
mod scan;
mod sgemm;
mod sha256;
mod spmv;
mod transpose;

use crate::work::Kernel;

/// All kernels.
pub const ALL: [Kernel; 17] = [
    memory::SAXPY,
    memory::COPY,
    reduce::REDUCE,
    reduce::SUBGROUPS,
    transpose::TRANSPOSE,
    spmv::SPMV,
    scan::SCAN,
    sgemm::BLOCKED,
    sgemm::TILED,
    sgemm::NAIVE,
    nbody::NBODY,
    mandelbrot::MANDELBROT,
    black_scholes::BLACK_SCHOLES,
    histogram::HISTOGRAM,
    sha256::SHA256,
    fft::FFT,
    pathtrace::PATHTRACE,
];

/// Elements per task of plain Rust.
const CHUNK: usize = 64 << 10;
