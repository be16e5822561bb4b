//! Two images as ping-pong targets: each step reads one and writes the other. Heat spreads from a corner. The bindings
//! change with every dispatch; the tracker inserts the barriers.

#![allow(clippy::print_stdout)] // an example shows its result

use spelter::{Bind, Context, vk};

const SPREAD: &str = "
    @group(0) @binding(0) var before: texture_2d<f32>;
    @group(0) @binding(1) var after: texture_storage_2d<r32float, write>;
    @compute @workgroup_size(8, 8)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        let size = vec2<i32>(textureDimensions(before));
        let at = vec2<i32>(id.xy);
        if any(at >= size) { return; }
        var sum = 0.0;
        for (var y = -1; y <= 1; y++) {
            for (var x = -1; x <= 1; x++) {
                sum += textureLoad(before, clamp(at + vec2(x, y), vec2(0), size - 1), 0).x;
            }
        }
        textureStore(after, at, vec4(sum / 9.0, 0.0, 0.0, 0.0));
    }";

const SIZE: u32 = 16;

fn main() -> Result<(), spelter::Error> {
    let context = Context::new()?;
    let program = context.program_wgsl(SPREAD)?;
    let image = |label| context.image(vk::Format::R32_SFLOAT, [SIZE, SIZE, 1]).label(label).build();
    let images = [image("ping")?, image("pong")?];
    let mut hot = vec![0.0f32; (SIZE * SIZE) as usize];
    hot[0] = 1000.0;
    context.write_image(&images[0], 0, 0, &hot)?;
    for step in 0..20 {
        let (before, after) = (&images[step % 2], &images[(step + 1) % 2]);
        context.bind((0, 0), Bind::sampled(before))?;
        context.bind((0, 1), Bind::storage_image(after))?;
        context.dispatch(&program).invocations([SIZE, SIZE, 1])?;
    }
    let warm: Vec<f32> = context.read_image(&images[0], 0, 0)?;
    for row in warm.chunks(SIZE as usize).step_by(3) {
        println!("{}", row.iter().step_by(3).map(|heat| format!("{heat:7.3}")).collect::<String>());
    }
    // Two states alternate, so two descriptor sets suffice.
    println!("{} descriptor sets, {} barriers", context.stats().sets_allocated, context.stats().barriers);
    Ok(())
}
