//! Progress bars on standard error. Where that is no terminal, they print nothing.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar is drawn while nothing moves it.
const TICK: Duration = Duration::from_millis(200);

/// A bar by a template of indicatif.
pub(crate) fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = styled(length, template);
    bar.enable_steady_tick(TICK);
    bar
}

/// The same, drawn only when something moves it.
pub(crate) fn styled(length: u64, template: &str) -> ProgressBar {
    ProgressBar::new(length).with_style(ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()))
}
