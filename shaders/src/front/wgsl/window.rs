//! Messages about texts with long lines: shows only the part of the line around the marker below it.
//!
//! naga shows the whole source line of a position, and below it a line of blanks up to the marker. For a text without
//! line breaks that is the whole text, twice.

/// Lines of a message up to this length are kept.
const MAX_LINE_LENGTH: usize = 200;
/// Characters shown of a longer line.
const SHOWN: usize = 120;
/// Characters before the marker among these.
const BEFORE: usize = 60;
/// The separator between the line number and the text.
const RULE: char = '│';

/// The message with long lines shortened.
pub(super) fn windowed(message: &str) -> String {
    if message.lines().all(|line| line.len() <= MAX_LINE_LENGTH) {
        return message.to_owned();
    }
    let lines: Vec<_> = message.lines().collect();
    let mut shown = Vec::new();
    let mut start = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some((number, text)) = line.split_once(RULE) else {
            shown.push(if line.len() <= MAX_LINE_LENGTH { (*line).to_owned() } else { cut(line, 0) });
            continue;
        };
        if !number.trim().is_empty() {
            // The markers are in the lines below.
            let below = lines[at + 1..].iter().map_while(|line| line.split_once(RULE));
            let marks = below.take_while(|(number, _)| number.trim().is_empty());
            let mark = marks.filter_map(|(_, marks)| marks.chars().position(|mark| matches!(mark, '^' | '-'))).min();
            let is_long = text.chars().count() > MAX_LINE_LENGTH;
            start = if is_long { mark.unwrap_or(0).saturating_sub(BEFORE) } else { 0 };
        }
        shown.push(format!("{number}{RULE}{}", cut(text, start)));
    }
    shown.join("\n")
}

/// The visible characters of `text` from `start` on, with dots for the omitted ones.
fn cut(text: &str, start: usize) -> String {
    let is_blank = text.chars().take(start).all(char::is_whitespace);
    let before = match (start, is_blank) {
        (0, _) => "",
        // Marker lines must stay aligned.
        (_, true) => "   ",
        (_, false) => " … ",
    };
    let mut rest = text.chars().skip(start);
    let max = if start == 0 { MAX_LINE_LENGTH } else { SHOWN };
    let kept: String = rest.by_ref().take(max).collect();
    let after = if rest.next().is_some() { " …" } else { "" };
    format!("{before}{kept}{after}")
}

#[cfg(test)]
mod tests {
    use super::super::WgslModule;

    #[test]
    fn a_message_about_a_long_line_shows_what_stands_around_the_mark() {
        let filler = "/* a line without an end */ ".repeat(4_000);
        let text = format!("{filler}fn main() {{ let x = wrong; }} {filler}");
        let message = WgslModule::parse(&text).unwrap_err().to_string();
        assert!(message.len() < 1_000, "{} bytes", message.len());
        let lines: Vec<_> = message.lines().collect();
        let at = lines.iter().position(|line| line.contains("let x = wrong;")).unwrap();
        let column = |line: &str, part: &str| line.find(part).map(|at| line[..at].chars().count());
        assert_eq!(column(lines[at], "wrong"), column(lines[at + 1], "^^^^^"), "{message}");
    }
}
