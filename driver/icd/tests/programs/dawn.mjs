// WGSL kernels through Dawn's Vulkan backend (the package `webgpu` of npm, in the folder that SPELTER_DAWN names), each against a loop.

import { pathToFileURL } from "node:url";

const { create, globals } = await import(pathToFileURL(`${process.env.SPELTER_DAWN}/node_modules/webgpu/index.js`));
Object.assign(globalThis, globals);
// Kept: adapters and devices do not keep it alive.
const gpu = create(["backend=vulkan"]);
const adapter = await gpu.requestAdapter();
const name = adapter ? [adapter.info.device, adapter.info.description].join(" ") : "none";
if (!/spelter/i.test(name)) {
    console.log(`the adapter is not ours: ${name}`);
    process.exit(1);
}
const device = await adapter.requestDevice();
let errors = 0;
device.addEventListener("uncapturederror", (event) => {
    errors += 1;
    console.log("error:", event.error.message);
});

const COUNT = 1024;
const HEAD = `
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<atomic<u32>>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3u) {
    let i = id.x;`;

const a = new Uint32Array(COUNT).map((_, i) => Math.imul(i + 1, 0x9e3779b1) >>> 0);
const bits = new Float32Array(1);
const word = (value) => ((bits[0] = value), new Uint32Array(bits.buffer)[0]);

// Name, body, what element i becomes.
const KERNELS = [
    ["multiply and add", "atomicStore(&b[i], a[i] * 3u + i);", (i) => (Math.imul(a[i], 3) + i) >>> 0],
    ["shift and rotate", "atomicStore(&b[i], (a[i] << 7u) | (a[i] >> 25u));", (i) => ((a[i] << 7) | (a[i] >>> 25)) >>> 0],
    [
        "other half of the workgroup",
        "t[l] = a[i]; workgroupBarrier(); atomicStore(&b[i], t[63u - l]);",
        (i) => a[(i & ~63) + 63 - (i & 63)],
    ],
    [
        "sum of the workgroup",
        `t[l] = a[i]; workgroupBarrier();
         for (var s = 32u; s > 0u; s >>= 1u) { if (l < s) { t[l] += t[l + s]; } workgroupBarrier(); }
         atomicStore(&b[i], t[0]);`,
        (i) => a.slice(i & ~63, (i & ~63) + 64).reduce((sum, value) => (sum + value) >>> 0, 0),
    ],
    ["atomics", "atomicAdd(&b[i % 4u], 1u);", (i) => (i < 4 ? COUNT / 4 : 0)],
    ["a loop that differs", "var n = 0u; for (var v = a[i]; v != 0u; v &= v - 1u) { n++; } atomicStore(&b[i], n);", (i) =>
        a[i].toString(2).replaceAll("0", "").length],
    ["square roots", "atomicStore(&b[i], bitcast<u32>(sqrt(f32(i * i))));", (i) => word(i)],
    ["out of bounds", "atomicStore(&b[i], select(7u, a[i + 100000u], i == 5000u));", () => 7],
];

async function run(body) {
    const module = device.createShaderModule({ code: `${HEAD}\n${body}\n}` });
    const pipeline = await device.createComputePipelineAsync({
        // Not every body uses both bindings.
        layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module, entryPoint: "main" },
    });
    const size = COUNT * 4;
    const from = device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
    const to = device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
    const back = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(from, 0, a);
    const entries = [from, to].map((buffer, binding) => ({ binding, resource: { buffer } }));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(COUNT / 64);
    pass.end();
    encoder.copyBufferToBuffer(to, 0, back, 0, size);
    device.queue.submit([encoder.finish()]);
    await back.mapAsync(GPUMapMode.READ);
    return new Uint32Array(back.getMappedRange()).slice();
}

const types = ["read-only-storage", "storage"];
const layout = device.createBindGroupLayout({
    entries: types.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
});
let good = 0;
for (const [kernel, body, wanted] of KERNELS) {
    const found = await run(body);
    const wrong = found.findIndex((value, i) => value !== wanted(i));
    if (wrong < 0) good += 1;
    else console.log(`${kernel}: element ${wrong} is ${found[wrong]} and not ${wanted(wrong)}`);
}
globalThis.kept = gpu;
console.log(errors ? `${errors} errors` : `dawn: ${good} of ${KERNELS.length} ok on Spelter`);
process.exit(errors || good < KERNELS.length ? 1 : 0);
