//! Colours for the lines of source in an error, as the findings of checked mode have them.
//!
//! The readers of shaders return plain text, since most callers show it where there are no colours. Its lines of source
//! have the form that compilers of Rust and WGSL use: numbers and a frame on the left, and marks below the text.

/// Dark red, for marks.
const MARK: &str = "31";

/// Blue, for the frame.
const FRAME: &str = "34";

/// The text with the frame and the marks of its lines of source in colour.
pub(crate) fn colored(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn line(text: &str) -> String {
    let is_number = |before: &str| before.trim().bytes().all(|byte| byte.is_ascii_digit());
    for frame in ["┌─", "│", "="] {
        let Some((before, after)) = text.split_once(frame).filter(|(before, _)| is_number(before)) else { continue };
        // An `=` without a space before it is no note below a line of source.
        if frame == "=" && !before.ends_with(' ') {
            continue;
        }
        let is_marked = frame == "│" && before.trim().is_empty() && !after.trim().is_empty();
        let after = if is_marked { styled(MARK, after) } else { after.to_owned() };
        return format!("{}{after}", styled(FRAME, &format!("{before}{frame}")));
    }
    text.to_owned()
}

fn styled(code: &str, text: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_source_have_colours() {
        let text = "a.wgsl: no `b`\n   ┌─ a.wgsl:12:5\n   │\n12 │ a = b;\n   │     ^ here\n   = note: c\nx = 1\n=d";
        let shown = colored(text).replace('\x1b', "~");
        let lines = [
            "a.wgsl: no `b`",
            "~[34m   ┌─~[0m a.wgsl:12:5",
            "~[34m   │~[0m",
            "~[34m12 │~[0m a = b;",
            "~[34m   │~[0m~[31m     ^ here~[0m",
            "~[34m   =~[0m note: c",
            "x = 1",
            "=d",
        ];
        assert_eq!(shown, lines.join("\n"));
    }
}
