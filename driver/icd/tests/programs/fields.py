"""Taichi's fields, loops and atomics on the first Vulkan device, compared with numpy."""

import numpy as np
import taichi as ti

COUNT = 1024

ti.init(arch=ti.vulkan, log_level=ti.WARN)
assert ti.cfg.arch == ti.vulkan, f"Taichi fell back to {ti.cfg.arch}"

waves = ti.field(ti.f32, shape=COUNT)
longest = ti.field(ti.i32, shape=())


@ti.kernel
def fill():
    for i in waves:
        waves[i] = ti.sin(i * 0.5) + i


@ti.kernel
def total() -> ti.i32:
    sum = 0
    for i in waves:
        sum += i
    return sum


@ti.kernel
def collatz():
    for i in range(COUNT):
        value, steps = i + 1, 0
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        ti.atomic_max(longest[None], steps)


def steps(value):
    return 0 if value == 1 else 1 + steps(value // 2 if value % 2 == 0 else 3 * value + 1)


fill()
collatz()
numbers = np.arange(COUNT)
np.testing.assert_allclose(waves.to_numpy(), np.sin(numbers * 0.5) + numbers, rtol=1e-5, atol=1e-4)
assert total() == numbers.sum()
assert longest[None] == max(steps(int(number) + 1) for number in numbers)
print("fields: ok")
