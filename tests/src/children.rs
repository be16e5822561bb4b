//! The output of child processes, line by line, for a parent of many.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::mpsc::Sender;

use serde_json::Value;

/// Sends each line of a child that is JSON, with the number of its job, and `None` when the child has ended. Returns
/// `None` if its output is not a pipe.
pub fn listen(process: &mut Child, job: usize, sender: &Sender<(usize, Option<Value>)>) -> Option<()> {
    let output = process.stdout.take()?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(value) = serde_json::from_str(&line) {
                let _ = sender.send((job, Some(value)));
            }
        }
        let _ = sender.send((job, None));
    });
    Some(())
}
