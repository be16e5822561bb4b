//! Frames that are larger than the stack of the thread that runs a kernel.

use std::cell::Cell;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::thread::Builder;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::x86::{Isa, MachineCode, compile};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::host::Host;

use super::{buffer, engines, head, parse, words};

/// Loads `rows` rows, asks for the time, and stores all of them, last row first: they are alive together.
fn reversal(rows: u32, isa: Isa) -> MachineCode {
    let mut text = head(1).replace("descriptors 1\n", "descriptors 1\ncalls 128\n");
    text += "    v5 = const.mask 0xffff\n    v6 = context calls\n";
    for row in 0..rows {
        let (at, index) = (2000 + row, 2000 + rows + row);
        let _ = writeln!(text, "    v{index} = const.s32 {}\n    v{at} = load_row v0 + v{index} if < v1", row * 16);
    }
    text += "    call.clock v6 mask v5\n";
    for row in 0..rows {
        let _ = writeln!(text, "    store_row v0 + v{} if < v1, v{} mask v5", 2000 + rows + row, 2000 + rows - 1 - row);
    }
    compile(&parse(&(text + "    return\n")), isa).expect("code")
}

fn before(rows: u32) -> Vec<u32> {
    (0..rows * 16).collect()
}

fn reversed(rows: u32) -> Vec<u32> {
    (0..rows).rev().flat_map(|row| (0..16).map(move |lane| row * 16 + lane)).collect()
}

fn run(program: &MachineCode, slice: GuestSlice, scratch: &mut Scratch) {
    let (push, stop) = ([0; MAX_PUSH_BYTES], AtomicU32::new(0));
    let args = DispatchArgs { buffers: &[slice], push: &push, images: &[], num_workgroups: [1; 3], stop: &stop };
    assert_eq!(program.run(&args, [0; 3], scratch), Outcome::Done);
}

thread_local! {
    /// Where the last clock was on its thread's stack.
    static CLOCK: Cell<usize> = const { Cell::new(0) };
}

/// A clock that looks where it is. Its frame is aligned, or this ends the process.
fn clock() -> u64 {
    #[repr(align(64))]
    struct Line([u8; 64]);
    let here = std::hint::black_box(Line([1; 64]));
    CLOCK.set((&raw const here).addr());
    here.0.iter().map(|&byte| u64::from(byte)).sum()
}

fn scratch() -> Scratch {
    Scratch { host: Host { clock, ..Host::default() }, ..Scratch::default() }
}

#[test]
fn a_large_frame_does_not_need_the_callers_stack() {
    for isa in engines() {
        // The longest takes its time to compile: one instruction set stands for both.
        let rows = if isa == Isa::Avx512 { vec![1500, 4500, 18_000] } else { vec![1500, 4500] };
        for rows in rows {
            let program = reversal(rows, isa);
            let bytes = program.spills().slots * 8;
            assert!(bytes > rows as usize * 48, "{isa:?}: {bytes} bytes");
            let slice = buffer(&before(rows));
            let small = Builder::new().stack_size(64 << 10);
            small.spawn(move || run(&program, slice, &mut scratch())).unwrap().join().unwrap();
            assert!(words(slice) == reversed(rows), "{isa:?}");
        }
    }
}

#[test]
fn frames_of_all_sizes_are_kept_over_calls() {
    for isa in engines() {
        let mut scratch = scratch();
        for rows in (1..130).chain([300, 500, 1000]) {
            let slice = buffer(&before(rows));
            run(&reversal(rows, isa), slice, &mut scratch);
            assert_eq!(words(slice), reversed(rows), "{isa:?}: {rows} rows");
        }
    }
}

#[test]
fn a_dispatch_with_a_large_frame_starts_and_maps_nothing_and_calls_on_its_thread() {
    for isa in engines() {
        // As large as the frame of a kernel of some thousand instructions.
        let (small, large) = (reversal(8, isa), reversal(800, isa));
        assert!(large.spills().slots * 8 > 40 << 10, "{:?}", large.spills());
        let slice = buffer(&before(800));
        let mut scratch = scratch();
        run(&small, slice, &mut scratch);
        assert_eq!(scratch.stack.bytes(), 0, "small frames are on the caller's stack");
        run(&large, slice, &mut scratch);
        let (bytes, capacity) = (scratch.stack.bytes(), scratch.words.capacity());
        assert!((40 << 10..512 << 10).contains(&bytes), "{bytes} bytes of stack");
        for _ in 0..100 {
            CLOCK.set(0);
            run(&large, slice, &mut scratch);
            // Set by this thread, within some pages of here: on the stack of the caller.
            let here = 0u8;
            let distance = (&raw const here).addr().abs_diff(CLOCK.get());
            assert!(distance < 32 << 10, "{distance} bytes away");
            assert_eq!((scratch.stack.bytes(), scratch.words.capacity()), (bytes, capacity));
        }
    }
}

#[test]
fn a_panic_in_a_call_comes_out_of_the_kernel_at_once() {
    fn broken() -> u64 {
        panic!("no time")
    }
    for isa in engines() {
        for rows in [8, 800] {
            let (program, slice) = (reversal(rows, isa), buffer(&before(rows)));
            let mut scratch = Scratch { host: Host { clock: broken, ..Host::default() }, ..Scratch::default() };
            let panic = catch_unwind(AssertUnwindSafe(|| run(&program, slice, &mut scratch))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"no time"));
            assert_eq!(words(slice), before(rows), "what follows the call was not done");
            scratch.host.clock = clock;
            run(&program, slice, &mut scratch);
            assert_eq!(words(slice), reversed(rows), "{isa:?}");
        }
    }
}
