//! A mutant: from its number to words or a text, and through the pipeline.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::{Backend, Module, compile};
use spelter_shaders::guest::GuestSlice;
use spelter_tests::case::{Case, Slot};
use spelter_tests::{check, corpus, engine, mangle, mutate};

use crate::{Args, Kind};

/// Maximal bytes of a mutated text.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The unchanged input.
pub(crate) enum Original {
    Words(Vec<u32>),
    Text(String),
}

/// A file of the corpus, with its memory.
struct Origin {
    case: Case,
    original: Original,
    slots: BTreeMap<Slot, GuestSlice>,
}

/// All files that are mutated.
pub(crate) struct Corpus {
    origins: Vec<Origin>,
    seed: u64,
}

/// The result of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Rejected with an error.
    Refused,
    /// It ran on all back ends.
    Ran,
    /// Some had no machine code.
    Interpreted,
}

impl Corpus {
    pub(crate) fn new(args: &Args) -> Self {
        let cases = corpus::files().into_iter().filter_map(|path| Case::read(&path).ok());
        // Most mutants of a rejected file are rejected, too.
        let origins = cases.filter(|case| case.error.is_none()).filter_map(|case| {
            let original = match args.kind {
                Kind::Spirv => Original::Words(corpus::spirv(&case).ok()?),
                Kind::Wgsl => Original::Text(case.is_wgsl().then(|| case.text.clone())?),
            };
            let slots = case.binds.iter().map(|(slot, words)| (*slot, GuestSlice::leak(words.len() * 4))).collect();
            Some(Origin { case, original, slots })
        });
        Self { origins: origins.collect(), seed: args.seed }
    }

    fn origin(&self, number: u64) -> (&Origin, u64) {
        let count = self.origins.len().max(1) as u64;
        (&self.origins[(number % count) as usize], self.seed.wrapping_add(number / count))
    }

    /// The source of a mutant: a file and a seed.
    pub(crate) fn name(&self, number: u64) -> String {
        let (origin, seed) = self.origin(number);
        format!("{}:{seed}", corpus::name(&origin.case.path))
    }

    /// A text with a few changed tokens, or one with larger changes and parts of another file.
    fn text(&self, text: &str, number: u64) -> String {
        let (_, seed) = self.origin(number);
        if seed.is_multiple_of(4) {
            return mutate::text(text, seed);
        }
        let other = &self.origins[(seed.wrapping_mul(31).wrapping_add(number) % self.origins.len() as u64) as usize];
        match &other.original {
            Original::Text(other) => mangle::text(text, other, MAX_TEXT_BYTES, seed),
            Original::Words(_) => mangle::text(text, text, MAX_TEXT_BYTES, seed),
        }
    }

    /// The mutant as a file's extension and contents.
    pub(crate) fn file(&self, number: u64) -> (&'static str, Vec<u8>) {
        let (origin, seed) = self.origin(number);
        match &origin.original {
            Original::Words(words) => {
                ("spv", mutate::words(words, seed).into_iter().flat_map(u32::to_le_bytes).collect())
            }
            Original::Text(text) => ("wgsl", self.text(text, number).into_bytes()),
        }
    }

    /// Takes a mutant through the pipeline. An error is a finding.
    pub(crate) fn run(&self, number: u64, stop: &AtomicU32, runs: impl Fn()) -> Result<Outcome, String> {
        let (origin, seed) = self.origin(number);
        let module = match &origin.original {
            Original::Words(words) => Module::from_spirv(&mutate::words(words, seed)),
            Original::Text(text) => Module::from_wgsl(&self.text(text, number)),
        };
        let Ok(module) = module else { return Ok(Outcome::Refused) };
        let mut outcome = Outcome::Refused;
        for entry in module.entry_points() {
            let Ok(kernel) = module.kernel(entry, &origin.case.specialization) else { continue };
            outcome = if outcome == Outcome::Interpreted { outcome } else { Outcome::Ran };
            origin.fill();
            let buffers = check::descriptors(&kernel, &origin.slots);
            let push = &[0; MAX_PUSH_BYTES];
            let args = DispatchArgs { buffers: &buffers, push, images: &[], num_workgroups: [2, 1, 1], stop };
            for backend in Backend::available() {
                let compiled = compile(&kernel, backend);
                match compiled.fallback {
                    Some(reason) if reason.contains("invalid kernel") => return Err(reason),
                    Some(_) => outcome = Outcome::Interpreted,
                    None => {}
                }
                runs();
                engine::dispatch(&*compiled.code, &args, &mut Scratch::default());
            }
        }
        Ok(outcome)
    }
}

impl Origin {
    fn fill(&self) {
        for (slot, words) in &self.case.binds {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.bits.to_le_bytes()).collect();
            self.slots[slot].write(0, &bytes);
        }
    }
}
