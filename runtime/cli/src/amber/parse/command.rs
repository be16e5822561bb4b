//! Commands: `RUN`, `COPY`, `REPEAT`; `expect.rs` has `EXPECT`.

use super::{Parser, find};
use crate::amber::Stop;
use crate::amber::script::{Action, AmberCommand};
use crate::amber::text::{SourcePosition, Word};

/// Commands of graphics pipelines.
const GRAPHICS: [&str; 4] = ["CLEAR", "CLEAR_COLOR", "CLEAR_DEPTH", "CLEAR_STENCIL"];

impl<'t> Parser<'t> {
    /// A command whose first word is `word`.
    pub(super) fn command(&mut self, word: Word<'t>) -> Result<AmberCommand, Stop> {
        let what = match word.text {
            "RUN" => self.run()?,
            "COPY" => self.copy()?,
            "EXPECT" => self.expect()?,
            "REPEAT" => self.repeat(word.at)?,
            text if GRAPHICS.contains(&text) => return Err(word.fail(format!("{text} is not for compute pipelines"))),
            text => return Err(word.fail(format!("`{text}` is not a command"))),
        };
        self.cursor.line_end()?;
        Ok(AmberCommand { at: word.at, what })
    }

    fn run(&mut self) -> Result<Action, Stop> {
        // Execution times are not reported.
        self.cursor.take("TIMED_EXECUTION");
        let name = self.cursor.expect("a pipeline's name")?;
        let pipeline = find(&self.names.pipelines, "pipeline", name)?;
        let mut groups = [0; 3];
        for count in &mut groups {
            *count = self.cursor.integer("number of workgroups")?;
        }
        Ok(Action::Run { pipeline, groups })
    }

    fn copy(&mut self) -> Result<Action, Stop> {
        let first = self.cursor.expect("a buffer's name")?;
        let from = find(&self.names.buffers, "buffer", first)?;
        self.cursor.keyword("TO")?;
        let name = self.cursor.expect("a buffer's name")?;
        let to = find(&self.names.buffers, "buffer", name)?;
        if from == to {
            return Err(name.fail("a buffer is not copied to itself"));
        }
        let (source, target) = (&self.script.buffers[from], &self.script.buffers[to]);
        if source.ty != target.ty || source.layout != target.layout {
            return Err(name.fail(format!("`{}` and `{}` differ in data type", first.text, name.text)));
        }
        let (count, image) = (source.count, source.image);
        // The target gets the size of the source.
        let target = &mut self.script.buffers[to];
        (target.count, target.image) = (count, image);
        Ok(Action::Copy { from, to })
    }

    fn repeat(&mut self, at: SourcePosition) -> Result<Action, Stop> {
        let count = self.cursor.integer("number of repetitions")?;
        self.cursor.line_end()?;
        let mut commands = Vec::new();
        while let Some(word) = self.cursor.in_block("REPEAT", at)? {
            if word.text == "REPEAT" {
                return Err(word.fail("REPEAT does not contain REPEAT"));
            }
            commands.push(self.command(word)?);
        }
        Ok(Action::Repeat(count, commands))
    }
}
