//! The commands that pages of the book show with their output, run in a folder with the files that they show.

use crate::common::Folder;

/// Pages, each with the least number of commands with output that it shows.
const PAGES: [(&str, &str, usize); 3] = [
    ("README.md", include_str!("../../../README.md"), 1),
    ("docs/running.md", include_str!("../../../docs/running.md"), 3),
    ("docs/first-kernel.md", include_str!("../../../docs/first-kernel.md"), 2),
];

/// The commands of a page, `$ …`, with what follows up to the next one.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let (mut in_code, mut is_open) = (false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            (in_code, is_open) = (!in_code, false);
        } else if let (true, Some(command)) = (in_code, line.strip_prefix("$ ")) {
            found.push((command.to_owned(), String::new()));
            is_open = true;
        } else if let (true, Some((command, output))) = (is_open, found.last_mut()) {
            // A command may go on in the next line.
            if command.ends_with('\\') {
                command.pop();
                command.push_str(line.trim());
                continue;
            }
            output.push_str(line);
            output.push('\n');
        }
    }
    found
}

#[test]
fn commands_print_what_the_book_says() {
    let folder = Folder::new("book");
    for (name, page, least) in PAGES {
        let mut count = 0;
        for (command, output) in commands(page) {
            if let Some(file) = command.strip_prefix("cat ") {
                folder.write(file, output.as_bytes());
                continue;
            }
            let line = command
                .strip_prefix("spelter ")
                .filter(|line| line.starts_with("run ") || line.starts_with("reflect "));
            let Some(line) = line.filter(|_| !output.trim().is_empty()) else { continue };
            if let Some(report) = output.trim_end().strip_suffix('…') {
                // The beginning of a report of checked mode.
                let ended = folder.spelter(line);
                assert!(ended.status == 66 && ended.stderr.starts_with(report), "{name}: {command}\n{}", ended.stderr);
            } else {
                assert_eq!(folder.good(line).trim_end(), output.trim_end(), "{name}: {command}");
            }
            count += 1;
        }
        assert!(count >= least, "{name}: {count} commands were run");
    }
}
