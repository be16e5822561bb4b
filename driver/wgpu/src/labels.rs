//! The labels around a command: debug groups, which may span several command buffers of an encoder, passes, markers,
//! and encoders.

/// Maximum of open labels; labels inside of these are ignored.
const MAX_OPEN: usize = 64;

/// Bytes of a label that are kept, at most: the open ones are copied for each dispatch.
const MAX_BYTES: usize = 1 << 10;

/// The open labels of an encoder.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Empty ones have no name.
    open: Vec<String>,
    /// The last marker, until a label begins or ends.
    marker: Option<String>,
    /// Open labels that were ignored.
    ignored: usize,
    /// The label of the command buffer, for commands that have no other.
    commands: String,
}

impl Labels {
    /// A command buffer begins.
    pub(crate) fn begin_commands(&mut self, label: &str) {
        self.commands = kept(label);
    }

    pub(crate) fn begin(&mut self, label: &str) {
        self.marker = None;
        if self.open.len() < MAX_OPEN {
            self.open.push(kept(label));
        } else {
            self.ignored += 1;
        }
    }

    pub(crate) fn end(&mut self) {
        self.marker = None;
        match self.ignored.checked_sub(1) {
            Some(rest) => self.ignored = rest,
            None => drop(self.open.pop()),
        }
    }

    pub(crate) fn mark(&mut self, label: &str) {
        self.marker = Some(kept(label)).filter(|label| !label.is_empty());
    }

    /// The names of the open labels, joined by slashes as the Vulkan driver joins them; `None` if there are none.
    pub(crate) fn path(&self) -> Option<String> {
        let open = self.open.iter().filter(|label| !label.is_empty()).chain(&self.marker);
        let names: Vec<_> = open.map(String::as_str).collect();
        let path = if names.is_empty() { self.commands.clone() } else { names.join("/") };
        Some(path).filter(|path| !path.is_empty())
    }
}

fn kept(label: &str) -> String {
    label[..label.floor_char_boundary(MAX_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_nest_and_a_marker_lasts_until_the_next() {
        let mut labels = Labels::default();
        assert_eq!(labels.path(), None);
        ["frame", "", "blur"].iter().for_each(|label| labels.begin(label));
        labels.mark("first");
        assert_eq!(labels.path().as_deref(), Some("frame/blur/first"));
        labels.end();
        assert_eq!(labels.path().as_deref(), Some("frame"));
        [(); 3].iter().for_each(|()| labels.end());
        assert_eq!(labels.path(), None);
        labels.begin_commands("encoder");
        assert_eq!(labels.path().as_deref(), Some("encoder"));
        labels.begin("pass");
        assert_eq!(labels.path().as_deref(), Some("pass"));
    }

    #[test]
    fn labels_have_a_bound() {
        let mut labels = Labels::default();
        labels.begin(&format!("{}é", "x".repeat(MAX_BYTES - 1)));
        assert_eq!(labels.path(), Some("x".repeat(MAX_BYTES - 1)));
        (0..1000).for_each(|_| labels.begin("y"));
        assert_eq!(labels.open.len(), MAX_OPEN);
        (0..1000).for_each(|_| labels.end());
        assert_eq!(labels.open.len(), 1);
    }
}
