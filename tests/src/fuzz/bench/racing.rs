//! Programs that run while another thread writes random data to their buffers, on scratch memory with random contents:
//! their results are undefined, but they must end and stay inside their buffers.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::guest::GuestSlice;

use super::{Bench, Finding, Image, Program, caught, dispatch, finding};

/// Runs per program.
const RUNS: u32 = 6;

/// When a run is stopped: the random data may have made its loops endless.
const STOP_AFTER: Duration = Duration::from_millis(20);

/// Words after a program's scratch memory that must stay unchanged.
const AFTER: usize = 1 << 13;

/// Random words, among them many boundary values of indices and counters.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn word(&mut self) -> u32 {
        let bits = self.next();
        let any = (bits >> 32) as u32;
        match bits % 8 {
            0 => 0,
            1 => any % 64,
            2 => u32::MAX - any % 64,
            3 => 1 << (any % 32),
            4 => any & 0x3fff_ffff,
            _ => any,
        }
    }
}

impl Bench {
    /// Runs the program on every engine that lowers kernels, racing.
    pub(super) fn check_racing(&mut self, program: &Program) -> Result<(), Finding> {
        let image = Image::new(program);
        let last = super::lowered(&program.kernel, super::FLOATS)?;
        for engine in self.engines.clone() {
            let Some(of_lowered) = engine.of_lowered else { continue };
            let code = caught(engine.name, "panics when it prepares", || of_lowered(&last))?;
            let mut needed = 0;
            for run in 0..RUNS {
                self.load(&image);
                let mut words = Words(0x9e37_79b9_7f4a_7c15 ^ u64::from(run) << 32);
                // The first run measures the program's need.
                let dirty = if run == 0 { 0 } else { needed + AFTER };
                let mut scratch = Scratch {
                    words: std::iter::repeat_with(|| words.next()).take(dirty).collect(),
                    ..Scratch::default()
                };
                let after = scratch.words[needed.min(dirty)..].to_vec();
                let mut buffers = image.buffers(self.arena);
                let images = program.images(&mut buffers);
                let mut push = [0; MAX_PUSH_BYTES];
                push.fill_with(|| words.next() as u8);
                let stop = AtomicU32::new(0);
                let args = DispatchArgs {
                    buffers: &buffers,
                    images: &images,
                    push: &push,
                    num_workgroups: program.groups,
                    stop: &stop,
                };
                let done = AtomicU32::new(0);
                std::thread::scope(|scope| {
                    scope.spawn(|| scribble(&buffers, &mut words, &stop, &done));
                    let outcome =
                        caught(engine.name, "panics when it runs", || dispatch(&*code, &args, program, &mut scratch));
                    done.store(1, Relaxed);
                    outcome
                })?;
                if run == 0 {
                    needed = scratch.words.len();
                } else if scratch.words[needed..] != after[..] {
                    return Err(finding(&format!("{}: writes past its scratch memory in a race", engine.name), ""));
                }
                let mut memory = vec![0; image.bytes.len()];
                self.arena.read(0, &mut memory);
                if let Some(at) = image.outside().find(|&at| memory[at] != image.bytes[at]) {
                    return Err(finding(
                        &format!("{}: writes out of bounds in a race", engine.name),
                        format!("byte {at}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Writes random words to random places until the program ends; stops it if it takes too long.
fn scribble(buffers: &[GuestSlice], words: &mut Words, stop: &AtomicU32, done: &AtomicU32) {
    let start = Instant::now();
    while done.load(Relaxed) == 0 {
        for _ in 0..64 {
            let (which, at) = (words.next() as usize, words.next());
            let Some(buffer) = buffers.get(which % buffers.len().max(1)) else { break };
            let count = buffer.len() / 4;
            if count > 0 {
                buffer.store_u32(at % count * 4, words.word());
            }
        }
        if start.elapsed() > STOP_AFTER {
            stop.store(1, Relaxed);
        }
    }
}
