//! The path of hostile shaders: front end, each kernel, each engine, and a run that is stopped soon.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::guest::GuestSlice;

use crate::case::{Case, Slot};
use crate::check;
use crate::engine::{self, Engine};

/// The buffers of a test file, for kernels that are derived from it.
#[derive(Debug)]
pub struct Trial {
    slots: BTreeMap<Slot, GuestSlice>,
    engines: Vec<Engine>,
}

impl Trial {
    /// Memory for a case's buffers, which is leaked.
    pub fn new(case: &Case) -> Self {
        let slots = case.binds.iter().map(|(slot, words)| (*slot, GuestSlice::leak(words.len() * 4))).collect();
        Self { slots, engines: engine::engines() }
    }

    /// Runs every kernel of the module on every engine. `runs` is called before each run, which `stop` ends.
    pub fn run(&self, case: &Case, module: &Module, stop: &AtomicU32, runs: impl Fn()) {
        for entry in module.entry_points() {
            let Ok(kernel) = module.kernel(entry, &case.specialization) else { continue };
            self.fill(case);
            let buffers = check::descriptors(&kernel, &self.slots);
            let args = DispatchArgs {
                buffers: &buffers,
                push: &[0; MAX_PUSH_BYTES],
                images: &[],
                num_workgroups: [2, 1, 1],
                stop,
            };
            for engine in &self.engines {
                let code = (engine.prepare)(&kernel);
                runs();
                engine::dispatch(&*code, &args, &mut Scratch::default());
            }
        }
    }

    fn fill(&self, case: &Case) {
        for (slot, words) in &case.binds {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.bits.to_le_bytes()).collect();
            self.slots[slot].write(0, &bytes);
        }
    }
}
