"""WGSL kernels through wgpu's Vulkan backend, against NumPy."""

import numpy as np
import wgpu

adapters = wgpu.gpu.enumerate_adapters_sync()
names = [f"{a.info['device']} ({a.info['backend_type']})" for a in adapters]
ours = [a for a in adapters if a.info["device"].startswith("Spelter")]
assert ours, f"the driver is not among {names}"
device = ours[0].request_device_sync()

COUNT = 4096
BUFFERS = """
@group(0) @binding(0) var<storage, read> a: array<TYPE>;
@group(0) @binding(1) var<storage, read_write> b: array<TYPE>;
var<workgroup> s: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>,
        @builtin(workgroup_id) group: vec3<u32>) {
    let i = global.x;
    let l = local.x;
    BODY
}
"""


def run(ty, body, a):
    code = BUFFERS.replace("BODY", body).replace("var<storage, read_write> b: array<TYPE>", f"var<storage, read_write> b: array<{ty}>")
    code = code.replace("TYPE", "u32" if "u32" in ty else ty)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffers = [device.create_buffer_with_data(data=data, usage=usage) for data in (a, np.zeros_like(a))]
    module = device.create_shader_module(code=code)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    entries = [{"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}} for i, b in enumerate(buffers)]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(COUNT // 64)
    compute.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(buffers[1]), dtype=a.dtype)


random = np.random.default_rng(3)
x = random.standard_normal(COUNT).astype(np.float32)
positive = np.abs(x) + np.float32(0.5)
u = random.integers(0, 2**32, COUNT, dtype=np.uint32)


def padded(values):
    return np.concatenate([values, np.zeros(COUNT - len(values), values.dtype)])


def bits(value):
    return bin(value).count("1") + int(f"{value:032b}"[::-1], 2) & 0xFFFFFFFF


TREE = """s[l] = a[i]; workgroupBarrier();
    for (var k = 32u; k > 0u; k /= 2u) { if l < k { s[l] += s[l + k]; } workgroupBarrier(); }
    if l == 0u { b[group.x] = s[0]; }"""
KERNELS = [
    ("square", "f32", "b[i] = a[i] * a[i];", x, x * x, 1e-6),
    ("sqrt", "f32", "b[i] = sqrt(a[i]);", positive, np.sqrt(positive), 1e-6),
    ("exp", "f32", "b[i] = exp(a[i]);", x, np.exp(x), 1e-5),
    ("sin", "f32", "b[i] = sin(a[i]);", x, np.sin(x), 1e-5),
    ("clamp", "f32", "b[i] = clamp(a[i], -0.5, 0.5);", x, np.clip(x, -0.5, 0.5), 0),
    ("branch", "f32", "if a[i] > 0.0 { b[i] = a[i]; } else { b[i] = -2.0 * a[i]; }", x, np.where(x > 0, x, -2 * x), 0),
    ("loop", "f32", "var t = 0.0; for (var k = 0u; k < i % 16u; k++) { t += a[k]; } b[i] = t;", x,
     np.array([x[: k % 16].sum(dtype=np.float32) for k in range(COUNT)]), 1e-5),
    ("reverse", "f32", "b[i] = a[arrayLength(&a) - 1u - i];", x, x[::-1], 0),
    ("workgroup", "f32", "s[l] = a[i]; workgroupBarrier(); b[i] = s[63u - l];", x, x.reshape(-1, 64)[:, ::-1].ravel(), 0),
    ("reduce", "f32", TREE, x, padded(x.reshape(-1, 64).sum(1)), 1e-5),
    ("bits", "u32", "b[i] = countOneBits(a[i]) + reverseBits(a[i]);", u, np.array([bits(v) for v in u.tolist()], np.uint32), 0),
    ("histogram", "atomic<u32>", "atomicAdd(&b[a[i] % 256u], 1u);", u, padded(np.bincount(u % 256, minlength=256).astype(np.uint32)), 0),
    ("halves", "u32", "b[i] = pack2x16float(unpack2x16float(a[i] & 0x7bff7bffu));", u, u & 0x7BFF7BFF, 0),
]
for name, ty, body, data, want, most in KERNELS:
    got = run(ty, body, data).astype(np.float64)
    want = want.astype(np.float64)
    error = float(np.max(np.abs(got - want) / (1 + np.abs(want))))
    print(f"{name}: largest error {error:.2g}")
    assert error <= most, name
print(f"kernels: {len(KERNELS)} ok on", ours[0].info["device"])
