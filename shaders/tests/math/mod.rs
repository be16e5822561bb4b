//! Kernels after `lower::math`: every operation becomes basic ones, and computes what it did, exactly or within its
//! bound.
//!
//! Lowered kernels run in the interpreter; references are the operations' own functions or the platform's mathematics
//! in double precision.

mod control;
mod errors;
mod exact;
mod input;
mod report;

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::{Code, Scratch, interp::Program};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::op::{is_basic, works_on_exponents};
use spelter_shaders::ir::{InstData, Kernel, Op, Type, verify};
use spelter_shaders::lower::math::{MathOptions, run};

/// What differential tests use.
const EXACT: MathOptions = MathOptions { fast_inverse_sqrt: false, exponents: false };

/// The same, with operations on exponents.
const ON_EXPONENTS: MathOptions = MathOptions { exponents: true, ..EXACT };

/// Invocations in the workgroup of [`text_of`].
const LANES: usize = 1024;

/// A kernel that applies `op` to words of a buffer: `LANES` first operands, then the second ones, ..., then results.
fn text_of(op: Op) -> String {
    let bytes = LANES * 4;
    let mut text = format!(
        "kernel \"k\" {LANES}, 1, 1\nbinding0 = storage 0.0[1] 0\nblock0:
        v0 = const.i32 0\n v1 = buffer binding0[v0]\n v2 = builtin local_invocation_index.0\n"
    );
    let mut names = Vec::new();
    for (place, &ty) in op.params().iter().enumerate() {
        let [base, offset, value, word] = [10, 20, 30, 40].map(|first| first + place);
        text += &format!(" v{base} = const.i32 {}\n v{offset} = element v{base}, v2 * 4\n", place * bytes);
        match ty {
            Type::Bool => {
                text += &format!(" v{word} = load.i32 storage v1 + v{offset}\n v{value} = ine v{word}, v0\n");
            }
            _ => text += &format!(" v{value} = load.{ty} storage v1 + v{offset}\n"),
        }
        names.push(format!("v{value}"));
    }
    let result = if op.result() == Type::Bool { "v5 = bool_to_int v4\n" } else { "" };
    let stored = if op.result() == Type::Bool { "v5" } else { "v4" };
    text + &format!(
        " v4 = {} {}\n {result} v6 = const.i32 {}\n v7 = element v6, v2 * 4\n store storage v1 + v7, {stored}\n return",
        op.name(),
        names.join(", "),
        op.params().len() * bytes
    )
}

fn parse(text: &str) -> Kernel {
    let kernel = Kernel::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

/// Lowers, and holds the result against the verifier and the promise.
#[track_caller]
fn lowered(mut kernel: Kernel, options: MathOptions) -> Kernel {
    run(&mut kernel, options);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    for data in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts).map(|&inst| &kernel.insts[inst]) {
        let stays = |op| is_basic(op) || options.exponents && works_on_exponents(op);
        assert!(!matches!(data, InstData::Pure { op, .. } if !stays(*op)), "`{data}` is left\n{kernel}");
    }
    kernel
}

/// A lowered kernel of one operation, ready to be given operands.
struct Runner {
    program: Program,
    buffer: GuestSlice,
    operands: usize,
}

impl Runner {
    fn new(op: Op) -> Self {
        Self::of_text(&text_of(op), op.params().len(), EXACT)
    }

    /// Of a kernel with the operands and the result where [`text_of`] has them.
    fn of_text(text: &str, operands: usize, options: MathOptions) -> Self {
        let program = Program::new(&lowered(parse(text), options));
        Self { program, operands, buffer: GuestSlice::leak(LANES * 4 * (operands + 1)) }
    }

    /// Results for any number of operand tuples.
    fn apply(&self, inputs: &[Vec<u32>]) -> Vec<u32> {
        let at = |row: usize, lane: usize| (row * LANES + lane) as u64 * 4;
        let mut results = Vec::with_capacity(inputs.len());
        for part in inputs.chunks(LANES) {
            for (lane, operands) in part.iter().enumerate() {
                operands.iter().enumerate().for_each(|(row, &word)| self.buffer.store_u32(at(row, lane), word));
            }
            run_on(&self.program, self.buffer);
            results.extend((0..part.len()).map(|lane| self.buffer.load_u32(at(self.operands, lane))));
        }
        results
    }
}

fn run_on(program: &Program, buffer: GuestSlice) {
    let (push, stop) = ([0; MAX_PUSH_BYTES], AtomicU32::new(0));
    let args = DispatchArgs { buffers: &[buffer], push: &push, images: &[], num_workgroups: [1; 3], stop: &stop };
    assert_eq!(program.run(&args, [0; 3], &mut Scratch::default()), Outcome::Done);
}

#[test]
fn every_operation_becomes_basic_ones() {
    for &op in Op::ALL {
        for options in [EXACT, ON_EXPONENTS, MathOptions { fast_inverse_sqrt: true, ..EXACT }] {
            lowered(parse(&text_of(op)), options);
        }
    }
}

#[test]
fn inverse_sqrt_stays_where_the_machine_has_one() {
    let has = |options| lowered(parse(&text_of(Op::InverseSqrt)), options).to_string().contains("inverse_sqrt");
    assert!(has(MathOptions { fast_inverse_sqrt: true, ..EXACT }));
    assert!(!has(EXACT));
}
