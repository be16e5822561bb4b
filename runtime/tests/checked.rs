//! Tests that deny findings of checked mode fail if a part of a kernel's accesses was not checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spelter::check::CheckOptions;
use spelter::{Context, Error, testing};

/// Each workgroup writes the first words of 64 KiB.
const PAGES: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32) {
    data[g.x * 16384u + l] = l;
}";

/// Writes 1 MiB, for which this is the memory of the shadow.
fn written_with(memory: u64) -> Result<Context, Error> {
    let context = Context::builder().check(CheckOptions { memory, ..Default::default() }).build()?;
    let (program, data) = (context.program_wgsl(PAGES)?, context.buffer_zeroed(1 << 20)?);
    context.dispatch(&program).bind(0, 0, &data).groups([16, 1, 1])?;
    context.finish()?;
    Ok(context)
}

#[test]
fn a_test_that_denies_findings_fails_if_not_all_was_checked() -> Result<(), Error> {
    let context = written_with(CheckOptions::MIN_MEMORY)?;
    let denied = testing::deny_findings(&context);
    let panic = catch_unwind(AssertUnwindSafe(|| drop(denied))).err();
    let message = panic.and_then(|panic| panic.downcast::<String>().ok());
    let expected = "accesses were not checked, since the shadow of the memory exceeds `CheckOptions::memory`";
    assert!(message.as_ref().is_some_and(|message| message.contains(expected)), "{message:?}");
    drop(testing::deny_findings(&context).allow_unchecked());
    drop(testing::deny_findings(&written_with(CheckOptions::default().memory)?));
    Ok(())
}

/// A finding says in which dispatch it was made first, however it is printed, and says it once.
#[test]
fn findings_have_the_label_of_their_dispatch() -> Result<(), Error> {
    let context = Context::builder().check(CheckOptions::default()).build()?;
    let racy = "@group(0) @binding(0) var<storage, read_write> sum: u32;
        @compute @workgroup_size(2) fn main() { sum += 1u; }";
    let (program, sum) = (context.program(racy).label("adder").build()?, context.buffer_zeroed(4)?);
    context.dispatch(&program).bind(0, 0, &sum).groups([1, 1, 1])?;
    context.dispatch(&program).bind(0, 0, &sum).label("second").groups([1, 1, 1])?;
    let findings = context.findings()?;
    assert!(!findings.is_empty());
    for finding in findings {
        let place = finding.dispatch.as_ref().map(|dispatch| dispatch.place()).unwrap_or_default();
        assert!(place.starts_with("in `adder`, command buffer 0 of submission 1 of queue 0"), "{place}");
        let report = spelter::check::report::text(&finding, &[], false);
        for text in [finding.to_string(), format!("{finding:?}"), report] {
            assert_eq!(text.matches(&place).count(), 1, "{text}");
        }
    }
    Ok(())
}

/// Races of one cause are one report, as in the program.
#[test]
fn a_test_that_denies_findings_prints_a_group_once() -> Result<(), Error> {
    let context = Context::builder().check(CheckOptions::default()).build()?;
    let steps: String = [8, 4, 2, 1].map(|step| format!("if (l < {step}u) {{ s[l] += s[l + {step}u]; }}\n")).concat();
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
        var<workgroup> s: array<u32, 64>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{
        s[l] = d[l];
        workgroupBarrier();
        {steps}d[l] = s[l];
        }}"
    );
    let (program, data) = (context.program_wgsl(&text)?, context.buffer_zeroed(256)?);
    context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
    let denied = testing::deny_findings(&context);
    let panic = catch_unwind(AssertUnwindSafe(|| drop(denied))).err();
    let message = panic.and_then(|panic| panic.downcast::<String>().ok()).unwrap_or_default();
    assert!(message.contains("data races in workgroup variable `s`, from line "), "{message}");
    assert_eq!(message.matches("error[").count(), 1, "{message}");
    Ok(())
}
