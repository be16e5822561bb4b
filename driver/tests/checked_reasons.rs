//! What reports on commands say of the names that objects have, and the names by which findings are suppressed.
#![allow(clippy::unwrap_used)]

use crate::common::checked::{device, findings};
use crate::common::{COUNT, Kernel, STORAGE, Words};
use spelter_driver::CommandBuffer;
use spelter_driver::check::report::{Filter, Suppression};

#[test]
fn a_kernel_is_suppressed_by_each_of_its_names() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    count.pipeline.set_debug_name(Some("tally"));
    count.pipeline.set_module_name(Some("tally.comp"));
    let set = count.set(&device, STORAGE, &[&words]);
    let dispatch = |command: &CommandBuffer| {
        command.set_label(Some("frame")).unwrap();
        command.bind_pipeline(&count.pipeline).unwrap();
        command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    };
    let found = findings(&device, |command| {
        dispatch(command);
        dispatch(command);
    });
    assert!(!found.is_empty());
    let suppressed = |name: &str| {
        let suppressions = vec![format!("kernel:{name}").parse::<Suppression>().unwrap()];
        let filter = Filter { suppressions, ..Filter::default() };
        found.iter().all(|finding| filter.suppresses(finding))
    };
    let names = ["main", "tally", "tally.comp", "tally*", "frame", "tall"];
    assert_eq!(names.map(suppressed), [true, true, true, true, false, false]);
}

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
