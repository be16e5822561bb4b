//! Reads the text form of programs (`text.rs`).

use spelter_driver::vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};

use super::program::{
    BUFFER, BUFFERS, Barrier, Command, IMAGES, Job, LAYERS, Memory, Part, Program, Quarter, Range, Recording, Scope,
    Semaphore, Signal, Step, Submit,
};
use super::text::{ACCESSES, STAGES};

/// What a command names: a range of a buffer, or a part of an image.
enum Operand {
    Buffer(Range),
    Image(Part),
}

/// An error with the words that are wrong.
type Parsed<T> = Result<T, String>;

fn expected<T>(what: &str, found: &str) -> Parsed<T> {
    Err(format!("expected {what}, found `{found}`"))
}

/// The number in a name like `q0`.
fn numbered(word: &str, letter: char) -> Parsed<usize> {
    let number = word.strip_prefix(letter).and_then(|number| number.parse().ok());
    number.map_or_else(|| expected(&format!("{letter} and a number"), word), Ok)
}

fn letter(word: &str, first: char, count: usize) -> Option<usize> {
    let mut letters = word.chars();
    let number = (letters.next()? as usize).checked_sub(first as usize)?;
    (number < count && letters.next().is_none()).then_some(number)
}

fn operand(word: &str) -> Parsed<Operand> {
    let (name, range) = word.split_once(':').map_or((word, None), |(name, range)| (name, Some(range)));
    if let Some(buffer) = letter(name, 'a', BUFFERS) {
        let Some(range) = range else { return Ok(Operand::Buffer(Range::whole(buffer))) };
        let ends = range.split_once("..").and_then(|(start, end)| Some((start.parse().ok()?, end.parse().ok()?)));
        return match ends {
            Some((start, end)) if start < end && end <= BUFFER => Ok(Operand::Buffer(Range { buffer, start, end })),
            _ => expected("a range of a buffer", word),
        };
    }
    let (name, layer) = word.split_once('.').map_or((word, ""), |(name, layer)| (name, layer));
    let Some(image) = letter(name, 'i', IMAGES) else { return expected("a buffer or an image", word) };
    let (layer, quarter) = match layer.split_once('q') {
        Some((layer, "0")) => (layer, Some(Quarter::First)),
        Some((layer, "3")) => (layer, Some(Quarter::Last)),
        Some(_) => return expected("quarter q0 or q3", word),
        None => (layer, None),
    };
    let layer = match layer {
        "" => None,
        layer => match layer.parse() {
            Ok(layer) if layer < LAYERS => Some(layer),
            _ => return expected("a layer", word),
        },
    };
    Ok(Operand::Image(Part { image, layer, quarter }))
}

fn buffer(word: &str) -> Parsed<Range> {
    match operand(word)? {
        Operand::Buffer(range) => Ok(range),
        Operand::Image(_) => expected("a buffer", word),
    }
}

fn image(word: &str) -> Parsed<usize> {
    match operand(word)? {
        Operand::Image(Part { image, layer: None, quarter: None }) => Ok(image),
        _ => expected("an image", word),
    }
}

fn flags<T: Copy>(text: &str, table: &[(&str, T)], none: T, or: impl Fn(T, T) -> T) -> Parsed<T> {
    text.split('|').try_fold(none, |all, name| match table.iter().find(|(known, _)| *known == name) {
        Some((_, flag)) => Ok(or(all, *flag)),
        None => expected("a flag", name),
    })
}

fn stages(text: &str) -> Parsed<Stage> {
    flags(text, &STAGES, Stage::NONE, |all, flag| all | flag)
}

fn scope(text: &str) -> Parsed<Scope> {
    let (of_stages, access) = text.split_once(':').unwrap_or((text, "NONE"));
    Ok(Scope { stages: stages(of_stages)?, access: flags(access, &ACCESSES, Access::NONE, |all, flag| all | flag)? })
}

fn barriers(words: &[&str]) -> Parsed<Vec<Barrier>> {
    words.split(|word| *word == "+").map(barrier).collect()
}

/// An event that is waited for, and the barriers for it.
fn awaited(words: &[&str]) -> Parsed<(usize, Vec<Barrier>)> {
    let Some((event, rest)) = words.split_first() else { return expected("an event", "") };
    Ok((numbered(event, 'e')?, barriers(rest)?))
}

fn barrier(words: &[&str]) -> Parsed<Barrier> {
    let (src, dst, rest) = match words {
        [src, "->", dst, rest @ ..] => (scope(src)?, scope(dst)?, rest),
        _ => return expected("SCOPE -> SCOPE", &words.join(" ")),
    };
    let memory = match rest {
        [] => Memory::All,
        [kind @ ("on" | "transition"), of] => match (operand(of)?, *kind) {
            (Operand::Buffer(range), "on") => Memory::Buffer(range),
            (Operand::Image(Part { image, layer, quarter: None }), kind) => {
                Memory::Image { image, layer, transition: kind == "transition" }
            }
            _ => return expected("the memory of a barrier", of),
        },
        _ => return expected("`on` or `transition` and the memory", &rest.join(" ")),
    };
    Ok(Barrier { src, dst, memory })
}

fn job(words: &[&str]) -> Parsed<Option<Job>> {
    Ok(Some(match words {
        ["read", of] => Job::Read(buffer(of)?),
        ["write", of] => Job::Write(buffer(of)?),
        ["move", from, to] => Job::Move { from: buffer(from)?, to: buffer(to)? },
        ["increment", of] => Job::Increment(buffer(of)?),
        ["uniform", of] => Job::Uniform(buffer(of)?),
        ["both", of] => Job::Both(buffer(of)?),
        ["atomic", of] => Job::Atomic(buffer(of)?),
        ["restart", of] => Job::Restart(buffer(of)?),
        ["double", of] => Job::Double(buffer(of)?),
        ["texels", of] => Job::Texels(buffer(of)?),
        ["append", counter, to] => Job::Append { counter: buffer(counter)?.buffer, to: buffer(to)?.buffer },
        ["indirect", of] => Job::Indirect(buffer(of)?),
        ["size", of] => Job::Size(image(of)?),
        ["load", of] => Job::Load(image(of)?),
        ["store", of] => Job::Store(image(of)?),
        ["sample", of] => Job::Sample(image(of)?),
        _ => return Ok(None),
    }))
}

fn command(text: &str) -> Parsed<Command> {
    let words: Vec<_> = text.split_whitespace().collect();
    if let Some(job) = job(&words)? {
        return Ok(Command::Dispatch(job));
    }
    Ok(match &*words {
        ["copy", from, to] => match (operand(from)?, operand(to)?) {
            (Operand::Buffer(from), Operand::Buffer(to)) => Command::Copy { from, to },
            (Operand::Buffer(from), Operand::Image(to)) => Command::Upload { from, to },
            (Operand::Image(from), Operand::Buffer(to)) => Command::Download { from, to },
            (Operand::Image(from), Operand::Image(to)) if from.fits(&to) => Command::CopyImage { from, to },
            _ => return expected("parts of one size", text),
        },
        ["fill", of] => Command::Fill(buffer(of)?),
        ["update", of] => Command::Update(buffer(of)?),
        ["query", of] => Command::Query(buffer(of)?),
        ["clear", of] => Command::Clear(image(of)?),
        ["base", rest @ ..] => match job(rest)? {
            Some(job) => Command::DispatchBase(job),
            None => return expected("a dispatch", text),
        },
        ["barrier", rest @ ..] => Command::Barrier(barriers(rest)?),
        ["barrier1", rest @ ..] => Command::OldBarrier(barriers(rest)?),
        ["set", event, rest @ ..] => Command::Set(numbered(event, 'e')?, barriers(rest)?),
        ["reset", event] => Command::Reset(numbered(event, 'e')?),
        ["wait", rest @ ..] => Command::Wait(rest.split(|word| *word == "and").map(awaited).collect::<Parsed<_>>()?),
        ["execute", rest @ ..] => Command::Execute(rest.iter().map(|name| numbered(name, 'x')).collect::<Parsed<_>>()?),
        _ => return expected("a command", text),
    })
}

fn signal(word: &str) -> Parsed<Signal> {
    let (name, at) = word.split_once('@').unwrap_or((word, "ALL_COMMANDS"));
    let semaphore = match name.split_once('=') {
        Some((name, value)) => match value.parse() {
            Ok(value) => Semaphore::Timeline(numbered(name, 't')?, value),
            Err(_) => return expected("a value", word),
        },
        None => Semaphore::Binary(numbered(name, 'b')?),
    };
    Ok(Signal { semaphore, stages: stages(at)? })
}

fn submit(words: &[&str]) -> Parsed<Submit> {
    let Some((queue, rest)) = words.split_first() else { return expected("a queue", "") };
    let mut submit = Submit { queue: numbered(queue, 'q')?, ..Submit::default() };
    let mut kind = "";
    for word in rest {
        match (*word, kind) {
            ("wait" | "run" | "signal" | "fence", _) => kind = word,
            (_, "wait") => submit.waits.push(signal(word)?),
            (_, "run") => submit.recordings.push(numbered(word, 'x')?),
            (_, "signal") => submit.signals.push(signal(word)?),
            (_, "fence") => submit.fence = Some(numbered(word, 'f')?),
            _ => return expected("wait, run, signal or fence", word),
        }
    }
    Ok(submit)
}

/// A step; `None` if it is none.
fn step(text: &str) -> Parsed<Option<Step>> {
    let words: Vec<_> = text.split_whitespace().collect();
    let timeline = |word: &str| match signal(word)?.semaphore {
        Semaphore::Timeline(number, value) => Ok((number, value)),
        Semaphore::Binary(_) => expected("a timeline and a value", word),
    };
    Ok(Some(match &*words {
        ["submit", rest @ ..] => Step::Submit(submit(rest)?),
        ["host", "idle"] => Step::WaitIdle,
        ["host", "wait", fence] if fence.starts_with('f') => Step::WaitFence(numbered(fence, 'f')?),
        ["host", "wait", of] => timeline(of).map(|(number, value)| Step::WaitSemaphore(number, value))?,
        ["host", "signal", of] => timeline(of).map(|(number, value)| Step::SignalSemaphore(number, value))?,
        ["host", "set", event] => Step::SetEvent(numbered(event, 'e')?),
        ["host", "read", of] => Step::Read(buffer(of)?),
        ["host", "write", of] => Step::Write(buffer(of)?),
        _ => return Ok(None),
    }))
}

impl Program {
    /// Reads a script.
    ///
    /// # Errors
    ///
    /// The words that are wrong, and what was expected.
    pub fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut program = Self::default();
        let mut named: Vec<(usize, Recording)> = Vec::new();
        let mut steps: Vec<Result<Step, Command>> = Vec::new();
        for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
            if let Some((name, commands)) = line.split_once(" =") {
                let (name, secondary) = match name.strip_prefix("secondary ") {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let commands = commands.split(';').filter(|text| !text.trim().is_empty()).map(command);
                named.push((numbered(name, 'x')?, Recording { commands: commands.collect::<Parsed<_>>()?, secondary }));
            } else {
                steps.push(match step(line)? {
                    Some(step) => Ok(step),
                    None => Err(command(line)?),
                });
            }
        }
        // A name that is given again means another command buffer from then on; scripts do not need that.
        named.sort_by_key(|(number, _)| *number);
        for (at, (number, recording)) in named.into_iter().enumerate() {
            if at != number {
                return expected(&format!("command buffer x{at}"), &format!("x{number}"));
            }
            program.recordings.push(recording);
        }
        let mut open: Option<Recording> = None;
        for step in steps {
            match step {
                Err(command) => open.get_or_insert_default().commands.push(command),
                Ok(step) => {
                    program.submit_open(open.take());
                    program.steps.push(step);
                }
            }
        }
        program.submit_open(open);
        program.check_numbers()?;
        Ok(program)
    }

    fn submit_open(&mut self, open: Option<Recording>) {
        if let Some(recording) = open {
            self.recordings.push(recording);
            let recordings = vec![self.recordings.len() - 1];
            self.steps.push(Step::Submit(Submit { recordings, ..Submit::default() }));
        }
    }

    fn check_numbers(&self) -> Parsed<()> {
        let executed = self
            .recordings
            .iter()
            .flat_map(|recording| &recording.commands)
            .filter_map(|command| if let Command::Execute(list) = command { Some(list) } else { None });
        let submitted = self
            .steps
            .iter()
            .filter_map(|step| if let Step::Submit(submit) = step { Some(&submit.recordings) } else { None });
        match executed.chain(submitted).flatten().find(|number| **number >= self.recordings.len()) {
            Some(number) => expected("a command buffer", &format!("x{number}")),
            None => Ok(()),
        }
    }
}
