//! Threads that run random operations on the same buffers and images. Each operation leaves all words of its target
//! equal, so each read finds them equal, in whatever order the operations run; no thread hangs, and no object is left.
//!
//! A respecification leaves the contents undefined, and a write to undefined contents waits for no command that reads
//! them. So in half of the rounds a respecification and the write after it are one operation that no other thread's
//! calls interrupt, and in the other rounds, where they may, words are not compared.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::{Mutex, RwLock};

use spelter::{
    Bind, Buffer, ClearColor, CommandBuffer, Context, DescriptorSet, Error, Image, MapFlags, Outcome, Program,
    Recorder, vk,
};

use crate::is_checked;

const ADD: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < min(arrayLength(&source), arrayLength(&to)) { to[id.x] += source[id.x]; }
}";

/// Words of the buffers: three of each size.
const SIZES: [usize; 2] = [1 << 10, 1 << 14];
/// Words that a buffer has beyond these after some of its respecifications; no operation depends on them.
const BEYOND: usize = 64;
/// Width of the images.
const SIDE: u32 = 32;
/// Heights that images get by respecification.
const HEIGHTS: [u32; 2] = [32, 20];
const THREADS: u64 = 4;
const COMMANDS: usize = 3;

struct Scene {
    add: Program,
    buffers: [Vec<Mutex<Buffer>>; 2],
    images: Vec<Image>,
    /// Shared by all threads; all resources in it have the larger size.
    set: DescriptorSet,
    /// Shared by all threads, which submit them and record them again.
    commands: Vec<CommandBuffer>,
    /// Held for writing from a respecification to the write after it, for reading by all other calls. None in rounds in
    /// which undefined contents are read.
    defined: Option<RwLock<()>>,
}

/// A stream of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % most
    }
}

impl Scene {
    /// Checks that all words are equal, if all contents are defined.
    fn alike(&self, words: &[u32]) {
        let other = words.iter().position(|word| *word != words[0]).filter(|_| self.defined.is_some());
        assert_eq!(other.map(|at| (at, words[0], words[at])), None, "words of different operations");
    }

    /// Respecifies a resource by `resize`, and gives it contents by `fill`.
    fn resize(
        &self,
        resize: impl FnOnce() -> Result<Outcome, Error>,
        fill: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _alone = self.defined.as_ref().map(|defined| defined.write().unwrap());
        resize().and_then(|_| fill())
    }
}

/// Operations on resources that another thread has mapped or destroyed are errors, and so are recording a command
/// buffer that another thread records, copies of images that have different sizes by now, and reads and writes of as
/// much as a resource had before another thread gave it another size, as they should be.
fn may_be_refused(result: Result<(), Error>) {
    if let Err(error) = result {
        let text = error.to_string();
        let sizes = [
            "source and target of a copy have the same size",
            "a level is written as a whole",
            "a range lies within its resource",
        ];
        let expected = ["mapped", "destroyed", "is being recorded"].into_iter().chain(sizes);
        assert!(expected.into_iter().any(|words| text.contains(words)), "{text}");
    }
}

/// A few commands, each of which is an operation.
fn record(
    recorder: &mut Recorder,
    scene: &Scene,
    (a, b): (&Buffer, &Buffer),
    (x, y): (&Image, &Image),
    (words, value): (usize, u32),
) -> Result<(), Error> {
    let bytes = words as u64 * 4;
    recorder.fill_range(a, 0..bytes, value)?;
    recorder.copy(a, 0, b, 0, bytes)?;
    let add = recorder.dispatch(&scene.add).bind_range(0, 0, b, 0..bytes).bind_range(0, 1, a, 0..bytes);
    add.groups([words as u32 / 64, 1, 1])?;
    match value % 4 {
        0 | 1 => recorder.dispatch(&scene.add).set(0, &scene.set).groups([SIZES[1] as u32 / 64, 1, 1]),
        2 if !std::ptr::eq(x, y) => recorder.copy_image((x, 0, 0), (y, 0, 0)),
        2 => recorder.clear_image(x, ClearColor::Uint([value; 4])),
        _ => Ok(()),
    }
}

/// One random operation.
fn act(context: &Context, scene: &Scene, random: &mut Random, maps: bool) {
    let class = random.below(SIZES.len());
    let (words, value) = (SIZES[class], random.below(1 << 20) as u32);
    let [p, q] = [(); 2].map(|()| &scene.buffers[class][random.below(3)]);
    let same = std::ptr::eq(p, q);
    let [a, b] = &[p, q].map(|buffer| buffer.lock().unwrap().clone());
    let [x, y] = [(); 2].map(|()| &scene.images[random.below(2)]);
    let map = |flags| {
        let map = match context.map(a.slice(..words as u64 * 4), flags) {
            Ok(map) => map,
            Err(error) => return may_be_refused(Err(error)),
        };
        // An error if the mapping is for writing only.
        if let Ok(words) = map.read::<u32>(0, words) {
            scene.alike(&words);
        }
        if flags.contains(MapFlags::WRITE) {
            may_be_refused(map.write(0, &vec![value; words]));
        }
        may_be_refused(map.unmap());
    };
    let operation = random.below(26);
    let resizes = matches!(operation, 18 | 20);
    let _defined = scene.defined.as_ref().filter(|_| !resizes).map(|defined| defined.read().unwrap());
    may_be_refused(match operation {
        0 | 1 => context.write(a, 0, &vec![value; words]).map(drop),
        2 => context.upload(a, &vec![value; words]).map(drop),
        3 => context.fill(a, value),
        4 | 5 if !same => context.copy(a, 0, b, 0, words as u64 * 4),
        6 | 7 if !same => context.dispatch(&scene.add).bind(0, 0, a).bind(0, 1, b).groups([words as u32 / 64, 1, 1]),
        // Threads that share a context share its slots, so all resources in them have one size.
        8 if class == 1 => context.bind((0, random.below(2) as u32), Bind::storage(a)),
        9 => {
            let groups = [SIZES[1] as u32 / 64, 1, 1];
            match context.dispatch(&scene.add).groups(groups) {
                Err(error) if error.to_string().contains("no buffer is bound") => Ok(()),
                result => result,
            }
        }
        10 if maps => {
            map(MapFlags::READ);
            Ok(())
        }
        10 => context.read(a).map(|read| scene.alike(&read[..words])),
        11 if maps => {
            let flags = [
                MapFlags::WRITE | MapFlags::DISCARD_WHOLE,
                MapFlags::WRITE | MapFlags::DISCARD_RANGE,
                MapFlags::WRITE,
                MapFlags::READ | MapFlags::WRITE,
            ];
            map(flags[random.below(4)]);
            Ok(())
        }
        12 => {
            let texels: u32 = x.level_size(0).iter().product();
            context.write_image(x, 0, 0, &vec![value; texels as usize]).map(drop)
        }
        13 if !std::ptr::eq(x, y) => context.copy_image((x, 0, 0), (y, 0, 0)),
        13 => context.clear_image(x, ClearColor::Uint([value; 4])),
        14 => context.read_image(x, 0, 0).map(|texels| scene.alike(&texels)),
        15 if value % 4 == 0 => context.buffer(words as u64 * 4).zeroed().map(|new| {
            // Other threads may be about to use the old one, and then get an error.
            std::mem::replace(&mut *p.lock().unwrap(), new).destroy();
        }),
        16 if class == 1 => scene.set.write(random.below(2) as u32, Bind::storage(a)),
        16 | 17 => context.dispatch(&scene.add).set(0, &scene.set).groups([SIZES[1] as u32 / 64, 1, 1]),
        // The contents are undefined then, and other threads read them.
        18 | 20 if is_checked() => Ok(()),
        18 => {
            let bytes = (words + BEYOND * random.below(2)) as u64 * 4;
            scene.resize(|| context.resize(a, bytes), || context.fill(a, value))
        }
        19 if !same => {
            let record = |recorder: &mut Recorder| record(recorder, scene, (a, b), (x, y), (words, value));
            context.rerecord(&scene.commands[random.below(COMMANDS)], record)
        }
        20 => {
            let size = [SIDE, HEIGHTS[random.below(2)], 1];
            scene.resize(|| context.resize_image(x, size), || context.clear_image(x, ClearColor::Uint([value; 4])))
        }
        21..=24 => context.submit(&scene.commands[random.below(COMMANDS)]).map(drop),
        _ => context.flush().map(drop),
    });
}

#[test]
fn whatever_threads_do_at_once_each_operation_is_whole() {
    // The number of rounds: `STORM=100` runs a hundred.
    let times: usize = std::env::var("STORM").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    for round in 0..times as u64 {
        let buffers: [Vec<Mutex<Buffer>>; 2] =
            SIZES.map(|words| (0..3).map(|_| Mutex::new(context.buffer(words as u64 * 4).zeroed().unwrap())).collect());
        let image = || {
            let image = context.image(vk::Format::R32_UINT, [SIDE, HEIGHTS[0], 1]).build().unwrap();
            context.clear_image(&image, ClearColor::Uint([0; 4])).unwrap();
            image
        };
        let add = context.program_wgsl(ADD).unwrap();
        let set = context.descriptor_set(&add, 0).updatable();
        let set = set.bind(0, &buffers[1][0].lock().unwrap()).bind(1, &buffers[1][1].lock().unwrap()).build().unwrap();
        let commands = (0..COMMANDS).map(|_| context.record(|_| Ok(())).unwrap()).collect();
        let defined = (round / 2 % 2 == 0).then(RwLock::default);
        let scene = Scene { add, buffers, images: (0..2).map(|_| image()).collect(), set, commands, defined };
        std::thread::scope(|scope| {
            for thread in 1..=THREADS {
                // Half of them share a context.
                let (own, scene) = (if thread % 2 == 0 { context.sibling() } else { context.clone() }, &scene);
                scope.spawn(move || {
                    let mut random = Random((round * THREADS + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    // A mapped resource may be half written, and `read` is allowed meanwhile; only other mappings are
                    // not.
                    (0..1500).for_each(|_| act(&own, scene, &mut random, round % 2 == 0));
                });
            }
        });
        for slot in [(0, 0), (0, 1)] {
            context.unbind(slot).unwrap();
        }
        drop(scene);
        context.finish().unwrap();
        assert_eq!(context.stats().objects_alive(), 0, "round {round}");
    }
    let stats = context.stats();
    assert!(stats.renames > 10 && stats.bytes_staged > 0 && stats.context_waits > 0, "{stats}");
    assert!(
        (stats.resizes > 10 || is_checked()) && stats.commands_reused > 0 && stats.commands_rerecorded > 0,
        "{stats}"
    );
}
