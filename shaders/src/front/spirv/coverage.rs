//! Writes and checks `docs/spirv.md`: what is taken, and why the rest is not. Execution modes, built-ins and decorations are in
//! [`enumerants`](super::enumerants).
//!
//! Capabilities are asked for one by one. An instruction is taken if a chapter of the reader names it where it decides what
//! to do: the chapters' own text is what is searched.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use rspirv::grammar::INSTRUCTION_TABLE;
use spirv::Capability;

use super::capability::is_supported;
use super::enumerants::tables;
use super::stages::is_of_fragments;

/// What names of vendors' extensions end with.
pub(super) const VENDORS: [&str; 8] = ["INTEL", "ALTERA", "NV", "NVX", "AMD", "QCOM", "ARM", "HUAWEI"];

/// Files that name instructions for other reasons than to take them.
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

/// Why a capability, or an instruction that needs one, is not for this reader.
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
        | C::ImageMipmap => "for OpenCL's kernels",
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
        | C::TileImageStencilReadAccessEXT => "for graphics stages",
        C::RayTracingKHR
        | C::RayQueryKHR
        | C::RayQueryProvisionalKHR
        | C::RayTraversalPrimitiveCullingKHR
        | C::RayTracingProvisionalKHR
        | C::RayCullMaskKHR
        | C::RayTracingPositionFetchKHR
        | C::RayQueryPositionFetchKHR
        | C::RayTracingOpacityMicromapEXT => "for ray tracing",
        C::SampledRect | C::ImageRect => "for OpenGL",
        C::StorageImageMultisample | C::ImageMSArray => "not offered: images have one sample",
        C::Int64ImageEXT => "not offered: texels have 32 bits where atomics go",
        C::SparseResidency => "not offered: memory behind images is whole",
        C::DenormFlushToZero | C::RoundingModeRTZ => {
            "not offered: floats always keep denormals and round to nearest even"
        }
        _ => "of an extension that is not offered",
    }
}

/// Every capability that `spirv` knows, once.
fn capabilities() -> BTreeMap<String, Capability> {
    (0..1 << 13).filter_map(Capability::from_u32).map(|capability| (format!("{capability:?}"), capability)).collect()
}

/// Names after `Op::` or `Spv::` in the chapters.
fn taken(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the reader's folder is there").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            taken(&path, names);
        } else if !OTHERS.contains(&name.as_str()) && !path.to_string_lossy().contains("precision") {
            let text = std::fs::read_to_string(&path).expect("a file of the reader");
            let imports = text.lines().filter(|line| line.starts_with("use spirv::"));
            let plain = imports.map(|line| line.replace("Op as ", "")).any(|line| {
                line.contains(" Op}") || line.contains("::Op;") || line.contains(" Op,") || line.contains("{Op,")
            });
            // Where `Op` is the IR's, SPIR-V's are `Spv`.
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
        "# What of SPIR-V is taken

This page is written by a test (`shaders/src/front/spirv/coverage.rs`, `BLESS=1` rewrites it) from the reader's code.

SPIR-V's universal limits are held where more would cost: 16,383 members, 16,383 pairs of a switch, 255 parameters, arguments and indexes, 65,535 global and 524,287 local
variables, constructs nested 1,023 deep, types nested 255 deep. An error names the limit and the word.

## Capabilities

| Capability | |
| --- | --- |
",
    );
    for (name, capability) in capabilities() {
        let what = if is_supported(capability) { "taken" } else { reason(capability) };
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
    let mut names = BTreeSet::new();
    taken(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/front/spirv"), &mut names);
    text += "\n## Instructions\n\n| Instruction | |\n| --- | --- |\n";
    let mut rows = BTreeMap::new();
    for inst in INSTRUCTION_TABLE.iter() {
        let name = format!("Op{}", inst.opname);
        let needs = inst.capabilities.iter().find(|&&capability| !is_supported(capability)).copied();
        let any = inst.capabilities.is_empty() || inst.capabilities.iter().any(|&capability| is_supported(capability));
        let what = if any && names.contains(&name) {
            "taken".to_owned()
        } else {
            match needs {
                Some(capability) if !any => reason(capability).to_owned(),
                _ => "of an extension that is not offered".into(),
            }
        };
        rows.insert(name, if is_of_fragments(inst.opcode) { "for graphics stages".into() } else { what });
    }
    for (name, what) in rows {
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
    text += "\n## Instructions of GLSL.std.450\n\n| Instruction | |\n| --- | --- |\n";
    let mut glsl = BTreeSet::new();
    words_after(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/front/spirv/glsl450"), "Glsl::", &mut glsl);
    for name in (1..100).filter_map(spirv::GlslStd450Op::from_u32).map(|op| format!("{op:?}")) {
        let what = if glsl.contains(&name) { "taken" } else { "for graphics stages" };
        writeln!(text, "| `{name}` | {what} |").expect("strings take everything");
    }
    text + &tables()
}

/// Names after a prefix in the files of a folder.
fn words_after(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the reader's folder is there").flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        for (at, _) in text.match_indices(prefix) {
            names.insert(text[at + prefix.len()..].chars().take_while(|c| c.is_alphanumeric()).collect());
        }
    }
}

#[test]
fn the_page_says_what_is_taken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/spirv.md");
    let now = table();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &now).expect("docs can be written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == now, "docs/spirv.md is out of date: run this test with BLESS=1, and read the difference");
}
