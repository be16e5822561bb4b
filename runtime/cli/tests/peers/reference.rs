//! References for the peers' shaders as plain loops, in `f64` where rounding is not part of the result.

pub(super) mod paths;

/// Matrix product, row by row.
pub(super) fn product(a: &[f32], b: &[f32], n: usize) -> Vec<f32> {
    let cell = |row, col| (0..n).map(|k| f64::from(a[row * n + k]) * f64::from(b[k * n + col])).sum::<f64>() as f32;
    (0..n * n).map(|i| cell(i / n, i % n)).collect()
}

/// Gravity of all bodies (position and mass) on each.
pub(super) fn accelerations(bodies: &[f32], softening: f64) -> Vec<f32> {
    let bodies: Vec<[f64; 4]> = bodies.chunks(4).map(|b| std::array::from_fn(|i| f64::from(b[i]))).collect();
    let mut out = Vec::new();
    for me in &bodies {
        let mut sum = [0.0; 3];
        for other in &bodies {
            let d: [f64; 3] = std::array::from_fn(|i| other[i] - me[i]);
            let inverse = 1.0 / (d.iter().map(|x| x * x).sum::<f64>() + softening).sqrt();
            for i in 0..3 {
                sum[i] += d[i] * other[3] * inverse.powi(3);
            }
        }
        out.extend([sum[0] as f32, sum[1] as f32, sum[2] as f32, 0.0]);
    }
    out
}

/// Iteration counts; every operation rounds to `f32` as the kernel's `precise` demands.
pub(super) fn mandelbrot(n: u32, limit: u32, left: f32, top: f32, step: f32) -> Vec<u32> {
    let count = |px: u32, py: u32| {
        let (cx, cy) = (left + px as f32 * step, top + py as f32 * step);
        let (mut x, mut y) = (0.0f32, 0.0f32);
        (0..limit)
            .find(|_| {
                if x * x + y * y > 4.0 {
                    return true;
                }
                (x, y) = (x * x - y * y + cx, 2.0 * (x * y) + cy);
                false
            })
            .unwrap_or(limit)
    };
    (0..n * n).map(|i| count(i % n, i / n)).collect()
}

/// Prices of calls and puts.
pub(super) fn black_scholes(
    spot: &[f32],
    strike: &[f32],
    years: &[f32],
    rate: f64,
    volatility: f64,
) -> (Vec<f32>, Vec<f32>) {
    let normal = |d: f64| {
        let k = 1.0 / (1.0 + 0.2316419 * d.abs());
        let series = [1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153];
        let poly = series.iter().fold(0.0, |sum, c| k * (c + sum));
        let tail = 0.39894228 * (-0.5 * d * d).exp() * poly;
        if d > 0.0 { 1.0 - tail } else { tail }
    };
    let price = |i: usize| {
        let (s, x, t) = (f64::from(spot[i]), f64::from(strike[i]), f64::from(years[i]));
        let spread = volatility * t.sqrt();
        let d1 = ((s / x).ln() + (rate + 0.5 * volatility * volatility) * t) / spread;
        let (n1, n2) = (normal(d1), normal(d1 - spread));
        let discounted = x * (-rate * t).exp();
        ((s * n1 - discounted * n2) as f32, (discounted * (1.0 - n2) - s * (1.0 - n1)) as f32)
    };
    (0..spot.len()).map(price).unzip()
}

/// exp(-2πi k / 1024) for the first half turn.
pub(super) fn twiddles() -> Vec<f32> {
    (0..512).flat_map(|k| turn(k as f64 / 1024.0)).map(|x| x as f32).collect()
}

fn turn(part: f64) -> [f64; 2] {
    let angle = -2.0 * std::f64::consts::PI * part;
    [angle.cos(), angle.sin()]
}

/// The discrete Fourier transform of 1024 complex numbers, by its definition.
pub(super) fn fourier(source: &[f32]) -> Vec<f32> {
    let roots: Vec<[f64; 2]> = (0..1024).map(|k| turn(k as f64 / 1024.0)).collect();
    (0..1024usize)
        .flat_map(|k| {
            let mut sum = [0.0; 2];
            for (j, z) in source.chunks(2).enumerate() {
                let ([c, s], re, im) = (roots[j * k % 1024], f64::from(z[0]), f64::from(z[1]));
                sum[0] += re * c - im * s;
                sum[1] += re * s + im * c;
            }
            sum.map(|x| x as f32)
        })
        .collect()
}

/// Product of a matrix in compressed rows with a vector.
pub(super) fn sparse_product(starts: &[u32], columns: &[u32], values: &[f32], x: &[f32]) -> Vec<f32> {
    let row = |pair: &[u32]| {
        (pair[0] as usize..pair[1] as usize)
            .map(|k| f64::from(values[k]) * f64::from(x[columns[k] as usize]))
            .sum::<f64>() as f32
    };
    starts.windows(2).map(row).collect()
}
