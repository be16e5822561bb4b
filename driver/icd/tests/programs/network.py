"""A small convolution network with ncnn: on Vulkan and on the CPU, in single and half precision, on the same weights."""

import os
import tempfile

import ncnn
import numpy as np

NETWORK = """7767517
6 6
Input data 0 1 data 0=16 1=16 2=3
Convolution conv1 1 1 data c1 0=8 1=3 4=1 5=1 6=216 9=1
Pooling pool1 1 1 c1 p1 0=0 1=2 2=2
Convolution conv2 1 1 p1 c2 0=16 1=3 4=1 5=1 6=1152 9=1
InnerProduct fc 1 1 c2 f1 0=10 1=1 2=10240
Softmax prob 1 1 f1 out 0=0
"""
# Weights and biases of the layers that have some.
SIZES = [(216, 8), (1152, 16), (10240, 10)]


def run(folder, image, vulkan, storage=False, arithmetic=False):
    net = ncnn.Net()
    net.opt.use_vulkan_compute = vulkan
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = storage
    net.opt.use_fp16_arithmetic = arithmetic
    assert net.load_param(os.path.join(folder, "network.param")) == 0
    assert net.load_model(os.path.join(folder, "network.bin")) == 0
    extractor = net.create_extractor()
    extractor.input("data", ncnn.Mat(image).clone())
    failed, out = extractor.extract("out")
    assert failed == 0
    return np.array(out)


assert ncnn.get_gpu_count() == 1, "one device, ours"
name = ncnn.get_gpu_info(0).device_name()
assert name.startswith("Spelter"), name

random = np.random.default_rng(1)
image = random.standard_normal((3, 16, 16)).astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "network.param"), "w") as file:
        file.write(NETWORK)
    with open(os.path.join(folder, "network.bin"), "wb") as file:
        for weights, biases in SIZES:
            file.write(bytes(4))  # plain floats follow
            file.write((random.standard_normal(weights) * 0.2).astype(np.float32).tobytes())
            file.write((random.standard_normal(biases) * 0.1).astype(np.float32).tobytes())
    want = run(folder, image, vulkan=False)
    for storage, arithmetic, most in [(False, False, 1e-5), (True, False, 5e-3), (True, True, 2e-2)]:
        got = run(folder, image, True, storage, arithmetic)
        error = float(np.abs(got - want).max())
        print(f"half storage {storage}, half arithmetic {arithmetic}: largest error {error:.2g}")
        assert error <= most and abs(got.sum() - 1) < 1e-2
print("network: ok on", name)
ncnn.destroy_gpu_instance()
