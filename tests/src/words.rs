//! Kernels that load words of one buffer and store them to another, on every engine: each word must be the value of
//! any of the invocations that store it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::guest::GuestSlice;

use crate::engine;

/// Contents of the first buffer.
pub fn source(word: u32) -> u32 {
    7 * word + 3
}

/// Allowed contents of the second buffer, by word; 0 for all others.
#[derive(Clone, Debug, Default)]
pub struct Allowed(BTreeMap<u32, Vec<u32>>);

impl Allowed {
    /// An invocation stores this value.
    pub fn store(&mut self, word: u32, value: u32) {
        self.0.entry(word).or_default().push(value);
    }

    fn check(&self, results: &[u32]) -> Result<(), String> {
        for (word, &found) in (0..).zip(results) {
            let fine = self.0.get(&word).map_or(found == 0, |all| all.contains(&found));
            if !fine {
                return Err(format!("word {word} is {found}, should be {:?}", self.0.get(&word)));
            }
        }
        Ok(())
    }
}

/// Memory with guards after it: the slice is a part of it.
pub fn memory(bytes: u32, fill: impl Fn(u32) -> u8) -> (GuestSlice, GuestSlice) {
    let all = GuestSlice::leak(bytes as usize + 64);
    (0..bytes + 64).for_each(|at| all.store_u8(at.into(), fill(at)));
    (all, all.slice(0, bytes.into()))
}

/// Its bytes.
pub fn contents(slice: GuestSlice) -> Vec<u8> {
    (0..slice.len()).map(|at| slice.load_u8(at)).collect()
}

/// Runs a WGSL kernel on buffers of this many words, the first filled with [`source`]; returns an engine's fault.
///
/// # Errors
///
/// The text is invalid, or an engine stored a value that is not allowed.
pub fn run(
    text: &str,
    words: u32,
    push: &[u8; MAX_PUSH_BYTES],
    num_workgroups: [u32; 3],
    allowed: &Allowed,
) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{error}\n{text}");
    let module = Module::from_wgsl(text).map_err(|error| wrong(&error))?;
    let kernel = module.kernel("main", &BTreeMap::new()).map_err(|error| wrong(&error))?;
    let stop = AtomicU32::new(0);
    for engine in engine::engines() {
        let [from, to] = [GuestSlice::leak(words as usize * 4), GuestSlice::leak(words as usize * 4)];
        (0..words).for_each(|word| from.store_u32(u64::from(word) * 4, source(word)));
        let args = DispatchArgs { buffers: &[from, to], push, images: &[], num_workgroups, stop: &stop };
        engine::dispatch(&*(engine.prepare)(&kernel), &args, &mut Scratch::default());
        let results: Vec<u32> = (0..words).map(|word| to.load_u32(u64::from(word) * 4)).collect();
        allowed.check(&results).map_err(|why| format!("{}: {why}\n{text}", engine.name))?;
    }
    Ok(())
}
