//! The text form of programs: a script of a line for each step.
//!
//! ```text
//! x0 = copy a b; barrier COPY:TRANSFER_WRITE -> CLEAR:TRANSFER_WRITE on b:0..128 + HOST -> CLEAR
//! submit q0 wait t0=1@COPY run x0 signal b0 fence f0
//! wait f0
//! read a:0..64
//! fill b
//! ```
//!
//! A line that is no step is a command of one more command buffer, which is submitted to queue 0 before the next step.

use spelter_driver::vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};

/// Stages of this device, and one that its queues do not have.
pub(super) const STAGES: [(&str, Stage); 15] = [
    ("NONE", Stage::NONE),
    ("TOP_OF_PIPE", Stage::TOP_OF_PIPE),
    ("BOTTOM_OF_PIPE", Stage::BOTTOM_OF_PIPE),
    ("ALL_COMMANDS", Stage::ALL_COMMANDS),
    ("ALL_TRANSFER", Stage::ALL_TRANSFER),
    ("COPY", Stage::COPY),
    ("CLEAR", Stage::CLEAR),
    ("DRAW_INDIRECT", Stage::DRAW_INDIRECT),
    ("COMPUTE_SHADER", Stage::COMPUTE_SHADER),
    ("HOST", Stage::HOST),
    ("VERTEX_SHADER", Stage::VERTEX_SHADER),
    ("FRAGMENT_SHADER", Stage::FRAGMENT_SHADER),
    ("ALL_GRAPHICS", Stage::ALL_GRAPHICS),
    ("BLIT", Stage::BLIT),
    ("RESOLVE", Stage::RESOLVE),
];

/// Accesses.
pub(super) const ACCESSES: [(&str, Access); 14] = [
    ("NONE", Access::NONE),
    ("MEMORY_READ", Access::MEMORY_READ),
    ("MEMORY_WRITE", Access::MEMORY_WRITE),
    ("INDIRECT_COMMAND_READ", Access::INDIRECT_COMMAND_READ),
    ("UNIFORM_READ", Access::UNIFORM_READ),
    ("SHADER_READ", Access::SHADER_READ),
    ("SHADER_WRITE", Access::SHADER_WRITE),
    ("SHADER_SAMPLED_READ", Access::SHADER_SAMPLED_READ),
    ("SHADER_STORAGE_READ", Access::SHADER_STORAGE_READ),
    ("SHADER_STORAGE_WRITE", Access::SHADER_STORAGE_WRITE),
    ("TRANSFER_READ", Access::TRANSFER_READ),
    ("TRANSFER_WRITE", Access::TRANSFER_WRITE),
    ("HOST_READ", Access::HOST_READ),
    ("HOST_WRITE", Access::HOST_WRITE),
];

#[cfg(test)]
mod tests {
    use crate::commands::Program;

    #[test]
    fn what_is_printed_is_read_again() {
        let text = "\
x0 = copy a:0..128 b:128..256; barrier COPY:TRANSFER_READ|TRANSFER_WRITE -> CLEAR on b + HOST -> NONE transition i.1
secondary x1 = clear i; copy i.0q0 j.1q3; copy a k.0; move c d; base write e:16..32; set e3 COPY -> CLEAR
x2 = execute x1; wait e3 COPY -> CLEAR; append a b
submit q1 wait t0=3@COPY b1 run x0 x2 signal t0=4 fence f2
host wait f2
host wait t0=4
host signal t1=9
host idle
host read a:0..4
host write h
";
        assert_eq!(Program::parse(text.lines()).unwrap().to_string(), text);
    }

    #[test]
    fn commands_between_steps_are_a_command_buffer() {
        let program = Program::parse("fill a\nread a\nhost idle\nfill b".lines()).unwrap();
        let expected = "x0 = fill a; read a\nx1 = fill b\nsubmit q0 run x0\nhost idle\nsubmit q0 run x1\n";
        assert_eq!(program.to_string(), expected);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |text: &str| Program::parse(text.lines()).unwrap_err();
        assert_eq!(error("fill z"), "expected a buffer or an image, found `z`");
        assert_eq!(error("fill a:8..4"), "expected a range of a buffer, found `a:8..4`");
        assert_eq!(error("barrier COPY:READ -> CLEAR"), "expected a flag, found `READ`");
        assert_eq!(error("copy i j.0"), "expected parts of one size, found `copy i j.0`");
        assert_eq!(error("submit q0 run x0"), "expected a command buffer, found `x0`");
        assert_eq!(error("jump"), "expected a command, found `jump`");
    }
}
