//! Several threads on one device, each with its own context: they share their input, and one thread reads all results.

#![allow(clippy::print_stdout)] // an example shows its result

use spelter::{Context, Error};

const POWERS: &str = "
    var<immediate> exponent: u32;
    @group(0) @binding(0) var<storage, read> base: array<u32>;
    @group(0) @binding(1) var<storage, read_write> result: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x >= arrayLength(&result) { return; }
        var power = 1u;
        for (var i = 0u; i < exponent; i++) { power *= base[id.x]; }
        result[id.x] = power;
    }";

fn main() -> Result<(), Error> {
    let context = Context::new()?;
    let program = context.program_wgsl(POWERS)?;
    let base = context.buffer_from(&[1u32, 2, 3, 4, 5])?;
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u32)
            .map(|exponent| {
                let (context, program, base) = (context.sibling(), &program, &base);
                scope.spawn(move || {
                    let result = context.buffer(base.size()).label(format!("powers of {exponent}")).build()?;
                    let dispatch = context.dispatch(program).bind(0, 0, base).bind(0, 1, &result);
                    dispatch.push(&exponent).invocations([5, 1, 1])?;
                    Ok(result) // recorded; a read executes it
                })
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("no thread panics");
        threads.into_iter().map(join).collect::<Result<Vec<_>, Error>>()
    })?;
    for result in &results {
        println!("{} {:?}", result.label().unwrap_or_default(), context.read::<u32>(result)?);
    }
    Ok(())
}
