//! Findings in the Static Analysis Results Interchange Format (OASIS SARIF 2.1.0), which code-hosting sites show beside
//! the lines.
//!
//! A repair is a sentence. A `fix` of the format would need the replacement as text, so repairs are in the message.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use spelter::check::Rule;
use spelter::check::report::description;

/// The log of a run with these findings, as their JSON objects are.
pub(super) fn log(findings: &[Json]) -> Json {
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
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Json) -> Json {
    let mut result = json!({
        "ruleId": finding["id"],
        "level": finding["severity"],
        "message": { "text": message(finding) },
        "locations": [location(&finding["second"])],
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
        parts.push(format!("the [{}](1) precedes the {}", action(&finding["first"]), action(&finding["second"])));
    }
    parts.extend(texts(&finding["conditions"], |reason| Some(format!("because {}", reason.as_str()?))));
    parts.extend(texts(&finding["repair"], |repair| Some(format!("repair: {}", repair["text"].as_str()?))));
    parts.join("; ") + "."
}

fn texts(list: &Json, text: impl Fn(&Json) -> Option<String>) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(text).collect()
}

fn action(access: &Json) -> &str {
    access["action"].as_str().unwrap_or("access")
}

/// The place of an access: a region of a file where it is known, and the kernel.
fn location(access: &Json) -> Json {
    let mut location = Map::new();
    location.insert("message".to_owned(), json!({ "text": action(access) }));
    if let (Some(file), Some(line)) = (access["file"].as_str(), access["line"].as_u64().filter(|&line| line > 0)) {
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
        let log = log(&[finding]);
        assert_eq!((&log["version"], log["runs"].as_array().unwrap().len()), (&"2.1.0".into(), 1));
        let run = &log["runs"][0];
        let result = &run["results"][0];
        let rule = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
        let text = "data race; the [read](1) precedes the write; because nothing orders them; repair: a barrier.";
        assert_eq!(result["message"]["text"], text);
        let place = &result["locations"][0];
        assert!(place["physicalLocation"].is_null(), "{place}");
        assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "main, SPIR-V word 12");
        let related = &result["relatedLocations"][0]["physicalLocation"];
        assert_eq!(related["artifactLocation"]["uri"], "a%20b.comp");
        assert_eq!(related["region"], json!({ "startLine": 7 }));
        assert_eq!((&result["level"], &result["occurrenceCount"]), (&"error".into(), &3.into()));
    }

    #[test]
    fn files_are_uris() {
        assert_eq!(uri("/x/ä.comp"), "file:///x/%C3%A4.comp");
        let own = std::env::current_dir().unwrap().join("shaders/a.comp");
        assert_eq!(uri(own.to_str().unwrap()), "shaders/a.comp");
    }
}
