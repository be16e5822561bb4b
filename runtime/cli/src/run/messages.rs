//! Messages that the kernel prints (`debugPrintf`): to standard error as they come, or kept for the JSON object.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};
use spelter::Printer;

use crate::output::{self, MAX_MESSAGES};

/// The messages of a run.
#[derive(Clone, Default)]
pub(super) struct Messages {
    /// `None` if they go to standard error.
    kept: Option<Arc<Mutex<Vec<Json>>>>,
}

impl Messages {
    /// No messages yet; `keep` them for JSON.
    pub(super) fn new(keep: bool) -> Self {
        Self { kept: keep.then(Arc::default) }
    }

    /// The printer of the device.
    pub(super) fn printer(&self) -> Printer {
        let Some(kept) = self.kept.clone() else { return output::printer() };
        Printer::new(MAX_MESSAGES, move |message| {
            let shown = json!({ "invocation": message.invocation, "text": message.text });
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
        })
    }

    /// The messages so far, as an array.
    pub(super) fn json(&self) -> Json {
        let kept = self.kept.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Json::Array(kept.unwrap_or_default())
    }
}
