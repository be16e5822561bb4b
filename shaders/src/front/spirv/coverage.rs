//! Generates and checks `docs/spirv.md`: what is supported, and why the rest is not. Execution modes, built-ins and
//! decorations are in [`enumerants`](super::enumerants).
//!
//! Capabilities are queried one by one. An instruction is supported if the source text of one of the translator's
//! chapters names it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use rspirv::grammar::INSTRUCTION_TABLE;
use spirv::Capability;

use super::capability::is_supported;
use super::enumerants::tables;
use super::stages::is_of_fragments;

/// Suffixes of vendor extensions.
pub(super) const VENDORS: [&str; 8] = ["INTEL", "ALTERA", "NV", "NVX", "AMD", "QCOM", "ARM", "HUAWEI"];

/// Files that name instructions without supporting them.
const OTHERS: &[&str] = &[
    "coverage.rs",
    "enumerants.rs",
    "capability.rs",
    "words.rs",
    "tests.rs",
    "width_tests.rs",
    "testing.rs",
    "stages.rs",
];

/// Why a capability, or an instruction that needs one, is not supported.
pub(super) fn reason(capability: Capability) -> &'static str {
    use Capability as C;
    let name = format!("{capability:?}");
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&VENDORS) || ends(&["TENSORS"]) {
        return "a vendor's extension";
    }
    match capability {
        C::Kernel
        | C::Addresses
        | C::Linkage
        | C::Vector16
        | C::Float16Buffer
        | C::Pipes
        | C::Groups
        | C::DeviceEnqueue
        | C::LiteralSampler
        | C::GenericPointer
        | C::SubgroupDispatch
        | C::NamedBarrier
        | C::PipeStorage
        | C::ImageBasic
        | C::ImageReadWrite
        | C::ImageMipmap => "OpenCL kernels only",
        C::Geometry
        | C::Tessellation
        | C::TessellationPointSize
        | C::GeometryPointSize
        | C::GeometryStreams
        | C::ClipDistance
        | C::CullDistance
        | C::SampleRateShading
        | C::InterpolationFunction
        | C::InputAttachment
        | C::InputAttachmentArrayDynamicIndexing
        | C::InputAttachmentArrayNonUniformIndexing
        | C::TransformFeedback
        | C::MultiViewport
        | C::MultiView
        | C::DrawParameters
        | C::StencilExportEXT
        | C::StorageInputOutput16
        | C::ShaderViewportIndex
        | C::ShaderLayer
        | C::ShaderViewportIndexLayerEXT
        | C::FragmentFullyCoveredEXT
        | C::FragmentDensityEXT
        | C::FragmentShadingRateKHR
        | C::FragmentBarycentricKHR
        | C::FragmentShaderSampleInterlockEXT
        | C::FragmentShaderPixelInterlockEXT
        | C::FragmentShaderShadingRateInterlockEXT
        | C::DemoteToHelperInvocation
        | C::DerivativeControl
        | C::MeshShadingEXT
        | C::AtomicStorage
        | C::TileImageColorReadAccessEXT
        | C::TileImageDepthReadAccessEXT
        | C::TileImageStencilReadAccessEXT => "graphics stages only",
        C::RayTracingKHR
        | C::RayQueryKHR
        | C::RayQueryProvisionalKHR
        | C::RayTraversalPrimitiveCullingKHR
        | C::RayTracingProvisionalKHR
        | C::RayCullMaskKHR
        | C::RayTracingPositionFetchKHR
        | C::RayQueryPositionFetchKHR
        | C::RayTracingOpacityMicromapEXT => "ray tracing only",
        C::SampledRect | C::ImageRect => "OpenGL only",
        C::StorageImageMultisample | C::ImageMSArray => "not supported: images have one sample",
        C::Int64ImageEXT => "not supported: texels with atomics have 32 bits",
        C::SparseResidency => "not supported: the memory of an image is fully bound",
        C::DenormFlushToZero | C::RoundingModeRTZ => {
            "not supported: floats preserve denormals and round to nearest even"
        }
        _ => "of an unsupported extension",
    }
}

/// Every capability that the `spirv` crate has, once.
fn capabilities() -> BTreeMap<String, Capability> {
    (0..1 << 13).filter_map(Capability::from_u32).map(|capability| (format!("{capability:?}"), capability)).collect()
}

/// Collects the names after `Op::` or `Spv::` in the chapters.
fn supported(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the reader's folder is there").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            supported(&path, names);
        } else if !OTHERS.contains(&name.as_str()) && !path.to_string_lossy().contains("precision") {
            let text = std::fs::read_to_string(&path).expect("a file of the reader");
            let imports = text.lines().filter(|line| line.starts_with("use spirv::"));
            let plain = imports.map(|line| line.replace("Op as ", "")).any(|line| {
                line.contains(" Op}") || line.contains("::Op;") || line.contains(" Op,") || line.contains("{Op,")
            });
            // Where `Op` is the IR's type, SPIR-V's is `Spv`.
            for prefix in if plain { ["Spv::", "Op::"] } else { ["Spv::", "spirv::Op::"] } {
                for (at, _) in text.match_indices(prefix) {
                    let before = text[..at].chars().next_back();
                    let foreign = before.is_some_and(|c| c.is_alphanumeric() || c == ':' || c == '_');
                    let word: String = text[at + prefix.len()..].chars().take_while(|c| c.is_alphanumeric()).collect();
                    if !foreign {
                        names.insert(format!("Op{word}"));
                    }
                }
            }
        }
    }
}

fn table() -> String {
    let mut text = String::from(
        "# Supported SPIR-V

This page is written by a test (`shaders/src/front/spirv/coverage.rs`, `BLESS=1` rewrites it) from the reader's code.

These universal limits of SPIR-V are enforced: 16,383 members, 16,383 pairs of a switch, 255 parameters, arguments and
indexes, 65,535 global and 524,287 local variables, constructs nested 1,023 deep, types nested 255 deep. An error names
the limit and the word.

## Capabilities

| Capability | |
| --- | --- |
",
    );
    for (name, capability) in capabilities() {
        let what = if is_supported(capability) { "supported" } else { reason(capability) };
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
    let mut names = BTreeSet::new();
    supported(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/front/spirv"), &mut names);
    text += "\n## Instructions\n\n| Instruction | |\n| --- | --- |\n";
    let mut rows = BTreeMap::new();
    for inst in INSTRUCTION_TABLE.iter() {
        let name = format!("Op{}", inst.opname);
        let needs = inst.capabilities.iter().find(|&&capability| !is_supported(capability)).copied();
        let any = inst.capabilities.is_empty() || inst.capabilities.iter().any(|&capability| is_supported(capability));
        let what = if any && names.contains(&name) {
            "supported".to_owned()
        } else {
            match needs {
                Some(capability) if !any => reason(capability).to_owned(),
                _ => "of an unsupported extension".into(),
            }
        };
        rows.insert(name, if is_of_fragments(inst.opcode) { "graphics stages only".into() } else { what });
    }
    for (name, what) in rows {
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
    text += "\n## Instructions of GLSL.std.450\n\n| Instruction | |\n| --- | --- |\n";
    let mut glsl = BTreeSet::new();
    words_after(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/front/spirv/glsl450"), "Glsl::", &mut glsl);
    for name in (1..100).filter_map(spirv::GlslStd450Op::from_u32).map(|op| format!("{op:?}")) {
        let what = if glsl.contains(&name) { "supported" } else { "graphics stages only" };
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
    text + &tables()
}

/// Collects the names after a prefix in the files of a folder.
fn words_after(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the reader's folder is there").flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        for (at, _) in text.match_indices(prefix) {
            names.insert(text[at + prefix.len()..].chars().take_while(|c| c.is_alphanumeric()).collect());
        }
    }
}

#[test]
fn the_page_says_what_is_supported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/spirv.md");
    let now = table();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &now).expect("docs can be written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == now, "docs/spirv.md is out of date: run this test with BLESS=1, and read the difference");
}
