//! A finding as a picture: a column for each queue, the host or workgroup, the dependencies that the program has, and
//! the edge that it lacks.

use std::fmt::Write;

use serde_json::Value as Json;

/// Columns of a label.
const WIDTH: usize = 60;

/// A node: its column, its name and its label.
struct Node {
    column: String,
    name: String,
    label: String,
    /// More attributes.
    style: &'static str,
}

/// The finding in the DOT language of Graphviz; `None` if it is not about two accesses. Time goes down. What is missing
/// is red and dashed, from a signal to its wait an edge is blue.
pub(super) fn picture(finding: &Json) -> Option<String> {
    let (first, second) = (&finding["first"], &finding["second"]);
    first.as_object()?;
    let red = ", color=red, penwidth=2";
    let access = |name: &str, of: &Json| Node { column: column(of), name: name.into(), label: label(of), style: red };
    let steps = finding["between"].as_array().map(Vec::as_slice).unwrap_or_default();
    let node = |step: &Json| Node {
        column: step["queue"].as_u64().map_or_else(|| HOST.into(), queue),
        name: format!("step{}", step["number"]),
        label: step["text"].as_str().unwrap_or_default().into(),
        style: "",
    };
    let (before, after): (Vec<_>, Vec<_>) = steps.iter().partition(|step| step["precedes"] == true);
    let mut nodes: Vec<_> = before.into_iter().map(node).collect();
    nodes.push(access("first", first));
    nodes.extend(after.into_iter().map(node));
    nodes.push(access("second", second));

    let title = format!("{}: {}", text(&finding["id"]), text(&finding["title"]));
    let repairs = finding["repair"].as_array().into_iter().flatten();
    let repairs: String = repairs.map(|repair| format!("\nrepair: {}", text(&repair["text"]))).collect();
    let mut dot = format!("digraph \"{}\" {{\n", quoted(&title));
    _ = writeln!(
        dot,
        "  label=\"{}\"; labelloc=t; labeljust=l; fontname=\"sans-serif\";",
        wrapped(&(title + &repairs))
    );
    dot += "  node [shape=box, fontname=\"monospace\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=10];\n";
    let mut columns: Vec<&str> = nodes.iter().map(|node| node.column.as_str()).collect();
    columns.sort_unstable();
    columns.dedup();
    for (number, column) in columns.into_iter().enumerate() {
        _ = writeln!(
            dot,
            "  subgraph cluster_{number} {{ label=\"{}\"; color=gray; fontname=\"sans-serif\"; fontsize=11;",
            quoted(column)
        );
        for Node { name, label, style, .. } in nodes.iter().filter(|node| node.column == column) {
            _ = writeln!(dot, "    {name} [label=\"{}\"{style}];", wrapped(label));
        }
        dot += "  }\n";
    }
    // They keep the order of time in all columns.
    for pair in nodes.windows(2) {
        _ = writeln!(dot, "  {} -> {} [style=invis, weight=10];", pair[0].name, pair[1].name);
    }
    let has = |name: &str| nodes.iter().any(|node| node.name == name);
    for step in steps {
        let signals = step["after"].as_array().into_iter().flatten().map(|number| format!("step{number}"));
        for signal in signals.filter(|name| has(name)) {
            _ = writeln!(dot, "  {signal} -> step{} [color=blue, penwidth=2, constraint=false];", step["number"]);
        }
    }
    let reasons: Vec<_> = finding["conditions"].as_array().into_iter().flatten().map(text).collect();
    let red = "color=red, fontcolor=red, style=dashed, penwidth=2, constraint=false";
    _ = writeln!(dot, "  first -> second [label=\"{}\", {red}];", wrapped(&reasons.join("\n")));
    Some(dot + "}\n")
}

const HOST: &str = "host";

fn queue(number: u64) -> String {
    format!("queue {number}")
}

/// Where an access is: the queue of its command, the host, or the workgroup of its invocation.
fn column(access: &Json) -> String {
    match (access["command"]["queue"].as_u64(), &access["workgroup"]) {
        (Some(number), _) => queue(number),
        (None, Json::Array(group)) => {
            let numbers: Vec<_> = group.iter().map(ToString::to_string).collect();
            format!("workgroup ({})", numbers.join(", "))
        }
        _ => HOST.to_owned(),
    }
}

/// What an access does, where, and by which command or invocation.
fn label(access: &Json) -> String {
    let mut label = text(&access["action"]).to_owned();
    if let (Some(file), Some(line)) = (access["file"].as_str(), access["line"].as_u64()) {
        _ = write!(label, "\nat {file}:{line}");
    }
    match (&access["local"], access["command"]["text"].as_str()) {
        (_, Some(command)) => _ = write!(label, "\nby {command}"),
        (Json::Array(local), None) => {
            let numbers: Vec<_> = local.iter().map(ToString::to_string).collect();
            _ = write!(label, "\nby invocation ({})", numbers.join(", "));
        }
        _ => {}
    }
    label
}

fn text(of: &Json) -> &str {
    of.as_str().unwrap_or_default()
}

/// Escapes a text for use in a quoted string.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A text in short lines, each ending at its left edge, for a quoted string.
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut short = String::new();
        for word in line.split(' ') {
            if !short.is_empty() && short.chars().count() + word.chars().count() >= WIDTH {
                lines.push(std::mem::take(&mut short));
            }
            if !short.is_empty() {
                short.push(' ');
            }
            short += word;
        }
        lines.push(short);
    }
    lines.iter().map(|line| quoted(line) + "\\l").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_columns_are_queues_and_the_host_and_the_missing_edge_is_red() {
        let text = "`blur` (command 1 of command buffer 0 in submission 3 of queue 0)";
        let command = |queue| json!({ "queue": queue, "text": text });
        let finding = json!({
            "id": "SPELTER-RACE-RAW", "title": "data race in buffer `a\"b`",
            "first": { "action": "write", "file": "a.comp", "line": 7, "command": command(0) },
            "second": { "action": "read by the host", "command": null, "workgroup": null },
            "between": [
                { "queue": 0, "text": "vkCmdSetEvent after CLEAR", "number": 1, "after": [], "precedes": true },
                { "queue": 0, "text": "semaphore or fence signalled", "number": 4, "after": [] },
                { "queue": null, "text": "wait", "number": 5, "after": [4, 2] },
                { "queue": 0, "text": "vkCmdWaitEvents", "number": 6, "after": [1] },
            ],
            "conditions": ["no dependency"], "repair": [{ "text": "a barrier" }],
        });
        let dot = picture(&finding).unwrap();
        for line in [
            "digraph \"SPELTER-RACE-RAW: data race in buffer `a\\\"b`\" {",
            "  subgraph cluster_0 { label=\"host\"; color=gray; fontname=\"sans-serif\"; fontsize=11;",
            "    first [label=\"write\\lat a.comp:7\\lby `blur` (command 1 of command buffer 0 in submission 3 of\\lqueue \
             0)\\l\", color=red, penwidth=2];",
            "  step1 -> first [style=invis, weight=10];",
            "  step1 -> step6 [color=blue, penwidth=2, constraint=false];",
            "    step5 [label=\"wait\\l\"];",
            "  step4 -> step5 [color=blue, penwidth=2, constraint=false];",
            "  first -> second [label=\"no dependency\\l\", color=red, fontcolor=red, style=dashed, penwidth=2, \
             constraint=false];",
        ] {
            assert!(dot.lines().any(|written| written == line), "{line}\n{dot}");
        }
        assert!(!dot.contains("step2"), "a signal that is not shown");
        assert_eq!(picture(&json!({ "first": null, "second": {} })), None);
    }

    #[test]
    fn invocations_of_a_dispatch_are_in_their_workgroups() {
        let access = |x| json!({ "action": "write", "workgroup": [x, 0, 0], "local": [1, 2, 3], "command": null });
        let dot = picture(&json!({ "first": access(0), "second": access(1) })).unwrap();
        let columns = ["workgroup (0, 0, 0)", "workgroup (1, 0, 0)", "by invocation (1, 2, 3)\\l"];
        assert!(columns.iter().all(|column| dot.contains(column)), "{dot}");
    }

    #[test]
    fn long_texts_are_several_lines() {
        let text = "word ".repeat(30);
        assert_eq!(wrapped(text.trim()).matches("\\l").count(), 3);
        assert_eq!(wrapped("a\nb \"c\""), "a\\lb \\\"c\\\"\\l");
    }
}
