//! Modules of other projects on every engine: rejected modules, kernels without machine code, differences between
//! engines.
//!
//! A module declares its descriptors ([`interface`]); [`memory`] gives them random contents, shaped after the kernel's
//! loads, except for what [`families`] sets; [`run`] runs every engine on the same memory and compares. If invocations
//! race, results depend on their order: bytes that differ between two orders in the interpreter are excluded.

mod compare;
pub mod families;
pub mod interface;
pub mod memory;
pub mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spelter_shaders::compile::Module;
use spelter_shaders::front::wgsl::WgslModule;
use spelter_shaders::front::{ConstantType, spvasm};
use spelter_shaders::ir::Kernel;

use interface::ImageType;

/// Adds a file, or all modules (`.spv`, `.spvasm`, `.wgsl`) below a folder.
pub fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        files.push(path.to_owned());
        return;
    }
    for path in std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let known = path.extension().is_some_and(|name| ["spv", "spvasm", "wgsl"].iter().any(|known| name == *known));
        if known || path.is_dir() {
            collect(&path, files);
        }
    }
}

/// A compute entry point of a module.
#[derive(Debug)]
pub struct EntryPoint {
    /// Its name.
    pub name: String,
    /// The words of its module; for WGSL those that naga writes.
    pub words: Vec<u32>,
}

/// The compute entry points of a file: `.spv`, `.spvasm` or `.wgsl`.
///
/// # Errors
///
/// The file cannot be read, or the module is rejected.
pub fn entry_points(path: &Path) -> Result<Vec<EntryPoint>, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let text = || std::str::from_utf8(&bytes).map_err(|error| error.to_string());
    let words = match path.extension().and_then(|extension| extension.to_str()) {
        Some("wgsl") => {
            let module = WgslModule::parse(text()?).map_err(|error| error.to_string())?;
            let of = |name: &str| {
                // Overrides without a default get one.
                let ids = module.specialization_constants().filter_map(|constant| constant.id);
                let ones = ids.map(|id| (id, 1)).collect();
                let words = module.to_spirv(name, &BTreeMap::new()).or_else(|_| module.to_spirv(name, &ones));
                let words = words.map_err(|error| error.to_string())?;
                Ok(EntryPoint { name: name.to_owned(), words })
            };
            return module.entry_points().map(of).collect();
        }
        Some("spvasm") => spvasm::assemble(text()?).map_err(|error| error.to_string())?,
        _ => bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect(),
    };
    let module = Module::from_spirv(&words).map_err(|error| error.to_string())?;
    Ok(module.entry_points().map(|name| EntryPoint { name: name.to_owned(), words: words.clone() }).collect())
}

/// Elements of arrays of descriptors without a size.
pub(crate) const RUNTIME_ARRAY: u32 = 4;

/// A kernel with its module's image declarations.
#[derive(Debug)]
pub struct Subject {
    /// As the reader produced it.
    pub kernel: Kernel,
    /// Images by set and binding.
    pub images: BTreeMap<(u32, u32), ImageType>,
}

impl EntryPoint {
    /// The kernels to test: with these constants, the others by default; and, if the default workgroup is small, with
    /// a larger one.
    ///
    /// # Errors
    ///
    /// The entry point is rejected.
    pub fn subjects(&self, constants: &BTreeMap<u32, u64>) -> Result<Vec<Subject>, String> {
        let module = Module::from_spirv(&self.words).map_err(|error| error.to_string())?;
        let images = interface::images(&self.words);
        let kernel = |constants: &BTreeMap<u32, u64>| kernel(&module, &self.name, constants);
        let plain = kernel(constants)?;
        let sizes = larger(&module, &plain, &self.name, constants);
        let larger = match (plain.invocations(), sizes.is_empty()) {
            (_, false) => Some(kernel(&sizes)?),
            // As ncnn does when it creates pipelines.
            (1, true) => {
                let words = interface::resized(&self.words, [8, 4, 1]);
                let module = Module::from_spirv(&words).map_err(|error| error.to_string())?;
                Some(self::kernel(&module, &self.name, constants)?)
            }
            _ => None,
        };
        let kernels = std::iter::once(plain).chain(larger);
        Ok(kernels.map(|kernel| Subject { kernel, images: images.clone() }).collect())
    }
}

fn kernel(module: &Module, entry: &str, constants: &BTreeMap<u32, u64>) -> Result<Kernel, String> {
    let mut kernel = module.kernel(entry, constants).map_err(|error| error.to_string())?;
    kernel.size_runtime_arrays(|_| RUNTIME_ARRAY);
    Ok(kernel)
}

/// Constants that make the workgroup larger: each on which its size depends.
fn larger(module: &Module, plain: &Kernel, entry: &str, constants: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    if plain.invocations() >= 16 {
        return BTreeMap::new();
    }
    let integers = module
        .specialization_constants()
        .into_iter()
        .filter(|constant| matches!(constant.ty, ConstantType::Int(_) | ConstantType::Uint(_)));
    let matters = |id: &u32| {
        let mut with = constants.clone();
        with.insert(*id, 5);
        let with = module.kernel(entry, &with);
        with.is_ok_and(|kernel| kernel.workgroup_size != plain.workgroup_size)
    };
    let ids: Vec<u32> = integers.filter_map(|constant| constant.id).filter(matters).collect();
    let sizes: &[u64] = match ids.len() {
        1 => &[64],
        2 => &[16, 4],
        _ => &[8, 4, 2],
    };
    if ids.is_empty() {
        return BTreeMap::new();
    }
    constants.iter().map(|(&id, &value)| (id, value)).chain(ids.into_iter().zip(sizes.iter().copied())).collect()
}
