//! Findings in the Static Analysis Results Interchange Format (OASIS SARIF 2.1.0), which code-hosting sites show beside
//! the lines.
//!
//! A repair is a sentence. A `fix` of the format would need the replacement as text, so repairs are in the message.
//!
//! Code-hosting sites refuse a file with a result whose first location is in no file. So that is the second access if
//! its line is known, else the first access, and for two accesses without lines (transfers, the host) what was checked:
//! the program or the shader.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use spelter::check::Rule;
use spelter::check::report::description;

/// The log of a run with these findings, as their JSON objects are. `subject` is the program or shader.
pub(super) fn log(findings: &[Json], subject: &Path) -> Json {
    let rules: Vec<_> = Rule::ALL
        .iter()
        .map(|&rule| {
            let level = if rule == Rule::Note { "note" } else { "error" };
            json!({
                "id": rule.name(),
                "shortDescription": { "text": description(rule) },
                "defaultConfiguration": { "level": level },
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Spelter", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(|finding| result(finding, subject)).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Json, subject: &Path) -> Json {
    let accesses = [&finding["second"], &finding["first"]];
    let main = accesses.into_iter().find(|access| line(access).is_some()).unwrap_or(accesses[0]);
    let mut place = location(main);
    if line(main).is_none() {
        let uri = uri(&subject.to_string_lossy());
        place["physicalLocation"] = json!({ "artifactLocation": { "uri": uri }, "region": { "startLine": 1 } });
    }
    let mut result = json!({
        "ruleId": finding["id"],
        "level": finding["severity"],
        "message": { "text": message(finding) },
        "locations": [place],
        "partialFingerprints": { "spelterFinding/v1": finding["fingerprint"] },
        "occurrenceCount": finding["count"].as_u64().unwrap_or(1).max(1),
    });
    if let Some(index) = Rule::ALL.iter().position(|rule| finding["id"] == rule.name()) {
        result["ruleIndex"] = index.into();
    }
    if finding["first"].is_object() {
        let mut related = location(&finding["first"]);
        related["id"] = 1.into();
        result["relatedLocations"] = json!([related]);
    }
    result
}

/// What is wrong, why, and how to repair it.
fn message(finding: &Json) -> String {
    let title = finding["title"].as_str().unwrap_or_default();
    let mut parts = vec![title.to_owned()];
    if finding["first"].is_object() {
        parts.push(format!("the [{}](1) precedes the {}", described(&finding["first"]), described(&finding["second"])));
    }
    parts.extend(texts(&finding["conditions"], |reason| Some(format!("because {}", reason.as_str()?))));
    parts.extend(texts(&finding["repair"], |repair| Some(format!("repair: {}", repair["text"].as_str()?))));
    parts.join("; ") + "."
}

fn texts(list: &Json, text: impl Fn(&Json) -> Option<String>) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(text).collect()
}

/// What an access does, and the command that does it.
fn described(access: &Json) -> String {
    let action = access["action"].as_str().unwrap_or("access");
    match access["command"]["text"].as_str() {
        Some(command) => format!("{action} by {command}"),
        None => action.to_owned(),
    }
}

/// The file and line of an access, if they are known.
fn line(access: &Json) -> Option<(&str, u64)> {
    Some((access["file"].as_str()?, access["line"].as_u64().filter(|&line| line > 0)?))
}

/// The place of an access: a region of a file where it is known, and the kernel.
fn location(access: &Json) -> Json {
    let mut location = Map::new();
    location.insert("message".to_owned(), json!({ "text": described(access) }));
    if let Some((file, line)) = line(access) {
        let mut region = json!({ "startLine": line });
        if let Some(column) = access["column"].as_u64().filter(|&column| column > 0) {
            region["startColumn"] = column.into();
        }
        let place = json!({ "artifactLocation": { "uri": uri(file) }, "region": region });
        location.insert("physicalLocation".to_owned(), place);
    }
    if let Some(kernel) = access["kernel"].as_str().filter(|kernel| !kernel.is_empty()) {
        let name = match access["word"].as_u64() {
            Some(word) if word > 0 => format!("{kernel}, SPIR-V word {word}"),
            _ => kernel.to_owned(),
        };
        let place = json!({ "name": kernel, "fullyQualifiedName": name, "kind": "function" });
        location.insert("logicalLocations".to_owned(), json!([place]));
    }
    Json::Object(location)
}

/// A reference to a file: relative to the working directory where it is below that, as code-hosting sites need it.
fn uri(file: &str) -> String {
    let below = std::env::current_dir().ok();
    let below = below.as_deref().and_then(|folder| Path::new(file).strip_prefix(folder).ok()?.to_str());
    let path = below.unwrap_or(file);
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        // RFC 3986: unreserved characters, and the slash between segments.
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte.into()),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_what_the_schema_requires() {
        let finding = json!({
            "id": "SPELTER-RACE-WAR", "severity": "error", "title": "data race", "fingerprint": "ab", "count": 3,
            "first": { "action": "read", "kernel": "main", "file": "a b.comp", "line": 7, "column": 0, "word": 9 },
            "second": { "action": "write", "kernel": "main", "file": null, "line": null, "column": null, "word": 12 },
            "conditions": ["nothing orders them"], "repair": [{ "text": "a barrier", "line": null }],
        });
        let log = log(&[finding], Path::new("program"));
        assert_eq!((&log["version"], log["runs"].as_array().unwrap().len()), (&"2.1.0".into(), 1));
        let run = &log["runs"][0];
        let result = &run["results"][0];
        let rule = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
        let text = "data race; the [read](1) precedes the write; because nothing orders them; repair: a barrier.";
        assert_eq!(result["message"]["text"], text);
        let place = &result["locations"][0];
        assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "main, SPIR-V word 9");
        assert_eq!(place["physicalLocation"]["artifactLocation"]["uri"], "a%20b.comp", "the access with a line");
        assert_eq!(place["physicalLocation"]["region"], json!({ "startLine": 7 }));
        assert_eq!(result["relatedLocations"][0]["physicalLocation"], place["physicalLocation"]);
        assert_eq!((&result["level"], &result["occurrenceCount"]), (&"error".into(), &3.into()));
    }

    #[test]
    fn accesses_without_lines_are_in_the_program() {
        let command = json!({ "text": "`fill` (command 1 of command buffer 2 in submission 3 of queue 0)" });
        let finding = json!({
            "id": "SPELTER-HOST", "severity": "note", "title": "value not visible", "fingerprint": "ab",
            "first": { "action": "write", "kernel": "", "file": null, "line": null, "command": command },
            "second": { "action": "read by the host", "kernel": "", "file": null, "line": null, "command": null },
        });
        let result = &log(&[finding], Path::new("build/a test"))["runs"][0]["results"][0];
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(*place, json!({ "artifactLocation": { "uri": "build/a%20test" }, "region": { "startLine": 1 } }));
        let first = "write by `fill` (command 1 of command buffer 2 in submission 3 of queue 0)";
        let text = format!("value not visible; the [{first}](1) precedes the read by the host.");
        assert_eq!(result["message"]["text"], text);
    }

    #[test]
    fn files_are_uris() {
        assert_eq!(uri("/x/ä.comp"), "file:///x/%C3%A4.comp");
        let own = std::env::current_dir().unwrap().join("shaders/a.comp");
        assert_eq!(uri(own.to_str().unwrap()), "shaders/a.comp");
    }
}
