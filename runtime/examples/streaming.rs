//! New data for every dispatch through one buffer: the host never waits for the previous dispatch, since uploads
//! alternate between a few storages of the buffer. With a file name as argument it writes the timeline there.

#![allow(clippy::print_stdout)] // an example shows its result

use spelter::{Bind, Context};

const SUM: &str = "
    @group(0) @binding(0) var<storage, read> frame: array<u32>;
    @group(0) @binding(1) var<storage, read_write> total: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        // Busy work, to make the kernel slow.
        var value = frame[id.x];
        for (var i = 0u; i < 200u; i++) { value = value * 5u + 1u; }
        for (var i = 0u; i < 200u; i++) { value = (value - 1u) * 0xcccccccdu; }
        total[id.x] += value;
    }";

const WORDS: usize = 1 << 18;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timeline = std::env::args().nth(1);
    let context = Context::builder().trace(timeline.is_some()).build()?;
    let program = context.program_wgsl(SUM)?;
    let frame = context.buffer(WORDS as u64 * 4).label("frame").build()?;
    let total = context.buffer(WORDS as u64 * 4).label("total").zeroed()?;
    // Bound once: the tracker rebinds `frame` whenever it gets new storage.
    context.bind((0, 0), Bind::storage(&frame))?;
    context.bind((0, 1), Bind::storage(&total))?;
    for number in 1..=100u32 {
        context.upload(&frame, &vec![number; WORDS])?;
        context.dispatch(&program).invocations([WORDS as u32, 1, 1])?;
        context.flush()?;
    }
    println!("total {}", context.read::<u32>(&total)?[0]); // 5050
    let stats = context.stats();
    println!("{} renames, {} of them in storage used before", stats.renames, stats.objects_recycled);
    println!("{} waits", stats.stalls_taken);
    if let Some(path) = timeline {
        context.write_trace(&mut std::io::BufWriter::new(std::fs::File::create(path)?))?;
    }
    Ok(())
}
