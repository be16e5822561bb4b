//! Results without waiting: reads into slices, reads that are started and collected later, fences as futures and with
//! callbacks.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{self, Poll, Wake};
use std::time::Duration;

use spelter::{ClearColor, Context, Error, vk};

/// An executor for one future: the thread sleeps until it is woken.
#[derive(Default)]
struct Sleeper {
    woken: Mutex<bool>,
    called: Condvar,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.called.notify_all();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, sleeper) = (pin!(future), Arc::new(Sleeper::default()));
    let waker = Arc::clone(&sleeper).into();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
            return output;
        }
        let mut woken = sleeper.woken.lock().unwrap();
        while !std::mem::take(&mut *woken) {
            woken = sleeper.called.wait(woken).unwrap();
        }
    }
}

/// Long enough that a fence is seldom done when it is first asked.
const SLOW: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        var value = data[id.x];
        for (var i = 0u; i < 20000u; i++) { value = value * 5u + 1u; }
        for (var i = 0u; i < 20000u; i++) { value = (value - 1u) * 0xcccccccdu; }
        data[id.x] = value + 1u;
    }";

#[test]
fn slices_get_the_values_of_finished_commands() {
    let context = Context::new().unwrap();
    let buffer = context.buffer_zeroed(1 << 16).unwrap();
    context.fill(&buffer, 7).unwrap();
    let mut words = vec![0u32; 1 << 14];
    context.read_into(&buffer, 0, &mut words).unwrap();
    assert!(words.iter().all(|word| *word == 7));
    let mut odd = [0u8; 5];
    context.write(&buffer, 2, &[1u8, 2, 3]).unwrap();
    context.read_into(&buffer, 1, &mut odd).unwrap();
    assert_eq!(odd, [0, 1, 2, 3, 0]);
    context.read_into::<u32>(&buffer, 1 << 16, &mut []).unwrap();
    context.read_into(&buffer, 0, &mut [(); 3]).unwrap();
    // Values larger than the piece in which reads are converted.
    let large = context.read::<[u64; 4096]>(&context.buffer_zeroed(3 * 32_768).unwrap()).unwrap();
    assert_eq!(large, vec![[0; 4096]; 3]);
    let image = context.image(vk::Format::R8G8B8A8_UNORM, [3, 2, 1]).build().unwrap();
    context.write_image(&image, 0, 0, &[[1u8, 2, 3, 4]; 6]).unwrap();
    let mut texels = [0u32; 6];
    context.read_image_into(&image, 0, 0, &mut texels).unwrap();
    assert_eq!(texels, [0x0403_0201; 6]);
}

/// Levels are converted in pieces, whose ends lie within rows. Values may be parts of a row, or of several rows.
#[test]
fn lists_have_the_texels_of_levels_that_are_larger_than_a_piece() {
    let context = Context::new().unwrap();
    for (size, layers) in [([301, 70, 1], 2), ([33, 21, 9], 1)] {
        let image = context.image(vk::Format::R32_UINT, size).levels(2).layers(layers).build().unwrap();
        for (level, layer) in [(0, layers - 1), (1, 0)] {
            let count: u32 = image.level_size(level).into_iter().product();
            let texels: Vec<u32> = (0..count).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
            context.write_image(&image, level, layer, &texels).unwrap();
            assert_eq!(context.read_image::<u32>(&image, level, layer).unwrap(), texels, "{size:?}, level {level}");
            let bytes: Vec<u8> = texels.iter().flat_map(|texel| texel.to_le_bytes()).collect();
            assert_eq!(context.read_image::<u8>(&image, level, layer).unwrap(), bytes, "{size:?}, level {level}");
        }
        // 301 * 70 and 33 * 21 * 9 texels.
        let sevens = context.read_image::<[u32; 7]>(&image, 0, layers - 1).unwrap();
        assert_eq!(sevens.concat(), context.read_image::<u32>(&image, 0, layers - 1).unwrap(), "{size:?}");
    }
}

#[test]
fn reads_that_were_started_have_the_values_of_then() {
    let context = Context::builder().workers(1).build().unwrap();
    let (program, data) = (context.program_wgsl(SLOW).unwrap(), context.buffer_zeroed(64 * 4).unwrap());
    let mut reads = Vec::new();
    for _ in 0..4 {
        context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1]).unwrap();
        reads.push(context.start_read::<u32>(data.slice(..16)).unwrap());
    }
    data.destroy();
    for (frame, read) in (1u32..).zip(reads) {
        assert_eq!(read.len(), 4);
        match frame {
            1 => assert_eq!(block_on(read).unwrap(), [frame; 4]),
            2 => {
                let mut values = [0; 4];
                read.finish_into(&mut values).unwrap();
                assert_eq!(values, [frame; 4]);
            }
            3 => drop(read),
            _ => {
                assert!(read.fence().wait_for(Duration::from_secs(60)).unwrap());
                assert_eq!(read.finish().unwrap(), [frame; 4]);
            }
        }
    }
}

/// So have reads of images, of one level of one layer, whatever happens to the image after that.
#[test]
fn reads_of_images_that_were_started_have_the_texels_of_then() {
    let context = Context::builder().workers(1).build().unwrap();
    let image = context.image(vk::Format::R32_UINT, [301, 5, 1]).levels(2).layers(2).label("frame").build().unwrap();
    let texels: Vec<u32> = (0..150 * 2).collect();
    let mut reads = Vec::new();
    for frame in 0..3u32 {
        context.clear_image(&image, ClearColor::Uint([frame, 0, 0, 0])).unwrap();
        context.write_image(&image, 1, 1, &texels).unwrap();
        reads.push(context.start_read_image::<u32>(&image, 0, 1).unwrap());
    }
    let (small, bytes) =
        (context.start_read_image::<u32>(&image, 1, 1).unwrap(), context.start_read_image::<u8>(&image, 1, 1).unwrap());
    context.resize_image(&image, [4, 4, 1]).unwrap();
    context.clear_image(&image, ClearColor::Uint([9; 4])).unwrap();
    for (frame, read) in (0u32..).zip(reads) {
        assert_eq!(read.len(), 301 * 5);
        assert_eq!(block_on(read).unwrap(), vec![frame; 301 * 5]);
    }
    let mut values = vec![0; 150 * 2];
    small.finish_into(&mut values).unwrap();
    assert_eq!(values, texels);
    assert_eq!(bytes.finish().unwrap().len(), 150 * 2 * 4);
    assert_eq!(context.start_read_image::<u32>(&image, 0, 0).unwrap().finish().unwrap(), [9; 16]);
    // The errors are those of `read_image`.
    let pairs = [
        (
            context.start_read_image::<f32>(&image, 0, 0).unwrap_err().to_string(),
            context.read_image::<f32>(&image, 0, 0).unwrap_err().to_string(),
        ),
        (
            context.start_read_image::<[u32; 3]>(&image, 0, 0).unwrap_err().to_string(),
            context.read_image::<[u32; 3]>(&image, 0, 0).unwrap_err().to_string(),
        ),
        (
            context.start_read_image::<u32>(&image, 2, 0).unwrap_err().to_string(),
            context.read_image::<u32>(&image, 2, 0).unwrap_err().to_string(),
        ),
    ];
    pairs.iter().for_each(|(started, read)| assert_eq!(started, read));
    image.destroy();
    let error = context.start_read_image::<u32>(&image, 0, 0).unwrap_err().to_string();
    assert!(error.starts_with("read: image `frame` of 4x4x1 R32_UINT is destroyed"), "{error}");
}

#[test]
fn fences_wake_tasks_and_call_functions() {
    let context = Context::builder().workers(1).build().unwrap();
    let (program, data) = (context.program_wgsl(SLOW).unwrap(), context.buffer_zeroed(64 * 4).unwrap());
    let (send, calls) = channel();
    for number in 1..=3u32 {
        context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1]).unwrap();
        let (fence, send, other, data) = (context.flush().unwrap(), send.clone(), context.sibling(), data.clone());
        // The function may use the crate; a panic is no reason not to call the others.
        let call = move |result: Result<(), Error>| {
            send.send((number, result, other.read::<u32>(&data).unwrap()[0])).unwrap();
            assert!(number != 2, "a panic of a callback");
        };
        fence.on_done(call).unwrap();
        block_on(fence.clone()).unwrap();
        assert!(fence.is_done());
        block_on(fence).unwrap();
    }
    drop(send);
    let mut calls: Vec<_> = calls.iter().collect();
    calls.sort_by_key(|call| call.0);
    assert_eq!(calls.iter().map(|call| (call.0, call.1.clone())).collect::<Vec<_>>(), [1, 2, 3].map(|n| (n, Ok(()))));
    assert!(calls.iter().all(|(number, _, value)| value >= number), "{calls:?}");
}

/// A task that gave up does not keep others from being woken.
#[test]
fn tasks_may_give_up() {
    let context = Context::builder().workers(1).build().unwrap();
    let (program, data) = (context.program_wgsl(SLOW).unwrap(), context.buffer_zeroed(64 * 4).unwrap());
    context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1]).unwrap();
    let fence = context.flush().unwrap();
    for _ in 0..100 {
        let mut task = fence.clone();
        let _ = pin!(&mut task).poll(&mut task::Context::from_waker(task::Waker::noop()));
    }
    block_on(fence).unwrap();
    assert_eq!(context.read::<u32>(&data).unwrap(), [1; 64]);
}

#[test]
fn a_lost_device_ends_all_waits() {
    let context = Context::builder().workers(1).time_limit(Duration::from_millis(100)).build().unwrap();
    let text = "@group(0) @binding(0) var<storage, read_write> stop: atomic<u32>;
        @compute @workgroup_size(1) fn main() { while atomicLoad(&stop) == 0u { } }";
    let (program, stop) = (context.program_wgsl(text).unwrap(), context.buffer_zeroed(4).unwrap());
    context.dispatch(&program).bind(0, 0, &stop).groups([1, 1, 1]).unwrap();
    let read = context.start_read::<u32>(&stop).unwrap();
    let (fence, (send, called)) = (read.fence().clone(), channel());
    fence.on_done(move |result| send.send(result).unwrap()).unwrap();
    assert!(matches!(block_on(fence), Err(Error::DeviceLost(_))));
    assert!(matches!(called.recv().unwrap(), Err(Error::DeviceLost(_))));
    assert!(matches!(block_on(read), Err(Error::DeviceLost(_))));
}
