//! The mistakes in `docs/command-mistakes.md`: each has the report of the page, and the call that the page names
//! silences it.
//!
//! `BLESS=1 cargo test -p spelter-driver --test device checking_page` writes the reports into the page.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::common::checked::{Side, barrier, options};
use crate::common::{COUNT, Kernel, STORAGE, Words};
use spelter_driver::check::Finding;
use spelter_driver::vk::{self, AccessFlags as A, PipelineStageFlags as S, PipelineStageFlags2 as S2};
use spelter_driver::{
    BufferMemoryBarrier, Chunk, CommandBuffer, DescriptorSet, Device, Observer, SemaphoreSubmit, SubmissionId,
    SubmitInfo,
};

const UNIFORM: vk::DescriptorType = vk::DescriptorType::UNIFORM_BUFFER;

/// Knows whether the first queue has done something, without a call that tells the device that the host knows.
#[derive(Debug, Default)]
struct Done {
    done: Mutex<bool>,
    changed: Condvar,
}

impl Observer for Done {
    fn worked(&self, _: &Chunk<'_>) {}

    fn ran(&self, id: SubmissionId, done: bool, _: Instant, _: Instant) {
        if done && id.queue == 0 {
            *self.done.lock().unwrap() = true;
            self.changed.notify_all();
        }
    }
}

/// The objects of the programs.
struct Scene {
    device: Device,
    done: Arc<Done>,
    image: Words,
    blurred: Words,
    factors: Words,
    kernels: [Kernel; 3],
    /// Blur, sum, scale, and count of `blurred`.
    sets: [DescriptorSet; 4],
    count: Kernel,
}

const BLUR: &str = "@group(0) @binding(0) var<storage, read> image: array<u32>;
@group(0) @binding(1) var<storage, read_write> blurred: array<u32>;
@compute @workgroup_size(16) fn blur(@builtin(local_invocation_index) i: u32) {
    blurred[i] = (image[max(i, 1u) - 1u] + image[i]) / 2u;
}
";

const SUM: &str = "@group(0) @binding(0) var<storage, read> blurred: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(16) fn sum(@builtin(local_invocation_index) i: u32) {
    sums[i] += blurred[i];
}
";

const SCALE: &str = "@group(0) @binding(0) var<uniform> factors: array<vec4<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(16) fn scale(@builtin(local_invocation_index) i: u32) {
    sums[i] *= factors[0].x;
}
";

impl Scene {
    fn new() -> Self {
        let done = Arc::new(Done::default());
        let device = Device::with_observer(options(), Arc::<Done>::clone(&done)).unwrap();
        let [image, blurred, sums, factors] = ["image", "blurred", "sums", "factors"].map(|name| {
            let words = Words::zeros(&device, 16);
            words.buffer.set_debug_name(Some(name));
            words
        });
        let blur = Kernel::named(&device, BLUR, "blur", &[(STORAGE, 1), (STORAGE, 1)], 0);
        let sum = Kernel::named(&device, SUM, "sum", &[(STORAGE, 1), (STORAGE, 1)], 0);
        let scale = Kernel::named(&device, SCALE, "scale", &[(UNIFORM, 1), (STORAGE, 1)], 0);
        let count = Kernel::named(&device, COUNT, "main", &[(STORAGE, 1)], 0);
        let scale_set = device.create_descriptor_pool(1, &[(UNIFORM, 1), (STORAGE, 1)]).unwrap();
        let scale_set = scale_set.allocate(&scale.set_layout).unwrap();
        scale_set.write(0, 0, UNIFORM, &[factors.whole()]).unwrap();
        scale_set.write(1, 0, STORAGE, &[sums.whole()]).unwrap();
        let sets = [
            blur.set(&device, STORAGE, &[&image, &blurred]),
            sum.set(&device, STORAGE, &[&blurred, &sums]),
            scale_set,
            count.set(&device, STORAGE, &[&blurred]),
        ];
        Self { device, done, image, blurred, factors, kernels: [blur, sum, scale], sets, count }
    }

    fn dispatch(&self, into: &CommandBuffer, at: usize) {
        into.bind_pipeline(&self.kernels[at].pipeline).unwrap();
        into.bind_descriptor_sets(&self.kernels[at].layout, 0, &[&self.sets[at]], &[]).unwrap();
        into.dispatch(1, 1, 1).unwrap();
    }

    fn blur(&self, into: &CommandBuffer) {
        self.dispatch(into, 0);
    }

    fn sum(&self, into: &CommandBuffer) {
        self.dispatch(into, 1);
    }

    fn scale(&self, into: &CommandBuffer) {
        self.dispatch(into, 2);
    }

    /// Each word of `blurred` is read and written.
    fn count(&self, into: &CommandBuffer) {
        into.bind_pipeline(&self.count.pipeline).unwrap();
        into.bind_descriptor_sets(&self.count.layout, 0, &[&self.sets[3]], &[]).unwrap();
        into.dispatch(4, 1, 1).unwrap();
    }

    fn upload(&self, into: &CommandBuffer) {
        into.update_buffer(&self.image.buffer, 0, &[2; 64]).unwrap();
    }

    fn record(&self, record: impl FnOnce(&CommandBuffer)) -> CommandBuffer {
        let command = self.device.create_command_pool().allocate();
        command.set_debug_name(Some("frame"));
        command.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE).unwrap();
        record(&command);
        command.end().unwrap();
        command
    }

    fn run(&self, record: impl FnOnce(&CommandBuffer)) {
        self.device.queue().submit(&[&self.record(record)], None).unwrap();
        self.idle();
    }

    fn idle(&self) {
        self.device.queues().iter().for_each(|queue| queue.wait_idle().unwrap());
    }
}

const SHADER_READ: Side = (S::COMPUTE_SHADER, A::SHADER_READ);
const SHADER_WRITE: Side = (S::COMPUTE_SHADER, A::SHADER_WRITE);
const TRANSFER_WRITE: Side = (S::TRANSFER, A::TRANSFER_WRITE);

struct Mistake {
    title: &'static str,
    text: &'static str,
    repair: &'static str,
    /// Runs the program, as it is or repaired.
    run: fn(&Scene, bool),
}

const MISTAKES: [Mistake; 10] = [
    Mistake {
        title: "A dispatch reads what the one before it wrote",
        text: "Commands of a command buffer start in order, and nothing makes the second one wait for the first one.",
        repair: "`vkCmdPipelineBarrier2` between them, from `COMPUTE_SHADER`, `SHADER_STORAGE_WRITE` to \
               `COMPUTE_SHADER`, `SHADER_STORAGE_READ`.",
        run: |scene, repaired| {
            scene.run(|command| {
                scene.blur(command);
                if repaired {
                    barrier(command, SHADER_WRITE, SHADER_READ);
                }
                scene.sum(command);
            });
        },
    },
    Mistake {
        title: "Two submissions are believed to wait for each other",
        text: "Submissions to one queue start in order, as commands do.",
        repair: "The same barrier at the end of the first command buffer or at the start of the second one; a \
               semaphore; or a fence that the host waits for between the two calls.",
        run: |scene, repaired| {
            let first = scene.record(|command| {
                scene.blur(command);
                if repaired {
                    barrier(command, SHADER_WRITE, SHADER_READ);
                }
            });
            let second = scene.record(|command| scene.sum(command));
            scene.device.queue().submit(&[&first], None).unwrap();
            scene.device.queue().submit(&[&second], None).unwrap();
            scene.idle();
        },
    },
    Mistake {
        title: "A barrier names the stage of another command",
        text: "What precedes the barrier here is a transfer, and its first scope has the stage of dispatches.",
        repair: "`ALL_TRANSFER` (or `CLEAR` for fills and updates, `COPY` for copies) with `TRANSFER_WRITE` as the \
               source.",
        run: |scene, repaired| {
            scene.run(|command| {
                scene.upload(command);
                barrier(command, if repaired { TRANSFER_WRITE } else { SHADER_WRITE }, SHADER_READ);
                scene.blur(command);
            });
        },
    },
    Mistake {
        title: "A barrier has a read as its source",
        text: "`srcAccessMask` is for writes: they are made available. To name a read there has no effect.",
        repair: "`SHADER_STORAGE_WRITE` in `srcAccessMask`.",
        run: |scene, repaired| {
            scene.run(|command| {
                scene.blur(command);
                barrier(command, if repaired { SHADER_WRITE } else { SHADER_READ }, SHADER_READ);
                scene.sum(command);
            });
        },
    },
    Mistake {
        title: "A barrier makes values visible to reads, and the next dispatch also writes",
        text: "A write over a write needs visibility, too. The specification has two answers. The chapter \"Synchronization \
               and Cache Control\" asks for a memory dependency, which includes visibility (\"Execution and Memory \
               Dependencies\"); checked mode takes this one between commands. The appendix \"Memory Model\" asks for \
               availability only, which decides in kernels (the switch `overwrite` of [the memory \
               model](memory-model.md)).",
        repair: "`SHADER_STORAGE_READ` and `SHADER_STORAGE_WRITE` in `dstAccessMask`.",
        run: |scene, repaired| {
            scene.run(|command| {
                scene.blur(command);
                let both = (S::COMPUTE_SHADER, A::SHADER_READ | A::SHADER_WRITE);
                barrier(command, SHADER_WRITE, if repaired { both } else { SHADER_READ });
                scene.count(command);
            });
        },
    },
    Mistake {
        title: "`SHADER_READ` for a uniform buffer",
        text: "Uniform buffers have an access of their own. So have the workgroup counts of an indirect dispatch, \
               which are read in stage `DRAW_INDIRECT` as `INDIRECT_COMMAND_READ`.",
        repair: "`UNIFORM_READ` in `dstAccessMask`.",
        run: |scene, repaired| {
            scene.run(|command| {
                command.update_buffer(&scene.factors.buffer, 0, &[3; 64]).unwrap();
                let access = if repaired { A::UNIFORM_READ } else { A::SHADER_READ };
                barrier(command, TRANSFER_WRITE, (S::COMPUTE_SHADER, access));
                scene.scale(command);
            });
        },
    },
    Mistake {
        title: "A buffer barrier for a part of the buffer, or for another one",
        text: "A buffer barrier orders all commands of its stages, and makes the values of its range available and \
               visible, no others.",
        repair: "The range that is used (`VK_WHOLE_SIZE`), or a memory barrier.",
        run: |scene, repaired| {
            scene.run(|command| {
                scene.blur(command);
                let (src_access, dst_access) = (SHADER_WRITE.1, SHADER_READ.1);
                let (buffer, size) = (&scene.blurred.buffer, if repaired { vk::WHOLE_SIZE } else { 32 });
                let range = BufferMemoryBarrier { src_access, dst_access, buffer, offset: 0, size };
                command.pipeline_barrier(SHADER_WRITE.0, SHADER_READ.0, &[], &[range]).unwrap();
                scene.sum(command);
            });
        },
    },
    Mistake {
        title: "A semaphore is waited for in a stage that does not use the memory",
        text: "`pWaitDstStageMask` says which commands wait. The others of the submission do not.",
        repair: "The stage of the first command that uses the memory, here `COMPUTE_SHADER`; `ALL_COMMANDS` if in doubt.",
        run: |scene, repaired| {
            let (first, second) =
                (scene.record(|command| scene.blur(command)), scene.record(|command| scene.sum(command)));
            let done = scene.device.create_semaphore();
            let signals = [SemaphoreSubmit::new(&done, 0)];
            let stages = if repaired { S2::COMPUTE_SHADER } else { S2::ALL_TRANSFER };
            let waits = [SemaphoreSubmit { stages, ..SemaphoreSubmit::new(&done, 0) }];
            let queues = scene.device.queues();
            queues[0].submit_all(&[SubmitInfo { waits: &[], commands: &[&first], signals: &signals }], None).unwrap();
            queues[1].submit_all(&[SubmitInfo { waits: &waits, commands: &[&second], signals: &[] }], None).unwrap();
            scene.idle();
        },
    },
    Mistake {
        title: "The host reads before it has waited",
        text: "That a submission was early does not mean that it has ended. Here the host has waited for another one.",
        repair: "A fence of the submission, or a timeline semaphore that it signals (`vkWaitForFences`, \
               `vkWaitSemaphores`), or `vkQueueWaitIdle`.",
        run: |scene, repaired| {
            let command = scene.record(|command| {
                scene.blur(command);
                barrier(command, SHADER_WRITE, (S::HOST, A::HOST_READ));
            });
            let [fence, other] = [(); 2].map(|()| scene.device.create_fence(false));
            scene.device.queues()[1].submit(&[], Some(&other)).unwrap();
            scene.device.queue().submit(&[&command], Some(&fence)).unwrap();
            // For a report that is always the same: the dispatch has run by now, and the host does not know.
            let done = scene.done.done.lock().unwrap();
            drop(scene.done.changed.wait_while(done, |done| !*done).unwrap());
            let waited = if repaired { &fence } else { &other };
            assert!(waited.wait(None).unwrap());
            let _ = scene.blurred.read();
            scene.idle();
        },
    },
    Mistake {
        title: "The host reads after the fence, and nothing makes the values visible to it",
        text: "A fence makes values available to the device. To the host a barrier does, in all types of memory that \
               are not coherent, and by the rules of Vulkan in the others, too. Of a mapped pointer this is a note, \
               since Spelter does not see whether the host reads.",
        repair: "A barrier at the end of the command buffer: from `COMPUTE_SHADER`, `SHADER_STORAGE_WRITE` to `HOST`, \
               `HOST_READ`.",
        run: |scene, repaired| {
            let command = scene.record(|command| {
                scene.blur(command);
                if repaired {
                    barrier(command, SHADER_WRITE, (S::HOST, A::HOST_READ));
                }
            });
            let fence = scene.device.create_fence(false);
            scene.device.queue().submit(&[&command], Some(&fence)).unwrap();
            assert!(fence.wait(None).unwrap());
            let _ = scene.blurred.read();
            scene.idle();
        },
    },
];

/// Lines of at most 116 columns; what continues a line has its indentation and four more.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut column = indent;
        out.push_str(&line[..indent]);
        for (at, word) in line.split_whitespace().enumerate() {
            if at > 0 && column + 1 + word.len() > 116 {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent + 4));
                column = indent + 4;
            } else if at > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += word.len();
        }
        out.push('\n');
    }
    out
}

fn paragraph(text: &str) -> String {
    wrapped(text).replace("\n    ", "\n")
}

fn section() -> String {
    let mut section = String::new();
    for (number, mistake) in (1..).zip(&MISTAKES) {
        let scene = Scene::new();
        (mistake.run)(&scene, false);
        let found = scene.device.take_findings();
        assert_eq!(found.len(), 1, "{}: {}", mistake.title, texts(&found));
        let scene = Scene::new();
        (mistake.run)(&scene, true);
        let silent = scene.device.take_findings();
        assert!(silent.is_empty(), "{} repaired: {}", mistake.title, texts(&silent));
        section.push_str(&format!("\n## {number}. {}\n\n{}\n", mistake.title, paragraph(mistake.text)));
        section.push_str(&format!("```text\n{}```\n\n", wrapped(&found[0].to_string())));
        section.push_str(&paragraph(&format!("Repair: {}", mistake.repair)));
    }
    section
}

fn texts(of: &[Finding]) -> String {
    of.iter().map(|finding| format!("\n{finding}")).collect()
}

const BEGIN: &str = "<!-- driver/tests/checking_page.rs writes what follows -->\n";
const END: &str = "\n<!-- end of what it writes -->\n";

#[test]
fn the_page_has_the_reports_that_are_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/command-mistakes.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (present, after) = rest.split_once(END).unwrap();
    let wanted = section();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
    } else {
        assert_eq!(present, wanted, "BLESS=1 writes the page");
    }
}
