//! Parsed scripts, and messages for wrong ones.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::amber::script::{Action, AmberSource, SubgroupSize};

const SHADER: &str = "SHADER compute s SPIRV-ASM TARGET_ENV spv1.3\nOpNop\nEND\n";

fn read(body: &str) -> Result<Script, Stop> {
    parse(&format!("#!amber\n{body}"), Path::new("/nowhere"))
}

fn script(body: &str) -> Script {
    read(body).unwrap_or_else(|stop| panic!("{stop:?}\n{body}"))
}

fn fails(body: &str, message: &str) {
    assert_eq!(read(body).err(), Some(Stop::Fail(message.to_owned())), "{body}");
}

fn skips(body: &str, message: &str) {
    assert_eq!(read(body).err(), Some(Stop::Skip(message.to_owned())), "{body}");
}

fn bytes(declaration: &str) -> Vec<u8> {
    script(declaration).buffers.remove(0).bytes
}

#[test]
fn every_fill_form() {
    assert_eq!(bytes("BUFFER b DATA_TYPE uint8 DATA 1 -1 0x10 END"), [1, 255, 16]);
    assert_eq!(bytes("BUFFER b DATA_TYPE int16 SIZE 3 FILL -2"), [254, 255, 254, 255, 254, 255]);
    assert_eq!(bytes("BUFFER b DATA_TYPE uint8 SIZE 4 SERIES_FROM 7 INC_BY 3"), [7, 10, 13, 16]);
    assert_eq!(bytes("BUFFER b DATA_TYPE float SIZE 2 SERIES_FROM 1 INC_BY 0.5"), [0, 0, 128, 63, 0, 0, 192, 63]);
    assert_eq!(bytes("BUFFER b DATA_TYPE int8 WIDTH 2 HEIGHT 2 FILL 9"), [9; 4]);
    assert_eq!(bytes("BUFFER b DATA_TYPE vec3<uint8> DATA\n1 2 3\n4 5 6\nEND"), [1, 2, 3, 0, 4, 5, 6, 0]);
    assert_eq!(bytes("BUFFER b DATA_TYPE float16 SIZE 1 FILL 1.0"), [0, 0x3c]);
    assert_eq!(bytes("BUFFER b DATA_TYPE uint8[] STD140 SIZE 1 FILL 1").len(), 16);
    assert_eq!(bytes("STRUCT s\nuint8 a\nuint32 b\nEND\nBUFFER b DATA_TYPE s DATA 1 2 END"), [1, 0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn images_have_a_shape() {
    let script =
        script("IMAGE i FORMAT R8G8_UINT DIM_2D WIDTH 3 HEIGHT 2 FILL 1\nIMAGE j DATA_TYPE float DIM_1D WIDTH 4");
    assert_eq!((script.buffers[0].image.size, script.buffers[0].bytes.len()), ([3, 2, 1], 12));
    assert_eq!((script.buffers[1].image.size, script.buffers[1].bytes.len()), ([4, 1, 1], 16));
    fails("IMAGE i FORMAT R8_UINT DIM_3D WIDTH 3 HEIGHT 2", "2:7: the image needs a DEPTH of 1 or more");
}

#[test]
fn wrong_buffers_are_named_with_their_place() {
    fails("BUFFER b DATA_TYPE float", "2:25: expected what the buffer is filled with, found the end of the line");
    fails("BUFFER b DATA_TYPE float FILL 1", "2:26: FILL needs a SIZE");
    fails("BUFFER b DATA_TYPE foo DATA 1 END", "2:20: there is no type `foo`");
    fails("BUFFER b DATA_TYPE vec2<float> DATA 1 END", "2:32: 1 values are not a whole number of elements of 2");
    fails("BUFFER b DATA_TYPE uint8 DATA\n1\n 256 END", "4:2: 256 does not fit 8 bits");
    fails("BUFFER b DATA_TYPE vec2<int8> SIZE 2 SERIES_FROM 0 INC_BY 1", "2:38: SERIES_FROM fills scalars only");
    fails(
        "BUFFER b DATA_TYPE uint64 SIZE 4294967295 FILL 0",
        "2:43: 34359738360 bytes; a buffer has at most 1073741824",
    );
    fails("BUFFER b DATA_TYPE uint8 DATA 1", "2:1: DATA has no END");
}

#[test]
fn a_pipeline_takes_everything_that_is_bound() {
    let text = format!(
        "DEVICE_FEATURE SubgroupSizeControl.subgroupSizeControl\n{SHADER}BUFFER b DATA_TYPE uint32 SIZE 64 FILL 0\n\
         SAMPLER t MAG_FILTER linear COMPARE on COMPARE_OP less\nIMAGE i FORMAT R32_UINT DIM_2D MIP_LEVELS 2 WIDTH 4 HEIGHT 4 FILL 0\n\
         PIPELINE compute p\n ATTACH s ENTRY_POINT e SPECIALIZE 1 AS uint32 7 \\\n SPECIALIZE 2 AS float 1.0\n\
         SUBGROUP s\n REQUIRED_SIZE MAX\n END\n\
         BIND BUFFER b AS storage_dynamic DESCRIPTOR_SET 1 BINDING 2 OFFSET 64 DESCRIPTOR_OFFSET 16 DESCRIPTOR_RANGE 32\n\
         BIND BUFFER_ARRAY b b AS uniform DESCRIPTOR_SET 0 BINDING 3\n\
         BIND BUFFER i AS combined_image_sampler SAMPLER t DESCRIPTOR_SET 0 BINDING 4 BASE_MIP_LEVEL 1\n\
         BIND SAMPLER t DESCRIPTOR_SET 0 BINDING 5\n BIND BUFFER b AS push_constant\nEND\n\
         DERIVE_PIPELINE q FROM p\n ATTACH s SPECIALIZE 1 AS uint32 8\nEND\n"
    );
    let script = script(&text);
    let [p, q] = &script.pipelines[..] else { panic!("{}", script.pipelines.len()) };
    assert_eq!((p.entry.as_str(), p.push, p.subgroup.required), ("e", Some(0), Some(SubgroupSize::Any)));
    assert_eq!(p.specialization, BTreeMap::from([(1, 7), (2, 0x3f80_0000)]));
    let dynamic = p.bindings[&(1, 2)].items[0];
    assert_eq!((dynamic.dynamic_offset, dynamic.offset, dynamic.range), (64, 16, Some(32)));
    assert_eq!(p.bindings[&(0, 3)].items.len(), 2);
    let combined = p.bindings[&(0, 4)].items[0];
    assert_eq!((combined.buffer, combined.sampler, combined.level), (Some(1), Some(0), 1));
    assert_eq!(q.specialization, BTreeMap::from([(1, 8), (2, 0x3f80_0000)]));
    assert_eq!(q.bindings.len(), p.bindings.len());
    assert!(script.samplers[0].compare.is_some());
}

#[test]
fn commands() {
    let body = format!(
        "{SHADER}BUFFER a DATA_TYPE float SIZE 4 FILL 0\nBUFFER b DATA_TYPE float SIZE 4 FILL 0\nPIPELINE compute p\nATTACH s\nEND\n\
         REPEAT 3\nRUN TIMED_EXECUTION p 1 2 3\nCOPY a TO b\nEND\nEXPECT a IDX 4 TOLERANCE 5% 0.1 EQ 1 2.5\n\
         EXPECT a EQ_BUFFER b\nEXPECT a RMSE_BUFFER b TOLERANCE 0.5\nEXPECT a IDX 0 0 SIZE 1 1 EQ_RGB 1 2 255 TOLERANCE 0.1\n\
         SET ENGINE_DATA fence_timeout_ms 500\n"
    );
    let script = script(&body);
    let Action::Repeat(3, inside) = &script.commands[0].what else { panic!("{:?}", script.commands[0]) };
    assert!(matches!(inside[0].what, Action::Run { groups: [1, 2, 3], .. }));
    let Action::ExpectValues(expect) = &script.commands[1].what else { panic!("{:?}", script.commands[1]) };
    assert_eq!((expect.offset, expect.values.len(), expect.tolerances[0].percent), (4, 2, true));
    assert_eq!(expect.tolerances[1].value, 0.1);
    assert_eq!((script.commands.len(), script.fence_timeout_ms), (5, Some(500)));
}

#[test]
fn wrong_commands_are_named_with_their_place() {
    let buffer = "BUFFER a DATA_TYPE uint32 SIZE 4 FILL 0\n";
    fails(&format!("{buffer}EXPECT a IDX 0 TOLERANCE 1 LT 3"), "3:28: TOLERANCE goes with EQ only");
    fails(&format!("{buffer}EXPECT a IDX 0 EQ"), "3:16: no values to compare with");
    fails(&format!("{buffer}EXPECT a IDX 0 EQ 1.5"), "3:19: 1.5 is not an integer");
    fails(&format!("{buffer}EXPECT a IDX -1 EQ 1"), "3:14: `-1` is not a valid index");
    fails(&format!("{buffer}COPY a TO a"), "3:11: a buffer is not copied to itself");
    fails("RUN p 1 1 1", "2:5: there is no pipeline `p`");
    fails("FOO", "2:1: `FOO` is not a command");
    assert_eq!(parse("", Path::new("")).err(), Some(Stop::Fail("1:1: a script begins with `#!amber`".into())));
}

#[test]
fn what_is_not_for_compute_is_skipped_and_says_so() {
    skips("SHADER vertex v PASSTHROUGH", "needs a graphics pipeline (line 2)");
    skips("PIPELINE graphics p\nEND", "needs a graphics pipeline (line 2)");
    skips("SHADER compute c OPENCL-C\nEND", "needs clspv, a compiler for OPENCL-C (line 2)");
    skips("\n{device_features}", "a template: `{device_features}` is to be filled in (line 3)");
    skips("BUFFER b DATA_TYPE uint8 SIZE 2 FILE TEXT in.txt", "needs the file `in.txt`, which is not there (line 2)");
}

#[test]
fn virtual_files_are_sources() {
    let body = "VIRTUAL_FILE a/b.comp\nvoid main() {}\nEND\nSHADER compute s GLSL VIRTUAL_FILE a/b.comp\n";
    let script = script(body);
    assert!(matches!(&script.shaders[0].source, AmberSource::Inline(text) if text == "void main() {}\n"));
    fails("SHADER compute s GLSL VIRTUAL_FILE x", "2:36: there is no virtual file `x`");
}
