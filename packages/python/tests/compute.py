"""Doubles numbers on the first Vulkan device, with the standard library only: `libvulkan.so.1` through ctypes.

The name of the device goes to standard output. Fails unless one Vulkan library is loaded, the driver.
"""

import base64
import ctypes as c
import os
import sys
import zlib

# layout(local_size_x = 4) in; buffer Data { uint numbers[]; }; numbers[gl_GlobalInvocationID.x] *= 2u;
SHADER = zlib.decompress(base64.b64decode("""
eNpNUbtOw0AQnPiMA0nsEPKCvASkBEUUgCIhkFKZIh1fgERDAU34BD6aBimze+PIltZ3M7M3u7cXkmUTaKCNHHPEr4eEDMhlvpbbt+1q9/Oxun+4M71A
8DzTusw54poyvt4/v+EccEo+da+oNRQlEQtSjfwrTx+r7lJrSX/jgvJbXK8PWsRXNdz1XoGZ8Ez4gtHnXRLPD+5n+yFzrP6lPOZUqp4Wqt10PcWJzhj3
JNyq+bTlY3e7Ee7Id0ycyzfIr1BuLr9C86rOZz67+Fl+T1pW0weqb/pQ+7o+0WwrPJXHLVGuOU3EWzzyDRKdgXr9I2PvuuHfejg7vCvwLN+++A2R9THS
bDrSqryxtF96GT4XZ/d4YbWRuH92uWbsAZGMFA8="""))
COUNT = 1024

if "--preload" in sys.argv:
    import spelter.vulkan

vk = c.CDLL("libvulkan.so.1")


def structure(name, /, **fields):
    kinds = {"u": c.c_uint32, "q": c.c_uint64, "p": c.c_void_p, "i": c.c_int32, "f": c.c_float}
    types = {field: kinds.get(kind, kind) if isinstance(kind, str) else kind for field, kind in fields.items()}
    return type(name, (c.Structure,), {"_fields_": list(types.items())})


def check(result):
    assert result == 0, f"VkResult {result}"


def create(name, parent, info):
    handle = c.c_uint64()
    function = getattr(vk, name)
    check(function(parent, c.byref(info), None, c.byref(handle)))
    return handle


head = {"kind": "u", "next": "p"}
Application = structure("Application", **head, name="p", version="u", engine="p", engine_version="u", api="u")
InstanceInfo = structure(
    "InstanceInfo", **head, flags="u", application="p", layers="u", layer_names="p", extensions="u", extension_names="p"
)
QueueInfo = structure("QueueInfo", **head, flags="u", family="u", count="u", priorities="p")
DeviceInfo = structure(
    "DeviceInfo", **head, flags="u", queues="u", queue_infos="p", layers="u", layer_names="p", extensions="u",
    extension_names="p", features="p",
)
BufferInfo = structure("BufferInfo", **head, flags="u", size="q", usage="u", sharing="u", families="u", family="p")
MemoryInfo = structure("MemoryInfo", **head, size="q", type="u")
ModuleInfo = structure("ModuleInfo", **head, flags="u", size="q", code="p")
Binding = structure("Binding", binding="u", type="u", count="u", stages="u", samplers="p")
SetLayoutInfo = structure("SetLayoutInfo", **head, flags="u", count="u", bindings="p")
LayoutInfo = structure("LayoutInfo", **head, flags="u", sets="u", set_layouts="p", ranges="u", push="p")
Stage = structure("Stage", **head, flags="u", stage="u", module="q", name="p", specialization="p")
PipelineInfo = structure("PipelineInfo", **head, flags="u", stage=Stage, layout="q", base="q", base_index="i")
PoolSize = structure("PoolSize", type="u", count="u")
PoolInfo = structure("PoolInfo", **head, flags="u", sets="u", count="u", sizes="p")
SetInfo = structure("SetInfo", **head, pool="q", count="u", layouts="p")
BufferRange = structure("BufferRange", buffer="q", offset="q", range="q")
Write = structure(
    "Write", **head, set="q", binding="u", element="u", count="u", type="u", images="p", buffers="p", texels="p"
)
CommandPoolInfo = structure("CommandPoolInfo", **head, flags="u", family="u")
CommandsInfo = structure("CommandsInfo", **head, pool="q", level="u", count="u")
BeginInfo = structure("BeginInfo", **head, flags="u", inheritance="p")
Submit = structure(
    "Submit", **head, waits="u", wait="p", stages="p", count="u", commands="p", signals="u", signal="p"
)


def pointer(value):
    return c.cast(c.pointer(value), c.c_void_p)


application = Application(kind=0, api=(1 << 22) | (1 << 12))
instance = c.c_void_p()
check(vk.vkCreateInstance(c.byref(InstanceInfo(kind=1, application=pointer(application))), None, c.byref(instance)))
count, physical = c.c_uint32(1), c.c_void_p()
check(vk.vkEnumeratePhysicalDevices(instance, c.byref(count), c.byref(physical)))
properties = c.create_string_buffer(2048)
vk.vkGetPhysicalDeviceProperties(physical, properties)
name = properties.raw[20:].split(b"\0")[0].decode()

priority = c.c_float(1)
queue_info = QueueInfo(kind=2, count=1, priorities=pointer(priority))
device = c.c_void_p()
check(vk.vkCreateDevice(physical, c.byref(DeviceInfo(kind=3, queues=1, queue_infos=pointer(queue_info))), None,
                        c.byref(device)))
queue = c.c_void_p()
vk.vkGetDeviceQueue(device, 0, 0, c.byref(queue))

# Memory type 2 is mapped and coherent on Spelter (docs/vulkan.md).
buffer = create("vkCreateBuffer", device, BufferInfo(kind=12, size=4 * COUNT, usage=0x20))
memory = create("vkAllocateMemory", device, MemoryInfo(kind=5, size=4 * COUNT, type=2))
check(vk.vkBindBufferMemory(device, buffer, memory, c.c_uint64(0)))
mapped = c.c_void_p()
check(vk.vkMapMemory(device, memory, c.c_uint64(0), c.c_uint64(4 * COUNT), 0, c.byref(mapped)))
numbers = (c.c_uint32 * COUNT).from_address(mapped.value)
numbers[:] = range(COUNT)

module = create("vkCreateShaderModule", device, ModuleInfo(kind=16, size=len(SHADER), code=c.cast(SHADER, c.c_void_p)))
binding = Binding(type=7, count=1, stages=0x20)
set_layout = create("vkCreateDescriptorSetLayout", device, SetLayoutInfo(kind=32, count=1, bindings=pointer(binding)))
layout = create("vkCreatePipelineLayout", device, LayoutInfo(kind=30, sets=1, set_layouts=pointer(set_layout)))
stage = Stage(kind=18, stage=0x20, module=module.value, name=c.cast(c.c_char_p(b"main"), c.c_void_p))
pipeline = c.c_uint64()
check(vk.vkCreateComputePipelines(device, c.c_uint64(0), 1, c.byref(PipelineInfo(kind=29, stage=stage, layout=layout.value)),
                                  None, c.byref(pipeline)))
size = PoolSize(type=7, count=1)
pool = create("vkCreateDescriptorPool", device, PoolInfo(kind=33, sets=1, count=1, sizes=pointer(size)))
descriptors = c.c_uint64()
check(vk.vkAllocateDescriptorSets(device, c.byref(SetInfo(kind=34, pool=pool.value, count=1, layouts=pointer(set_layout))),
                                  c.byref(descriptors)))
whole = BufferRange(buffer=buffer.value, range=4 * COUNT)
write = Write(kind=35, set=descriptors.value, count=1, type=7, buffers=pointer(whole))
vk.vkUpdateDescriptorSets(device, 1, c.byref(write), 0, None)

command_pool = create("vkCreateCommandPool", device, CommandPoolInfo(kind=39))
commands = c.c_void_p()
check(vk.vkAllocateCommandBuffers(device, c.byref(CommandsInfo(kind=40, pool=command_pool.value, count=1)),
                                  c.byref(commands)))
check(vk.vkBeginCommandBuffer(commands, c.byref(BeginInfo(kind=42))))
vk.vkCmdBindPipeline(commands, 1, pipeline)
vk.vkCmdBindDescriptorSets(commands, 1, layout, 0, 1, c.byref(descriptors), 0, None)
vk.vkCmdDispatch(commands, COUNT // 4, 1, 1)
check(vk.vkEndCommandBuffer(commands))
check(vk.vkQueueSubmit(queue, 1, c.byref(Submit(kind=4, count=1, commands=pointer(commands))), c.c_uint64(0)))
check(vk.vkDeviceWaitIdle(device))
assert list(numbers) == [2 * number for number in range(COUNT)], list(numbers[:8])

with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if "vulkan" in os.path.basename(line.split()[-1])}
assert len(libraries) == 1, libraries
print(f"computed on {name}")
