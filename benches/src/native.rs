//! Plain Rust compiled for the CPU that it runs on, independent of build flags.
//!
//! `native!` compiles a function three times, for AVX-512, for AVX2 and for any CPU of the target, and selects one at
//! run time. Helpers that such a function calls must be `#[inline(always)]`, or they are compiled for any CPU.
//!
//! Compared with this crate built with `-C target-cpu=native`, in CPU time on a Xeon with AVX-512: memory-bound
//! kernels, the histogram, the FFT and the path tracer are equal within noise; sgemm is 1.2 times as fast as that
//! build, nbody 1.45, mandelbrot 1.15 and Black-Scholes 1.25 times, since rustc's tuning for that CPU prefers vectors
//! of 256 bits.

/// Defines a function that is compiled for several CPUs; a call runs the best version.
macro_rules! native {
    ($($function:tt)*) => {
        #[multiversion::multiversion(targets(
            "x86_64+avx2+avx512bw+avx512cd+avx512dq+avx512f+avx512vl+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt",
            "x86_64+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt",
        ))]
        $($function)*
    };
}
