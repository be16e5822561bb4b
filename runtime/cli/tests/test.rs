//! `spelter test`: verdicts, reasons, and the scripts that are run.
//!
//! The scripts' shaders are SPIR-V in text form, which needs no compiler.

use std::process::Command;

use crate::common::{Folder, has_glsl};

const AFFINE: &str = include_str!("scripts/affine.amber");

/// A script without shaders, which expects `data[0]` to be a value.
fn expecting(value: u32) -> String {
    format!("#!amber\nBUFFER data DATA_TYPE uint32 DATA 1 2 END\nEXPECT data IDX 0 EQ {value}\n")
}

fn folder(test: &str, scripts: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(test);
    scripts.iter().for_each(|(name, text)| folder.write(name, text.as_bytes()));
    folder
}

#[test]
fn a_script_runs_on_every_back_end() {
    let folder = folder("test_runs", &[("affine.amber", AFFINE)]);
    for options in ["", " --backend interpreter", " --workers 1"] {
        let said = folder.good(&format!("test affine.amber{options}"));
        assert_eq!(said, "pass  affine.amber\n1 passed, 0 failed, 0 skipped\n", "{options}");
    }
}

#[test]
fn results_are_visible_to_the_host_by_a_barrier() {
    let folder = folder("test_checked", &[("affine.amber", AFFINE)]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
    let ended = command.args(["test", "affine.amber"]).current_dir(folder.path()).env("SPELTER_CHECK", "spec");
    let ended = ended.output().expect("the program runs");
    let said = [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(said[0], "pass  affine.amber\n1 passed, 0 failed, 0 skipped\n", "{}", said[1]);
}

#[test]
fn what_is_not_as_expected_fails_with_its_place_and_value() {
    let wrong = AFFINE.replace("IDX 0 EQ 107 208 2 3", "IDX 0 EQ 107 208 2 4");
    let folder = folder("test_fails", &[("wrong.amber", &wrong)]);
    let ended = folder.spelter("test wrong.amber");
    assert_eq!((ended.status, ended.stderr.as_str()), (1, "error: 1 of 1 scripts failed\n"));
    let line = wrong.lines().position(|line| line.starts_with("EXPECT data IDX 0")).map_or(0, |at| at + 1);
    let message = format!("{line}:1: byte 12 of `data` (value 3): 3 EQ 4 is false");
    assert!(ended.stdout.contains(&message), "{}", ended.stdout);
}

#[test]
fn a_script_that_asserts_nothing_says_so() {
    let empty = "#!amber\nBUFFER data DATA_TYPE uint32 DATA 1 2 END\n";
    let silent: String =
        AFFINE.lines().filter(|line| !line.starts_with("EXPECT")).fold(String::new(), |text, line| text + line + "\n");
    let repeated =
        format!("#!amber\nBUFFER data DATA_TYPE uint32 DATA 1 2 END\nREPEAT 2\nEXPECT data IDX 0 EQ {}\nEND\n", 1);
    let folder =
        folder("test_nothing", &[("empty.amber", empty), ("repeated.amber", &repeated), ("silent.amber", &silent)]);
    let ended = folder.spelter("test empty.amber silent.amber repeated.amber");
    let lines: Vec<_> = ended.stdout.lines().collect();
    let expected = [
        "FAIL  empty.amber",
        "      the script has no command: nothing is run, and nothing is asserted",
        "pass  silent.amber: nothing is asserted: the script has no EXPECT",
        "pass  repeated.amber",
        "2 passed, 1 failed, 0 skipped",
    ];
    assert_eq!((ended.status, lines.as_slice()), (1, expected.as_slice()));
    // Also with --quiet and in JSON.
    assert!(folder.good("test silent.amber --quiet").starts_with("pass  silent.amber: nothing is asserted"));
    let json = folder.json("test silent.amber repeated.amber --json");
    assert_eq!(json["scripts"][0]["reason"], "nothing is asserted: the script has no EXPECT");
    assert!(json["scripts"][1]["reason"].is_null() && json["passed"] == 2, "{json}");
}

#[test]
fn a_folder_is_searched_and_the_others_still_run() {
    let bad = "#!amber\nRUN nothing 1 1 1\n";
    let picture = "#!amber\nSHADER vertex v PASSTHROUGH\n";
    let good = expecting(1);
    let scripts = [("a.amber", good.as_str()), ("b.amber", bad), ("c.amber", picture), ("d.txt", "no script")];
    let folder = folder("test_folder", &scripts);
    let ended = folder.spelter("test . --json");
    assert_eq!((ended.status, ended.stderr.as_str()), (1, "error: 1 of 3 scripts failed\n"));
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("one JSON object");
    assert_eq!([&json["passed"], &json["failed"], &json["skipped"]], [1, 1, 1]);
    let verdicts: Vec<_> = json["scripts"].as_array().into_iter().flatten().map(|script| &script["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "fail", "skipped"]);
    assert_eq!(json["scripts"][1]["reason"], "2:5: there is no pipeline `nothing`");
    assert_eq!(json["scripts"][2]["reason"], "needs a graphics pipeline (line 2)");
}

#[test]
fn shards_share_the_scripts() {
    let good = expecting(1);
    let names = ["a.amber", "b.amber", "c.amber", "d.amber", "e.amber"];
    let folder = folder("test_shards", &names.map(|name| (name, good.as_str())));
    let ran = |shard: &str| folder.good(&format!("test . --shard {shard}"));
    assert_eq!(ran("1/2"), "pass  ./a.amber\npass  ./c.amber\npass  ./e.amber\n3 passed, 0 failed, 0 skipped\n");
    assert_eq!(ran("2/2"), "pass  ./b.amber\npass  ./d.amber\n2 passed, 0 failed, 0 skipped\n");
    assert_eq!(folder.good("test . --quiet"), "5 passed, 0 failed, 0 skipped\n");
    assert!(folder.usage("test . --shard 3/2").contains("there is no part 3 of 2"));
}

#[test]
fn what_the_device_lacks_is_skipped_and_unknown_features_fail() {
    let need = |line: &str| format!("#!amber\n{line}\n{}", &expecting(2)["#!amber\n".len()..]);
    let lacks = need("DEVICE_FEATURE geometryShader");
    let unknown = need("DEVICE_FEATURE fluxCapacitor");
    let extension = need("DEVICE_EXTENSION VK_EXT_mesh_shader");
    let folder =
        folder("test_needs", &[("lacks.amber", &lacks), ("unknown.amber", &unknown), ("extension.amber", &extension)]);
    let said = folder.good("test lacks.amber extension.amber");
    assert_eq!(
        said,
        "skip  lacks.amber: needs geometryShader: the device has no graphics\n\
         skip  extension.amber: needs the extension VK_EXT_mesh_shader\n0 passed, 0 failed, 2 skipped\n"
    );
    let ended = folder.spelter("test unknown.amber");
    assert!(ended.status == 1 && ended.stdout.contains("there is no feature `fluxCapacitor`"), "{}", ended.stdout);
}

#[test]
fn broken_shaders_fail_with_the_rule() {
    let refused = AFFINE.replace("OpCapability Shader", "OpCapability Shader\nOpCapability Geometry");
    let no_entry = AFFINE.replace("ENTRY_POINT affine", "ENTRY_POINT other");
    let unbound = AFFINE.replace("DESCRIPTOR_SET 0 BINDING 2", "DESCRIPTOR_SET 0 BINDING 3");
    let folder = folder("test_shaders", &[("a.amber", &refused), ("b.amber", &no_entry), ("c.amber", &unbound)]);
    let said = |name: &str| {
        let ended = folder.spelter(&format!("test {name}"));
        assert_eq!(ended.status, 1, "{}", ended.stdout);
        ended.stdout
    };
    assert!(said("a.amber").contains("capability Geometry is not supported"), "{}", said("a.amber"));
    assert!(said("b.amber").contains("no compute entry point `other`"), "{}", said("b.amber"));
    assert!(said("c.amber").contains("VUID-"), "{}", said("c.amber"));
}

#[test]
fn target_environments_that_do_not_exist_are_named() {
    let shader = |language: &str, target: &str| {
        format!(
            "#!amber\nSHADER compute s {language} TARGET_ENV {target}\nOpNop\nEND\nPIPELINE compute p\nATTACH s\nEND\n\
             RUN p 1 1 1\n"
        )
    };
    let targets = ["spv1.300", "spv1.7", "spv1.", "spv1.+3", "spv1.03", "vulkan1.300"];
    let scripts = ["SPIRV-ASM", "GLSL"].map(|language| targets.map(|target| (target, shader(language, target))));
    let folder = Folder::new("test_targets");
    for (target, script) in scripts.as_flattened() {
        folder.write("target.amber", script.as_bytes());
        let ended = folder.spelter("test target.amber");
        assert_eq!(ended.status, 1, "{script}");
        let message = format!("2:1: shader `s`: there is no target environment `{target}`");
        assert!(ended.stdout.contains(&message), "{message}\n{}", ended.stdout);
    }
    // A module in words says itself for what it is.
    folder.write("target.amber", shader("SPIRV-HEX", "spv1.300").replace("OpNop", "0x07230203").as_bytes());
    let ended = folder.spelter("test target.amber");
    assert!(!ended.stdout.contains("target environment") && ended.stdout.contains("header"), "{}", ended.stdout);
}

#[test]
fn files_beside_the_script() {
    let script =
        |file: &str| format!("#!amber\nBUFFER b DATA_TYPE uint8 SIZE 3 FILE {file}\nEXPECT b IDX 0 EQ 1 2 3\n");
    let (text, binary, absent) = (script("TEXT in.txt"), script("BINARY in.bin"), script("TEXT other.txt"));
    let scripts = [("text.amber", text.as_str()), ("binary.amber", &binary), ("absent.amber", &absent)];
    let folder = folder("test_files", &scripts);
    folder.write("in.txt", b"1 2\n3");
    folder.write("in.bin", &[1, 2, 3]);
    assert!(folder.good("test text.amber binary.amber -q").starts_with("2 passed"));
    assert!(folder.good("test absent.amber").contains("needs the file `other.txt`, which is not there"));
}

#[test]
fn pictures_beside_the_script_fill_images() {
    let mut picture = Vec::new();
    let mut encoder = png::Encoder::new(&mut picture, 2, 1);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header().unwrap().write_image_data(&[1, 2, 3, 255, 1, 2, 3, 255]).unwrap();
    let script = |format: &str, file: &str| {
        format!("#!amber\nBUFFER b FORMAT {format} FILE PNG {file}\nEXPECT b IDX 0 0 SIZE 2 1 EQ_RGBA 1 2 3 255\n")
    };
    let (good, wrong) = (script("R8G8B8A8_UNORM", "in.png"), script("R32_SFLOAT", "in.png"));
    let (broken, absent) = (script("R8G8B8A8_UNORM", "broken.png"), script("R8G8B8A8_UNORM", "absent.png"));
    let scripts =
        [("good.amber", &*good), ("wrong.amber", &wrong), ("broken.amber", &broken), ("absent.amber", &absent)];
    let folder = folder("test_pictures", &scripts);
    folder.write("in.png", &picture);
    folder.write("broken.png", &picture[..30]);
    assert!(folder.good("test good.amber -q").starts_with("1 passed"));
    assert!(folder.good("test absent.amber").contains("needs the file `absent.png`, which is not there"));
    for (name, problem) in [("wrong.amber", "8 bits in each channel"), ("broken.amber", "2:")] {
        let ended = folder.spelter(&format!("test {name}"));
        assert!(ended.status == 1 && ended.stdout.contains(problem), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn paths_must_be_there() {
    let folder = folder("test_paths", &[("x.txt", "")]);
    assert!(folder.error("test .").contains("there is no .amber file in it"));
    let ended = folder.spelter("test nothing.amber");
    assert!(ended.status == 1 && ended.stdout.contains("nothing.amber"), "{}", ended.stdout);
    assert!(folder.usage("test").contains("FILE|DIR"));
}

/// A script whose shader in GLSL has a race, in the script or in a file of its own.
fn racy(shader: &str) -> String {
    format!(
        "#!amber
{shader}
BUFFER b DATA_TYPE uint32 SIZE 64 FILL 0
PIPELINE compute p
  ATTACH s
  BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 0
END
RUN p 1 1 1
"
    )
}

#[test]
fn reports_on_glsl_in_scripts_have_its_lines() {
    if !has_glsl() {
        return;
    }
    let glsl = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { uint a[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  a[l] = l;
  a[l] += a[l ^ 1u];
}
";
    let inside = racy(&format!("\nSHADER compute s GLSL TARGET_ENV spv1.3\n{glsl}END"));
    let old = racy(&format!("SHADER compute s GLSL\n{glsl}END"));
    let beside = racy("SHADER compute s GLSL FILE race.comp");
    let scripts = [
        ("inside.amber", inside.as_str(), "inside.amber", 3),
        ("old.amber", &old, "old.amber", 2),
        ("beside.amber", &beside, "race.comp", 0),
    ];
    let folder = folder("test_lines", &[("race.comp", glsl)]);
    for (script, text, file, before) in scripts {
        folder.write(script, text.as_bytes());
        let ended = folder.spelter(&format!("test {script} --check"));
        assert_ne!(ended.status, 0, "{script}\n{}{}", ended.stdout, ended.stderr);
        let said = ended.stdout + &ended.stderr;
        let (write, read) = (before + 6, before + 7);
        for part in [
            format!("= because nothing orders the write at {file}:{write} before the read at {file}:{read}\n"),
            format!("{read} │   a[l] += a[l ^ 1u];\n"),
        ] {
            assert!(said.contains(&part), "{part}\n{said}");
        }
    }
    // So have the compiler's messages.
    folder.write("wrong.amber", inside.replace("+= a[", "+= b[").as_bytes());
    let said = folder.spelter("test wrong.amber").stdout;
    assert!(said.contains("wrong.amber:10: error: 'b'"), "{said}");
}
