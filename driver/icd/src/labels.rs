//! Debug labels of command buffers and queues, which appear in messages and name dispatches in timelines.

use std::time::Instant;

use crate::c::callback::Label;

/// The labels of a command buffer or a queue.
#[derive(Default)]
pub(crate) struct Labels {
    open: Vec<(Label, Instant)>,
    /// The inserted label, until the next label begins or ends.
    inserted: Option<Label>,
}

/// Maximum of open labels; labels inside of these are ignored.
const MAX_OPEN_LABELS: usize = 64;

/// Bytes of a label's name that are kept, at most: the names of all open labels are copied into each message, and for
/// each dispatch, so the program must not choose how long they are.
const MAX_NAME_BYTES: usize = 1 << 10;

/// The beginning of a label's name that is kept.
pub(crate) fn kept(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

impl Labels {
    pub(crate) fn begin(&mut self, label: Label) {
        self.inserted = None;
        if self.open.len() < MAX_OPEN_LABELS {
            self.open.push((label, Instant::now()));
        }
    }

    /// Ends the innermost label and returns it with its start time; `None` if none is open.
    pub(crate) fn end(&mut self) -> Option<(Label, Instant)> {
        self.inserted = None;
        self.open.pop()
    }

    pub(crate) fn insert(&mut self, label: Label) {
        self.inserted = Some(label);
    }

    /// The open labels, the outermost first.
    pub(crate) fn open(&self) -> Vec<Label> {
        self.open.iter().map(|(label, _)| label).chain(&self.inserted).cloned().collect()
    }

    /// The names of the open labels, joined by slashes, without those that are empty; `None` if there are none.
    pub(crate) fn path(&self) -> Option<String> {
        let open = self.open.iter().map(|(label, _)| label).chain(&self.inserted);
        let names: Vec<&str> = open.map(|label| label.name.as_str()).filter(|name| !name.is_empty()).collect();
        (!names.is_empty()).then(|| names.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_up_to_a_length() {
        let (longest, longer) = ("x".repeat(MAX_NAME_BYTES), "x".repeat(MAX_NAME_BYTES + 1));
        assert_eq!((kept(&longest), kept(&longer), kept("")), (&*longest, &*longest, ""));
        let ends_in_a_character = format!("{}é", "x".repeat(MAX_NAME_BYTES - 1));
        assert_eq!(kept(&ends_in_a_character), "x".repeat(MAX_NAME_BYTES - 1));
    }

    #[test]
    fn labels_nest_and_an_inserted_one_lasts_until_the_next() {
        let label = |name: &str| Label { name: name.into(), color: [0.0; 4] };
        let mut labels = Labels::default();
        assert_eq!((labels.path(), labels.end()), (None, None));
        labels.begin(label("frame"));
        labels.begin(label("blur"));
        labels.insert(label("first"));
        assert_eq!(labels.path().as_deref(), Some("frame/blur/first"));
        assert_eq!(labels.end().map(|(label, _)| label.name).as_deref(), Some("blur"));
        assert_eq!(labels.path().as_deref(), Some("frame"));
        labels.insert(label(""));
        assert_eq!(labels.path().as_deref(), Some("frame"));
        labels.end();
        labels.begin(label(""));
        assert_eq!(labels.path(), None, "an empty name is none");
    }
}
