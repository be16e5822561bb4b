// Prices of European options: exponentials, logarithms and roots.

struct Parameters {
    count: u32,
    rate: f32,
    volatility: f32,
}

var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read> spots: array<f32>;
@group(0) @binding(1) var<storage, read> strikes: array<f32>;
@group(0) @binding(2) var<storage, read> years: array<f32>;
@group(0) @binding(3) var<storage, read_write> calls: array<f32>;
@group(0) @binding(4) var<storage, read_write> puts: array<f32>;

// The normal distribution, by Abramowitz and Stegun's 26.2.17.
fn normal(d: f32) -> f32 {
    let k = 1.0 / (1.0 + 0.2316419 * abs(d));
    let series = 0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)));
    let tail = 0.39894228 * exp(-0.5 * d * d) * k * series;
    return select(tail, 1.0 - tail, d > 0.0);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= parameters.count {
        return;
    }
    let spot = spots[id.x];
    let strike = strikes[id.x];
    let time = years[id.x];
    let volatility = parameters.volatility;
    let spread = volatility * sqrt(time);
    let d = (log(spot / strike) + (parameters.rate + 0.5 * volatility * volatility) * time) / spread;
    let first = normal(d);
    let second = normal(d - spread);
    let discounted = strike * exp(-parameters.rate * time);
    calls[id.x] = spot * first - discounted * second;
    puts[id.x] = discounted * (1.0 - second) - spot * (1.0 - first);
}
