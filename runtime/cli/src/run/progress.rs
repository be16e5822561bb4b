//! How far a checked dispatch is, on a terminal: checked mode takes far longer than a run.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use spelter::Context;
use spelter::check::CheckResults;

use crate::bar::styled;

/// How often the bar is drawn. A dispatch that is shorter has none.
const TICK: Duration = Duration::from_millis(250);

/// Does something that runs dispatches of the context, with a bar on standard error if it is a terminal.
pub(super) fn shown<T>(context: &Context, work: impl FnOnce() -> T) -> T {
    let results = context.device().check_results().filter(|_| std::io::stderr().is_terminal());
    let Some(results) = results else { return work() };
    let (ended, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || draw(&results, &end));
        // Dropped at the end of the closure, also by a panic: then the thread ends.
        let _ended = ended;
        work()
    })
}

fn draw(results: &CheckResults, end: &mpsc::Receiver<()>) {
    let bar = styled(0, "{elapsed} {bar:30} {pos}/{len} workgroups{msg}");
    while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let (progress, stats) = (results.progress(), results.stats());
        bar.set_length(progress.workgroups);
        bar.set_position(progress.begun);
        bar.set_message(match progress.suspicions {
            0 => String::new(),
            suspicions => format!(", repeated for {suspicions} suspicions, {} confirmed", stats.confirmed),
        });
    }
    bar.finish_and_clear();
}
