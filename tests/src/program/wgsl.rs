//! A program as WGSL text, with `s` and the counters in variables.

use super::{Block, Gather, SELECTORS, Statement, Switch};

/// A module that stores the results of 24 invocations.
pub fn write(program: &Block) -> String {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
var<private> t: u32;
@compute @workgroup_size(24)
fn main(@builtin(local_invocation_index) index: u32) {
    out[index] = program(index) + t;
}
fn program(index: u32) -> u32 {
    var s = index;
",
    );
    block(program, &mut text);
    if !program.last().is_some_and(|last| matches!(last, Statement::Return(_))) {
        text += "return s;\n";
    }
    text + "}\n"
}

fn block(statements: &Block, text: &mut String) {
    for statement in statements {
        match statement {
            Statement::Step(n) => *text += &format!("s = s * 3u + {n}u;\n"),
            Statement::Together(n) => *text += &format!("s = s * 3u + subgroupAdd(s) + {n}u;\n"),
            Statement::Gather(how, n) => {
                *text += &match how {
                    Gather::Sum => format!("t += subgroupAdd(s ^ {n}u);\n"),
                    Gather::Below => format!("t += subgroupExclusiveAdd(s ^ {n}u);\n"),
                    Gather::Odd => format!("t ^= subgroupXor(s ^ {n}u);\n"),
                }
            }
            Statement::If(test, then, otherwise) => {
                let (factor, modulus, less) = (test.factor, test.modulus, test.less);
                *text += &format!("if (s * {factor}u + index) % {modulus}u < {less}u {{\n");
                block(then, text);
                *text += "} else {\n";
                block(otherwise, text);
                *text += "}\n";
            }
            Statement::Switch(switch) => choose(switch, text),
            Statement::Loop(repeated) => {
                let (rounds, spread) = (repeated.rounds, repeated.spread);
                // There are 24 words.
                let unknown = if repeated.known { "" } else { " + arrayLength(&out) % 24u" };
                let limit = format!("{rounds}u + index % {spread}u{unknown}");
                *text += "{ var i = 0u;\nloop {\n";
                if !repeated.tested_last {
                    *text += &format!("if i >= {limit} {{ break; }}\n");
                }
                *text += "s += i;\n";
                block(&repeated.body, text);
                *text += "continuing { i += 1u;\n";
                if repeated.tested_last {
                    *text += &format!("break if i >= {limit};\n");
                }
                *text += "} } }\n";
            }
            Statement::BreakSwitch | Statement::BreakLoop => *text += "break;\n",
            Statement::Continue => *text += "continue;\n",
            Statement::Return(n) => *text += &format!("return s + {n}u;\n"),
        }
    }
}

fn choose(switch: &Switch, text: &mut String) {
    *text += &format!("switch s % {SELECTORS}u {{\n");
    for (n, (body, _)) in switch.cases.iter().enumerate() {
        *text += &if n == switch.default { "default: {\n".to_owned() } else { format!("case {n}u: {{\n") };
        block(body, text);
        *text += "}\n";
    }
    if switch.default >= switch.cases.len() {
        *text += "default: { }\n";
    }
    *text += "}\n";
}
