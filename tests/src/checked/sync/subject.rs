//! Kernels whose synchronization is mutated, with the memory that they run on: of a test file's comments, or random
//! contents shaped after the kernel's loads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::DispatchArgs;
use spelter_shaders::compile::Module;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Kernel;

use crate::case::Case;
use crate::check::{Inputs, size_runtime_arrays};
use crate::corpus;
use crate::modules::families::Settings;
use crate::modules::memory::{Arena, Memory as Random};
use crate::modules::{self, interface};

/// A kernel with its memory.
#[derive(Debug)]
pub struct Subject {
    /// The entry point.
    pub entry: String,
    /// The words of its module.
    pub words: Vec<u32>,
    origin: Origin,
}

/// Where the memory's contents come from.
#[derive(Debug)]
enum Origin {
    Case(Box<Case>),
    Random(Settings),
}

/// The memory of one run.
#[derive(Debug)]
pub struct Memory {
    held: Held,
    /// The contents at first.
    initial: Vec<(GuestSlice, Vec<u8>)>,
    groups: [u32; 3],
}

#[derive(Debug)]
enum Held {
    Inputs(Box<(Case, Inputs)>),
    Random(Box<Random>),
}

impl Subject {
    /// The kernels of a file: a test file with its memory, or all compute entry points of a module.
    ///
    /// # Errors
    ///
    /// The file is rejected.
    pub fn of_file(path: &Path, settings: Settings) -> Result<Vec<Self>, String> {
        let is_text = path.extension().is_some_and(|extension| extension != "spv");
        if let Some(case) = is_text.then(|| Case::read(path).ok()).flatten() {
            if case.error.is_some() {
                return Ok(Vec::new());
            }
            let words = corpus::spirv(&case).map_err(|error| error.to_string())?;
            let module = Module::from_spirv(&words).map_err(|error| error.to_string())?;
            let entry = match &case.entry {
                Some(entry) => entry.clone(),
                None => module.entry_points().next().unwrap_or("main").to_owned(),
            };
            return Ok(vec![Self { entry, words, origin: Origin::Case(Box::new(case)) }]);
        }
        let entries = modules::entry_points(path)?;
        let subject = |entry: modules::EntryPoint| Self {
            entry: entry.name,
            words: entry.words,
            origin: Origin::Random(settings.clone()),
        };
        Ok(entries.into_iter().map(subject).collect())
    }

    /// The kernel of these words, which are those of the subject or of a mutant.
    ///
    /// # Errors
    ///
    /// The module is rejected.
    pub fn kernel(&self, words: &[u32]) -> Result<Kernel, String> {
        let none = BTreeMap::new();
        let constants = match &self.origin {
            // The translation of a WGSL text has the values.
            Origin::Case(case) if case.is_wgsl() => &none,
            Origin::Case(case) => &case.specialization,
            Origin::Random(settings) => &settings.constants,
        };
        let module = Module::from_spirv(words).map_err(|error| error.to_string())?;
        let mut kernel = module.kernel(&self.entry, constants).map_err(|error| error.to_string())?;
        match &self.origin {
            Origin::Case(case) => size_runtime_arrays(case, &mut kernel),
            Origin::Random(_) => kernel.size_runtime_arrays(|_| modules::RUNTIME_ARRAY),
        }
        Ok(kernel)
    }

    /// The memory of a kernel: for random contents those of a seed, with `groups` workgroups unless the settings have
    /// others.
    ///
    /// # Errors
    ///
    /// It does not fit, or the test file is not consistent.
    pub fn memory(&self, kernel: &Kernel, arena: Arena, seed: u64, groups: [u32; 3]) -> Result<Memory, String> {
        match &self.origin {
            Origin::Case(case) => {
                let inputs = Inputs::new(case, kernel)?;
                let initial = inputs.slots.values().map(|&slice| (slice, contents(slice))).collect();
                let held = Held::Inputs(Box::new(((**case).clone(), inputs)));
                Ok(Memory { held, initial, groups: case.groups })
            }
            Origin::Random(settings) => {
                let subject = modules::Subject { kernel: kernel.clone(), images: interface::images(&self.words) };
                let random = Random::new(arena, &subject, settings, seed).ok_or("memory does not fit")?;
                let groups = settings.groups.unwrap_or(groups);
                Ok(Memory { held: Held::Random(Box::new(random)), initial: Vec::new(), groups })
            }
        }
    }

    /// Whether other seeds have other contents.
    pub fn is_random(&self) -> bool {
        matches!(self.origin, Origin::Random(_))
    }
}

impl Memory {
    /// Writes the initial contents.
    pub fn load(&self) {
        match &self.held {
            Held::Inputs(_) => self.initial.iter().for_each(|(slice, bytes)| slice.write(0, bytes)),
            Held::Random(random) => random.load(),
        }
    }

    /// The arguments of the dispatch.
    pub fn args<'a>(&'a self, stop: &'a AtomicU32) -> DispatchArgs<'a> {
        match &self.held {
            Held::Inputs(held) => held.1.args(&held.0, stop),
            Held::Random(random) => DispatchArgs {
                buffers: &random.buffers,
                images: &random.images,
                push: &random.push,
                num_workgroups: self.groups,
                stop,
            },
        }
    }
}

fn contents(slice: GuestSlice) -> Vec<u8> {
    let mut bytes = vec![0; slice.len() as usize];
    slice.read(0, &mut bytes);
    bytes
}
