//! Frames that are larger than the stack of the thread that runs a kernel.

use std::fmt::Write as _;
use std::thread::Builder;

use spelter_shaders::abi::Outcome;
use spelter_shaders::back::x86::compile;

use super::{buffer, engines, head, parse, run_program, words};

const ROWS: u32 = 1500;

#[test]
fn a_large_frame_does_not_need_the_callers_stack() {
    // All rows are loaded before the first is stored, last row first.
    let mut text = format!("{}    v5 = const.mask 0xffff\n", head(1));
    for row in 0..ROWS {
        let (at, index) = (2000 + row, 2000 + ROWS + row);
        let _ = writeln!(text, "    v{index} = const.s32 {}\n    v{at} = load_row v0 + v{index} if < v1", row * 16);
    }
    for row in 0..ROWS {
        let _ = writeln!(text, "    store_row v0 + v{} if < v1, v{} mask v5", 2000 + ROWS + row, 2000 + ROWS - 1 - row);
    }
    text += "    return\n";
    let expected: Vec<u32> = (0..ROWS).rev().flat_map(|row| (0..16).map(move |lane| row * 16 + lane)).collect();
    for isa in engines() {
        let program = compile(&parse(&text), isa).unwrap();
        assert!(program.spills().slots * 8 > 64 << 10, "{isa:?}: {:?}", program.spills());
        let slice = buffer(&(0..ROWS * 16).collect::<Vec<_>>());
        let small = Builder::new().stack_size(64 << 10);
        let run = move || run_program(&program, &[slice], [0; 3], false);
        assert_eq!(small.spawn(run).unwrap().join().unwrap(), Outcome::Done);
        assert_eq!(words(slice), expected, "{isa:?}");
    }
}
