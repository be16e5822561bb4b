//! Messages, overrides and layouts of WGSL texts.

use std::collections::BTreeMap;

use naga::back::PipelineConstants;

use super::WgslModule;
use crate::front::data_layout::DataLayout;

#[test]
fn a_parse_error_shows_the_line() {
    let error = WgslModule::parse("fn main() {\n  let x = ;\n}").unwrap_err();
    assert!(error.to_string().starts_with("expected expression"), "{error}");
    assert!(error.to_string().contains("wgsl:2:11"), "{error}");
}

#[test]
fn subgroups_may_be_enabled_and_immediates_have_their_older_name() {
    let text = "enable subgroups;
        var<push_constant> n: u32;
        @group(0) @binding(0) var<storage, read_write> to: u32;
        @compute @workgroup_size(16) fn main() { to = subgroupAdd(n); }";
    let module = WgslModule::parse(text).unwrap();
    assert_eq!(module.kernel("main", &BTreeMap::new()).unwrap().push_bytes, 4);
    let error = WgslModule::parse(&text.replace("to = ", "two = ")).unwrap_err().to_string();
    assert!(error.contains("wgsl:4:50") && error.contains("fn main() { two = subgroupAdd(n); }"), "{error}");
}

#[test]
fn a_validation_error_shows_the_line() {
    let error = WgslModule::parse("@compute @workgroup_size(1) fn main() {\n  let x: u32 = 1.5;\n}").unwrap_err();
    assert!(error.to_string().contains("wgsl:2:7"), "{error}");
}

#[test]
fn an_override_without_a_value_is_named() {
    for (declared, expected) in [
        ("@id(3) override m: u32;", "`m` has no value: set specialization constant 3, or give it a default at wgsl:2:"),
        ("override n: u32;", "`n` has no value: set it by its name, or give it a default at wgsl:2:"),
    ] {
        let used = declared.split(' ').find(|word| word.ends_with(':')).unwrap_or_default().trim_end_matches(':');
        let text =
            format!("\n{declared} var<workgroup> a: u32;\n@compute @workgroup_size(1) fn main() {{ a = {used}; }}");
        let error = WgslModule::parse(&text).unwrap().kernel("main", &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.starts_with("the override ") && error.contains(expected), "{error}");
    }
}

/// Texts that the guard accepts must fit the stack of an ordinary thread, on which the tests run.
#[test]
fn the_longest_chains_fit_the_stack() {
    let declare = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;";
    let body = |text: &str| format!("{declare} @compute @workgroup_size(1) fn main() {{ {text} }}");
    let links: String = (0..2000).map(|i| format!("const c{i} = c{} + 1u;", i + 1)).collect();
    for source in [
        body(&format!("o[0] = {}1u;", "o[1]+".repeat(499))),
        body(&format!("o[0] = u32({}1i);", "- ".repeat(990))),
        body(&format!("if o[0] == 1u {{}} {}", "else if o[1] == 2u { o[2] = 3u; }".repeat(400))),
        format!("{links} const c2000 = 1u; {}", body("o[0] = c0;")),
    ] {
        let module = WgslModule::parse(&source).unwrap();
        assert!(module.kernel("main", &BTreeMap::new()).is_ok());
    }
    let error = WgslModule::parse(&body(&format!("\no[0] = {}1u;", "1u+".repeat(16_000)))).unwrap_err();
    assert_eq!(error.to_string(), "more than 1000 operators and brackets in one expression at wgsl:2:3004");
}

#[test]
fn the_name_of_the_file_is_in_errors_and_lines() {
    let parse = |text: &str| WgslModule::parse_named(text, "blur.wgsl");
    let error = parse("@compute @workgroup_size(1) fn main() { nonsense }").unwrap_err().to_string();
    assert!(error.contains("blur.wgsl:1:") && !error.contains(" wgsl:"), "{error}");
    let error = parse("@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }").unwrap_err().to_string();
    assert!(error.contains("blur.wgsl:1:") && !error.contains(" wgsl:"), "{error}");
    let text = "\n@group(0) @binding(0) var<storage, read_write> out: u32;
        @compute @workgroup_size(1) fn main() { out = 1u; }";
    let module = parse(text).unwrap();
    assert_eq!(module.declared(0, 0).unwrap().to_string(), "blur.wgsl:2:23");
    let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
    assert!(kernel.lines.values().all(|line| &*line.file == "blur.wgsl"), "{:?}", kernel.lines);
    assert_eq!(module.source_text("blur.wgsl"), Some(text));
    let error = module.kernel("other", &BTreeMap::new()).unwrap_err();
    assert_eq!(error.message, "no compute entry point `other`; the module has `main`");
}

#[test]
fn blocks_have_the_names_and_offsets_of_their_members() {
    let text = "struct Light { color: vec3f, kind: u32 }
        struct Scene { count: u32, at: vec3f, turn: mat3x3f, lights: array<Light> }
        @group(0) @binding(0) var<storage, read_write> scene: Scene;
        @group(0) @binding(1) var<storage, read> list: array<vec2<i32>>;
        @group(1) @binding(0) var<uniform> rows: array<vec4f, 3>;
        var<immediate> step: f32;
        @compute @workgroup_size(1) fn main() { scene.at.x = rows[1].x + step + f32(list[0].y); }";
    let blocks = WgslModule::parse(text).unwrap().blocks("main", &BTreeMap::new()).unwrap();
    let shown: Vec<_> = blocks.buffers.values().map(ToString::to_string).collect();
    assert_eq!(shown, ["Scene", "array<vec2<i32>>", "array<vec4<f32>, 3>"]);
    let names: Vec<_> = blocks.names.values().map(String::as_str).collect();
    assert_eq!(names, ["scene", "list", "rows"]);
    let DataLayout::Struct { members, .. } = &blocks.buffers[&(0, 0)] else { panic!("{blocks:?}") };
    let members = members.iter().map(|member| format!("{} {} {}", member.offset, member.name, member.layout));
    assert_eq!(
        members.collect::<Vec<_>>(),
        ["0 count u32", "16 at vec3<f32>", "32 turn mat3x3<f32>", "80 lights array<Light>"]
    );
    assert_eq!(blocks.buffers[&(0, 0)].tail().unwrap().0, 80);
    assert_eq!(blocks.push.unwrap().to_string(), "f32");
}

#[test]
fn what_is_not_supported_is_named() {
    let text = "@compute @workgroup_size(1) fn main() { }
        @group(0) @binding(0) var tex: texture_external;";
    let error = WgslModule::parse(text).unwrap_err().to_string();
    assert!(error.contains("TEXTURE_EXTERNAL"), "{error}");
}

#[test]
fn overrides_take_their_values_by_id_or_without_one_by_a_number_above() {
    let source = "@id(7) override a: i32 = 1; @id(8) override b: f32; override c: bool = true; override d: u32 = 1;
        @group(0) @binding(0) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(1) fn main() { out[0] = select(0.0, f32(a) + b, c); }";
    let module = WgslModule::parse(source).unwrap();
    let constants: Vec<_> = module.specialization_constants().map(|constant| constant.to_string()).collect();
    assert_eq!(constants, ["7 (a: i32)", "8 (b: f32)", "c (bool)", "d (u32)"]);
    let keys: Vec<_> = module.specialization_constants().map(|constant| constant.key).collect();
    assert_eq!(keys, [7, 8, 65536 + 2, 65536 + 3]);
    let mut values = BTreeMap::from([(7, (-3i32).cast_unsigned().into()), (8, 0.5f32.to_bits().into()), (99, 1u64)]);
    assert_eq!(module.constants(&values), PipelineConstants::from_iter([("7".into(), -3.0), ("8".into(), 0.5)]));
    values.insert(keys[3], 40);
    assert_eq!(module.constants(&values).get("d"), Some(&40.0));
    let missing = module.to_spirv("main", &BTreeMap::new()).unwrap_err();
    assert!(missing.to_string().contains('b'), "{missing}");
    assert_eq!(module.to_spirv("main", &values).unwrap()[0], 0x0723_0203);
}

#[test]
fn every_entry_point_can_be_asked_for() {
    let source = "@compute @workgroup_size(1) fn one() {} @compute @workgroup_size(2) fn two() {}";
    let module = WgslModule::parse(source).unwrap();
    assert_eq!(module.entry_points().collect::<Vec<_>>(), ["one", "two"]);
    for name in ["one", "two"] {
        assert!(module.to_spirv(name, &BTreeMap::new()).is_ok());
    }
    let error = module.kernel("three", &BTreeMap::new()).unwrap_err();
    assert_eq!(error.message, "no compute entry point `three`; the module has `one`, `two`");
}
