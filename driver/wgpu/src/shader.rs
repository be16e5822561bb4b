//! Shader modules: naga's modules become SPIR-V words for our reader, with the overrides of a pipeline applied; words
//! that a program passes through are read as they are.
//!
//! The words are the interface to the kernel compiler, so that it does not depend on wgpu's version of naga.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use naga::back::{PipelineConstants, pipeline_constants, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use spelter_driver::{Device, Error, Specialization};
use spelter_shaders::front::wgsl::mended_conversions;
use spelter_shaders::front::{ConstantType, SpecializationConstant};
use wgpu_hal::{DebugSource, NagaShader, PipelineError, ShaderError, ShaderInput};
use wgpu_types::{ShaderRuntimeChecks, ShaderStages};

use crate::error::device_error;

/// Bytes of a text whose kernels get source lines, at most: naga's lookup of each line starts at the beginning of the
/// text.
const MAX_WITH_LINES: usize = 1 << 17;

/// A shader module. A handle.
#[derive(Clone, Debug)]
pub struct ShaderModule(Arc<Contents>);

enum Contents {
    /// Translated for each pipeline.
    Naga { shader: Box<NagaShader>, checks: ShaderRuntimeChecks },
    /// SPIR-V that the program passes through.
    Words(spelter_driver::ShaderModule),
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Naga { shader, .. } => shader.fmt(f),
            Self::Words(module) => module.fmt(f),
        }
    }
}

/// What a pipeline is created from.
pub(crate) struct Stage {
    pub(crate) module: spelter_driver::ShaderModule,
    pub(crate) specialization: Specialization,
}

impl ShaderModule {
    pub(crate) fn new(
        device: &Device,
        checks: ShaderRuntimeChecks,
        input: ShaderInput<'_>,
    ) -> Result<Self, ShaderError> {
        let contents = match input {
            ShaderInput::Naga(shader) => Contents::Naga { shader: Box::new(shader), checks },
            ShaderInput::SpirV(words) => Contents::Words(device.create_shader_module(words).map_err(shader_error)?),
            other => return Err(ShaderError::Compilation(format!("{other:?}: Spelter reads WGSL, GLSL and SPIR-V"))),
        };
        Ok(Self(Arc::new(contents)))
    }

    /// The module for one entry point and these values of overrides, or of specialization constants by their ids.
    pub(crate) fn stage(
        &self,
        device: &Device,
        entry: &str,
        constants: &PipelineConstants,
    ) -> Result<Stage, PipelineError> {
        match &*self.0 {
            Contents::Naga { shader, checks } => {
                let words = written(shader, checks, entry, constants)?;
                let module = device.create_shader_module(&words).map_err(pipeline_error)?;
                Ok(Stage { module, specialization: Specialization::new() })
            }
            Contents::Words(module) => {
                let specialization = specialization(&module.specialization_constants(), constants)?;
                Ok(Stage { module: module.clone(), specialization })
            }
        }
    }
}

/// The SPIR-V of one entry point. A panic of naga becomes an error.
fn written(
    shader: &NagaShader,
    checks: &ShaderRuntimeChecks,
    entry: &str,
    constants: &PipelineConstants,
) -> Result<Vec<u32>, PipelineError> {
    // naga reads the shader, and what it creates is dropped on a panic.
    let ended = catch_unwind(AssertUnwindSafe(|| write(shader, checks, entry, constants)));
    ended.unwrap_or_else(|_| Err(linkage(format!("naga failed inside, writing SPIR-V of the entry point `{entry}`"))))
}

fn write(
    shader: &NagaShader,
    checks: &ShaderRuntimeChecks,
    entry: &str,
    constants: &PipelineConstants,
) -> Result<Vec<u32>, PipelineError> {
    let only = Some((naga::ShaderStage::Compute, entry));
    let (module, info) = pipeline_constants::process_overrides(&shader.module, &shader.info, only, constants)
        .map_err(|error| PipelineError::PipelineConstants(ShaderStages::COMPUTE, error.to_string()))?;
    let source = shader.debug_source.as_ref().filter(|source| source.source_code.len() <= MAX_WITH_LINES);
    let pipeline = spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: entry.to_owned() };
    let words = spv::write_vec(&module, &info, &options(checks, source), Some(&pipeline))
        .map_err(|error| linkage(error.to_string()))?;
    Ok(mended_conversions(words))
}

/// No checks that the device makes itself: it bounds-checks every access (reads out of bounds give 0, writes are
/// dropped), zeroes workgroup memory, and ends endless loops by its time limit.
fn options<'a>(checks: &ShaderRuntimeChecks, source: Option<&'a DebugSource>) -> spv::Options<'a> {
    spv::Options {
        lang_version: (1, 3),
        flags: if source.is_some() { spv::WriterFlags::DEBUG } else { spv::WriterFlags::empty() },
        bounds_check_policies: BoundsCheckPolicies {
            index: BoundsCheckPolicy::Unchecked,
            buffer: BoundsCheckPolicy::Unchecked,
            image_load: BoundsCheckPolicy::Unchecked,
            binding_array: BoundsCheckPolicy::Unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        // A capability for 16-bit inputs and outputs, which kernels do not have.
        use_storage_input_output_16: false,
        debug_info: source.map(|source| spv::DebugInfo {
            source_code: &source.source_code,
            file_name: &source.file_name,
            language: spirv::SourceLanguage::WGSL,
        }),
        // WGSL defines divisions by zero.
        emit_int_div_checks: checks.int_div_checks,
        ..spv::Options::default()
    }
}

/// Values of specialization constants: the key of each is its `SpecId`, as in WGSL's `@id`.
fn specialization(
    of: &[SpecializationConstant],
    constants: &PipelineConstants,
) -> Result<Specialization, PipelineError> {
    let mut values = Specialization::new();
    for (key, &value) in constants {
        let constant = of.iter().find(|constant| constant.id.is_some_and(|id| id.to_string() == *key));
        let Some((id, constant)) = constant.and_then(|constant| Some((constant.id?, constant))) else {
            let problem = format!("the module has no specialization constant `{key}`");
            return Err(PipelineError::PipelineConstants(ShaderStages::COMPUTE, problem));
        };
        let bits = bits(constant.ty, value).ok_or_else(|| {
            let problem = format!("{value} is no value of the specialization constant `{key}`");
            PipelineError::PipelineConstants(ShaderStages::COMPUTE, problem)
        })?;
        values.insert(id, bits);
    }
    Ok(values)
}

/// The bits of a number as a constant of this type, if it has that value or, for a float, one near it.
fn bits(ty: ConstantType, value: f64) -> Option<u64> {
    let whole = |min: f64, end: f64| value.trunc() == value && min <= value && value < end;
    match ty {
        ConstantType::Bool => Some(u64::from(value != 0.0)),
        ConstantType::Int(bits) => {
            let end = 2f64.powi(bits as i32 - 1);
            whole(-end, end).then_some((value as i64).cast_unsigned())
        }
        ConstantType::Uint(bits) => whole(0.0, 2f64.powi(bits as i32)).then_some(value as u64),
        ConstantType::Float(_) => ty.float(value),
    }
}

pub(crate) fn linkage(problem: String) -> PipelineError {
    PipelineError::Linkage(ShaderStages::COMPUTE, problem)
}

/// The text of what the compiler or the device refuses, with the line; a lost device stays one.
pub(crate) fn pipeline_error(error: Error) -> PipelineError {
    match error {
        Error::DeviceLost(_) | Error::OutOfHostMemory(_) => PipelineError::Device(device_error(error)),
        other => linkage(other.to_string()),
    }
}

fn shader_error(error: Error) -> ShaderError {
    match error {
        Error::DeviceLost(_) | Error::OutOfHostMemory(_) => ShaderError::Device(device_error(error)),
        other => ShaderError::Compilation(other.to_string()),
    }
}
