//! Errors of WGSL texts: they name what their author wrote, and nothing of the compiler.

use spelter::{Context, Error};

const DECLARED: &str = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<uniform> u: vec4f;
@group(0) @binding(2) var<storage, read> r: array<u32>;
";
const MAIN: &str = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u)";

/// The body of the kernel, or with `MAIN` in it all after the declarations, and a part of the message.
const MISTAKES: &[(&str, &str)] = &[
    ("r[0] = 1u;", "`r[0]` cannot be written"),
    ("a[id] = 1.0;", "`id` (vec3<u32>) is no index"),
    ("if (id.x) { a[0] = 1.0; }", "the condition `id.x` (u32) is no bool"),
    ("for (var i = 0; i < r[0]; i++) { a[i] = 1.0; }", "there is no operator `<` for `i` (i32) and `r[0]` (u32)"),
    ("let m = mat3x3f(); a[0] = (m * u).x;", "there is no operator `*` for"),
    ("a[0] = u % 2;", "`u % 2` (vec4<f32>) is assigned to `a[0]`, which is f32"),
    ("let b = !id.x;", "there is no operator `!` for `id.x` (u32)"),
    ("a[0] = a;", "`a` (array<f32>) cannot be used as a value"),
    ("return 1u;", "it returns `1u` (u32), where its declaration says nothing"),
    ("break;", "The `break` is used outside of a `loop` or `switch` context"),
    ("switch (id.x) { case 1: { } }", "The `switch` is missing a `default` case"),
    ("fn f(x: f32) -> f32 { if (x > 1.0) { return x; } } MAIN { a[0] = f(1.0); }", "the function `f` is invalid"),
    (
        "fn f(x: f32) -> f32 { return 1u; } MAIN { a[0] = f(1.0); }",
        "it returns `1u` (u32), where its declaration says f32",
    ),
    ("fn f(x: f32) -> f32 { return x; } MAIN { a[0] = f(1u); }", "argument 1 is `1u` (u32), where f32 is needed"),
    ("fn f(x: f32) -> f32 { return x; } MAIN { a[0] = f(1.0, 2.0); }", "the call of `f` is invalid"),
    ("var<workgroup> t: array<f32>; MAIN { t[0] = 1.0; }", "its type has no size"),
    ("@group(0) @binding(3) var<uniform> bad: array<f32, 4>; MAIN { a[0] = bad[0]; }", "are not met by array<f32, 4>"),
    ("@group(0) @binding(3) var<storage> bad: array<bool, 4>; MAIN { if bad[0] { a[0] = 1.0; } }", "such as a bool"),
    (
        "@group(0) @binding(0) var<storage> b: array<f32>; MAIN { a[0] = b[0]; }",
        "the group and binding of `b` are those of another variable",
    ),
    (
        "@group(0) @binding(3) var s: texture_2d<f32>; MAIN { a[0] = textureLoad(s, id.x, 0).x; }",
        "the coordinates `id.x` (u32) have not the dimensions of the image",
    ),
    (
        "@group(0) @binding(3) var s: texture_storage_2d<rgba8unorm, write>;
         MAIN { textureStore(s, vec2u(0u), vec3f(1.0)); }",
        "the value `vec3f(1.0)` (vec3<f32>) is stored in an image that takes vec4<f32>",
    ),
    (
        "@group(0) @binding(3) var s: texture_storage_2d<rgba8unorm, write>;
         MAIN { a[0] = textureLoad(s, vec2u(0u)).x; }",
        "`s` is used in a way that its declaration does not allow: read",
    ),
    (
        "fn g(p: ptr<storage, array<f32>, read_write>) { (*p)[0] = 1.0; } MAIN { g(&a); }",
        "the parameter `p` is a pointer",
    ),
    (
        "struct T { a: array<f32>, b: u32 } @group(0) @binding(3) var<storage> t: T; MAIN { a[0] = t.a[0]; }",
        "`T` is invalid",
    ),
    (
        "@compute @workgroup_size(4) fn main(@builtin(position) i: vec4f) { a[0] = i.x; } // MAIN",
        "this kind of shader has no `@builtin(position)`",
    ),
    (
        "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: i32) { } // MAIN",
        "`@builtin(local_invocation_index)` is of type u32, not i32",
    ),
    (
        "struct In { @builtin(global_invocation_id) i: vec2f }
         @compute @workgroup_size(8) fn main(given: In) { a[0] = given.i.x; } // MAIN",
        "`@builtin(global_invocation_id)` is of type vec3<u32>, not vec2<f32>",
    ),
    ("let x = select(u, a[0], vec2<bool>(true));", "`select` takes two values of one type, not vec4<f32> and f32"),
    (
        "struct B { c: sampler } struct A { n: u32, b: B } @group(0) @binding(3) var<storage, read_write> d: A;
         MAIN { d.n = 1u; }",
        "it has a part of type sampler, which is no data",
    ),
    (
        "struct Pos { x: f32, y: f32 } @group(0) @binding(3) var<storage, read_write> d: array<Pos>;
         MAIN { d[0] = vec2(1.0, 2.0); }",
        "the type `vec2<AbstractFloat>` is invalid",
    ),
    ("var s: array<array<u32>, 3>;", "the type `array<array<u32>, 3>` is invalid"),
    ("var s: array<array<u32>, 3>;", "an array cannot have elements of type array<u32>"),
    (
        "fn f(p: ptr<function, u32>) -> u32 { return *p; } MAIN { var x: f32; a[0] = f32(f(&x)); }",
        "argument 1 is `&x` (ptr<function, f32>), where ptr<function, u32> is needed",
    ),
    (
        "fn f(p: ptr<function, u32>) -> u32 { return *p; } fn g(q: ptr<function, f32>) -> u32 { return f(q); }
         MAIN { var x: f32; a[0] = f32(g(&x)); }",
        "argument 1 is `q` (ptr<function, f32>), where ptr<function, u32> is needed",
    ),
];

/// What is wrong with types and parameters, for which the compiler's table has no place, and the text at the place.
const PLACES: &[(&str, &str)] = &[
    (
        "struct Pos { x: f32, y: f32 } @group(0) @binding(3) var<storage, read_write> d: array<Pos>;
         MAIN {
         d[0] = vec2(1.0, 2.0); }",
        "vec2(1.0, 2.0)",
    ),
    ("MAIN {\nvar s: array<array<u32>, 3>; }", "var s"),
    ("@compute @workgroup_size(8)\nfn main(@builtin(num_workgroups) i: i32) { } // MAIN", "fn main"),
];

#[test]
fn errors_of_types_and_parameters_have_a_place() -> Result<(), Error> {
    let context = Context::new()?;
    for (mistake, place) in PLACES {
        let text = format!("{DECLARED}{}\n", mistake.replace("MAIN", MAIN));
        let said = context.program_wgsl(&text).map(drop).map_err(|error| error.to_string()).err().unwrap_or_default();
        let line = text.lines().position(|line| line.contains(place)).map(|line| line + 1).unwrap_or_default();
        assert!(said.contains(&format!("wgsl:{line}:")), "{mistake}\nexpected line {line}\n{said}");
    }
    Ok(())
}

#[test]
fn errors_have_the_words_of_the_text() -> Result<(), Error> {
    let context = Context::new()?;
    let mut wrong = String::new();
    for (mistake, expected) in MISTAKES {
        let rest = match mistake.contains("MAIN") {
            true => mistake.replace("MAIN", MAIN),
            false => format!("{MAIN} {{ {mistake} }}"),
        };
        let text = format!("{DECLARED}{rest}\n");
        let said = context.program_wgsl(&text).map(drop).map_err(|error| error.to_string()).err().unwrap_or_default();
        let own = said.lines().filter(|line| !line.contains('│') || line.contains('^')).collect::<String>();
        let is_number = |part: &str| part.split(']').next().is_some_and(|index| index.parse::<u32>().is_ok());
        let has_numbers = own.split(" [").skip(1).any(is_number) || own.contains("([");
        let has_internals = ["naga", "Expression", "Handle", "Some(", "Scalar", "TypeFlags", "Built-in", "``"]
            .iter()
            .any(|of| own.contains(of));
        if !said.contains(expected) || has_numbers || has_internals {
            wrong += &format!("{mistake}\nexpected {expected}\n{said}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
