//! What reports on commands say of the names that objects have.
#![allow(clippy::unwrap_used)]

use crate::common::checked::{device, findings};
use crate::common::{COUNT, Kernel, STORAGE, Words};

#[test]
fn an_empty_name_is_none() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words]);
    words.buffer.set_debug_name(Some("words"));
    words.buffer.set_debug_name(Some(""));
    count.pipeline.set_debug_name(Some(""));
    let found = findings(&device, |command| {
        command.set_debug_name(Some(""));
        for _ in 0..2 {
            command.bind_pipeline(&count.pipeline).unwrap();
            command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        }
    });
    let text = found[0].to_string();
    assert!(!text.contains("``") && text.contains("command buffer 0") && !text.contains("of buffer"), "{text}");
}
