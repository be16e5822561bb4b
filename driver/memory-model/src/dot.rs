//! Graphviz output: an execution with a column for each thread, and the most important relations.

use std::fmt::Write;

use crate::answer::Execution;
use crate::describe;
use crate::event::Agent;
use crate::model::Model;
use crate::program::Program;
use crate::relations::Source;

/// Escapes a text for use in a quoted string.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The execution in the DOT language. Reads-from is green, modification order brown, synchronizes-with blue, races red
/// and undirected.
pub fn dot(program: &Program, execution: &Execution, model: Model) -> String {
    let (frame, _, order) = execution.relations(model);
    let instance = &execution.instance;
    let mut text = format!("digraph \"{}\" {{\n", quoted(&program.name));
    text +=
        "  node [shape=box, fontname=\"monospace\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=10];\n";
    let mut line = |line: String| {
        let _ = writeln!(text, "  {line}");
    };
    for (thread, code) in program.threads.iter().enumerate() {
        let events: Vec<_> = (0..frame.n).filter(|&event| instance.origins[event].0 == thread).collect();
        let group = match code.agent {
            Agent::Device { subgroup, workgroup, queue_family, .. } => {
                format!("{}: subgroup {subgroup}, workgroup {workgroup}, queue family {queue_family}", code.name)
            }
            Agent::Host => format!("{}: host", code.name),
        };
        line(format!(
            "subgraph cluster_{thread} {{ label=\"{}\"; color=gray; fontname=\"sans-serif\"; fontsize=11;",
            quoted(&group)
        ));
        for &event in &events {
            let label = describe::event(program, instance, &execution.values, event);
            line(format!("  e{event} [label=\"{}\"];", quoted(&label)));
        }
        for pair in events.windows(2) {
            line(format!("  e{} -> e{} [label=\"po\", color=gray40, weight=10];", pair[0], pair[1]));
        }
        line("}".to_owned());
    }
    let edge = |a: usize, b: usize, label: &str, style: &str| format!("e{a} -> e{b} [label=\"{label}\", {style}];");
    for (read, source) in execution.sources.iter().enumerate() {
        match source {
            Some(Source::Write(write)) => {
                line(edge(*write, read, "rf", "color=darkgreen, fontcolor=darkgreen, constraint=false"))
            }
            Some(Source::Initial) => {
                line(format!("i{read} [label=\"initial\", shape=plaintext, fontsize=9];"));
                line(format!("i{read} -> e{read} [label=\"rf\", color=darkgreen, fontcolor=darkgreen];"));
            }
            None => {}
        }
    }
    let mut modification = crate::relation::Relation::<u128>::new(frame.n);
    execution.modification_order.iter().for_each(|&(a, b)| modification.insert(a, b));
    for (a, b) in modification.immediate().iter() {
        line(edge(a, b, "asmo", "color=brown, fontcolor=brown, constraint=false"));
    }
    for (a, b) in order.synchronizes_with.iter() {
        line(edge(a, b, "sw", "color=blue, fontcolor=blue, penwidth=2, constraint=false"));
    }
    for &(a, b) in &instance.trace.system {
        let first = !instance
            .trace
            .system
            .iter()
            .any(|&(x, y)| x > a && instance.trace.same_agent(x, a) && instance.trace.same_agent(y, b));
        let last = !instance
            .trace
            .system
            .iter()
            .any(|&(x, y)| y < b && instance.trace.same_agent(x, a) && instance.trace.same_agent(y, b));
        if first && last {
            line(edge(a, b, "ssw", "color=purple, fontcolor=purple, penwidth=2, constraint=false"));
        }
    }
    for &(a, b) in &execution.races {
        line(edge(a, b, "race", "color=red, fontcolor=red, style=dashed, dir=none, penwidth=2, constraint=false"));
    }
    text + "}\n"
}
