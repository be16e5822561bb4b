//! Compares the measure with naga: for every text that naga accepts, at least as many parts are counted as it copies.

use proptest::prelude::*;

use super::{Measure, check};

/// Number of expressions that naga creates for an accepted text.
fn made(text: &str) -> Option<u64> {
    let module = naga::front::wgsl::parse_str(text).ok()?;
    let functions = module.functions.iter().map(|(_, function)| function);
    let functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    let local: usize = functions.map(|function| function.expressions.len()).sum();
    Some((local + module.global_expressions.len()) as u64)
}

/// Numbers of tokens and of copied parts.
fn measured(text: &str) -> (u64, u64) {
    let mut measure = Measure::new(text);
    let declarations = measure.declarations();
    measure.module(&declarations);
    for function in declarations.iter().filter(|declaration| declaration.is_function) {
        measure.body(function);
    }
    (measure.tokens.len() as u64, measure.parts)
}

fn refused(text: &str) -> String {
    check(text).unwrap_err().0
}

/// A program in which each name has a scalar, or an array or structure of values of earlier names.
fn program(tape: &[u16]) -> String {
    let (mut module, mut body) =
        (String::from("@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n"), String::new());
    // Names of the module, the path to a scalar in them, and the type. The first has a type, the second gets one at its
    // use.
    let scalar = |text: &str| (text.to_owned(), String::new(), "u32".to_owned());
    let mut names: Vec<(String, String, String)> = vec![scalar("1u"), scalar("1")];
    let mut locals: Vec<(String, String)> = Vec::new();
    for (index, step) in tape.iter().enumerate() {
        let mut chosen = names.len().saturating_sub(1 + usize::from(step >> 4) % 3);
        if names[chosen].1.len() > 18 {
            chosen = usize::from(step >> 4) % 2;
        }
        let (name, way, ty) = names[chosen].clone();
        let new = match step % 17 {
            0 | 1 => {
                module += &format!("const k{index} = array({name}, {name});\n");
                (format!("k{index}"), format!("[1]{way}"), format!("array<{ty}, 2>"))
            }
            2 => {
                module += &format!("const n{index} = 1u + 2u;\nalias A{index} = array<{ty}, n{index}>;\n");
                module += &format!("const k{index}: A{index} = A{index}({name}, {name}, {name});\n");
                (format!("k{index}"), format!("[2]{way}"), format!("A{index}"))
            }
            3 | 4 => {
                module += &format!("struct S{index} {{ a: {ty}, @align(16) b: {ty}, c: f32 }}\n");
                module += &format!("const k{index} = S{index}({name}, {name}, f32());\n");
                (format!("k{index}"), format!(".b{way}"), format!("S{index}"))
            }
            5 => {
                module += &format!("const k{index} = array<{ty}, 9>();\n");
                (format!("k{index}"), format!("[3]{way}"), format!("array<{ty}, 9>"))
            }
            6 => {
                module += &format!("const k{index} = array(vec2(1, 2), vec2<i32>(3));\n");
                body += &format!("let x{index} = k{index}[1].x + -k{index}[0].y;\n");
                continue;
            }
            7 => {
                body += &format!("let k{index}: {ty} = {name}; o[{index}] = k{index}{way};\n");
                locals.push((format!("k{index}"), way));
                continue;
            }
            8 => {
                body +=
                    &format!("for (var i = 0; i < 2; i++) {{ const t = {name}; var {} = 1; o[i] = t{way}; }}\n", "k0");
                continue;
            }
            9 => {
                let Some((local, way)) = locals.last().cloned() else { continue };
                body += &format!("{{ let a = array({local}, {local}); let b = array(a, a); o[1] = b[0][1]{way}; }}\n");
                continue;
            }
            10 => {
                body += &format!(
                    "const a{index} = array(array(1, 2), array(3, 4)); const b{index} = array(a{index}, a{index});\n"
                );
                body +=
                    &format!("let c{index}: array<array<array<f32, 2>, 2>, 2> = b{index}; var d{index} = b{index};\n");
                continue;
            }
            11 => {
                body += &format!("o[0] = {name}{way} + ({name}{way} << 1u);\n");
                continue;
            }
            12 => {
                // Many more parts than words.
                for (name, part) in [("i", "1".to_owned()), ("j", format!("i{index}")), ("k", format!("j{index}"))] {
                    module += &format!("const {name}{index} = array({});\n", [&*part; 9].join(", "));
                }
                (format!("k{index}"), "[7][3][8]".into(), "array<array<array<u32, 9>, 9>, 9>".into())
            }
            _ => {
                let (outside, inside) = mixed(step % 17, index, (&name, &way, &ty));
                module += &outside;
                body += &inside;
                continue;
            }
        };
        names.push(new);
    }
    format!("{module}@compute @workgroup_size(1) fn main() {{\nlet z = o[0];\n{body}}}\n")
}

/// Values next to the unknown `z`: module and body use some of them often enough for a miss to show.
fn mixed(step: u16, index: usize, (name, way, ty): (&str, &str, &str)) -> (String, String) {
    match step {
        13 => (
            format!("struct R{index} {{ a: u32, b: {ty} }}\n"),
            format!(
                "{{ let r = R{index}(z, {name}); var s = r; s = R{index}(z, {name}); o[0] = R{index}(z, {name}).b{way}; }}\n"
            )
            .repeat(8),
        ),
        14 => (
            format!("fn f{index}(a: u32, b: {ty}) -> {ty} {{ if a == 1u {{ return b; }} return {name}; }}\n"),
            format!(
                "o[0] = f{index}(z, {name}){way}; o[0] = u32(array({name}, {name})[z]{way});
                {{ let a = array({name}, {name}); o[1] = u32(a[z]{way}); }}\n"
            ),
        ),
        15 => (
            String::new(),
            // Replaces the outermost index by an unknown one.
            match way.split_once(']') {
                Some((first, rest)) if first.starts_with('[') => format!("o[z] = u32({name}[z]{rest});\n").repeat(8),
                _ => format!("o[z] = u32({name}{way});\n"),
            },
        ),
        _ => (
            String::new(),
            format!(
                "o[0] = z * {name}{way} + u32(select({name}{way}, 2, z == 1u)) + max({name}{way}, z); o[0] += {name}{way};
                var v{index}: {ty}; v{index} = {name}; o[1] = array(v{index}, {name})[1]{way} + array<{ty}, 2>({name}, v{index})[z]{way};\n"
            ),
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_copy_is_missed(tape in prop::collection::vec(any::<u16>(), 1..14)) {
        let text = program(&tape);
        let (tokens, parts) = measured(&text);
        let made = made(&text);
        prop_assert!(made.is_some(), "{}\n{text}", naga::front::wgsl::parse_str(&text).unwrap_err().emit_to_string(&text));
        prop_assert!(made.unwrap_or(0) <= 2 * tokens + parts, "{made:?} of {tokens} and {parts} in\n{text}");
    }
}

#[test]
fn what_doubles_is_refused() {
    let doubled = |first: &str, link: fn(usize) -> String| -> String {
        (1..40).fold(first.to_owned(), |text, index| text + &link(index))
    };
    let expected = "constants, written out wherever they are used, have more than 2097152 parts here";
    for text in [
        doubled("const k0 = array(1u, 2u);", |i| format!("const k{i} = array(k{}, k{});", i - 1, i - 1)),
        doubled("const k0 = array(1u, 2u);", |i| {
            format!("alias T = u32; const k{i} = array<T, 2>(k{}, k{});", i - 1, i - 1)
        }),
        // In reverse order, with shadowing names, in a body.
        (1..40).rev().fold(String::new(), |text, i| text + &format!("const k{i} = array(k{}, k{});", i - 1, i - 1))
            + "const k0 = 1;",
        format!("fn f() {{ let k = array(1, 2); {} }}", "{ let k = array(k, k); ".repeat(40)),
        doubled("const k0 = array(1, 2);", |i| format!("const k{i} = array(k{}, k{}) // \u{2028};", i - 1, i - 1))
            .replace("// \u{2028}", "/**/"),
        // Zeros that an operator would expand.
        "const a = -array<u32, 1000000000>();".into(),
        "const n = 1 << 20; const m = n * 16; fn f() { const a = array<array<u32, n>, m>() + 1; }".into(),
        "struct S { a: array<u32, 100000000> } fn f() { let a = !S(); }".into(),
        "const a = -array<u32, firstLeadingBit(7u)>();".into(),
        "const a = abs(array<u32, 100000000>());".into(),
    ] {
        assert_eq!(refused(&text), expected, "{text}");
    }
}

/// A constant of a hundred thousand parts without a type, each of which naga would convert at each use.
#[test]
fn parts_beside_what_is_not_known_are_counted() {
    let tens = |name: &str, part: &str| format!("const {name} = array({});", format!("{part}, ").repeat(10));
    let table = ["1", "A", "B", "C", "D"].iter().zip(["A", "B", "C", "D", "E"]);
    let table: String = table.map(|(part, name)| tens(name, part)).collect();
    let with = |first: &str, used: &str, many: usize| {
        let repeated: String = (0..many).map(|i| used.replace('#', &i.to_string())).collect();
        format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<u32>; {table}
            alias T = array<array<array<array<array<u32, 10>, 10>, 10>, 10>, 10>; struct S {{ a: u32, b: T }}
            struct P {{ b: T, a: u32 }} {first} fn g() {{ var s: S; var t: T; let z = o[0]; {repeated} }}"
        )
    };
    let typed = "const K: T = E;";
    for used in [
        "let y# = S(z, E);",
        "o[z] = S(z, E).b[z][1][2][3][4];",
        "s = S(o[0], E);",
        "o[1] = P(E, o[0]).a;",
        "t = E;",
        "o[0] = u32(E[z][1][2][3][4]);",
        "o[0] = array(t, E)[1][1][2][3][4][5];",
        "o[0] = array<T, 2>(E, t)[z][0][1][2][3][4];",
        "f(z, E);",
        "let y#: T = E;",
        "var y#: T = E;",
        "let y# = E;",
        "if z == 1u { return E; }",
    ] {
        let function = "fn f(a: u32, b: T) {}";
        let message = refused(&with(function, used, 40));
        assert!(message.contains("have more than 2097152 parts here"), "{used}: {message}");
        assert_eq!(check(&with(function, used, 5)).err(), None, "{used}");
    }
    // Constants with a type are not copied.
    for used in ["let y# = S(z, K);", "o[0] = K[z][1][2][3][4];", "o[0] = array(t, K)[1][1][2][3][4][5];"] {
        let text = with(typed, used, 100);
        assert_eq!(check(&text).err(), None, "{used}");
        assert!(made(&text).is_some_and(|made| made < 400_000), "{used}");
    }
    // naga rejects these, but expands them first.
    for (used, many) in [("let y = o[0] + array<u32, 1000000000>();", 1), ("let y = select(E, t, z == 1u);", 40)] {
        assert!(refused(&with("", used, many)).contains("have more than 2097152 parts here"), "{used}");
    }
}

#[test]
fn what_people_write_is_taken() {
    let table: String = (0..4096).map(|i| format!("{i}u, ")).collect();
    let table = format!("const table = array<u32, 4096>({table});\n");
    let squares: String = (1..200).map(|i| format!("let s{i} = s{} * s{};", i - 1, i - 1)).collect();
    let pairs: String = (1..200).map(|i| format!("let p{i} = Pair(p{}.b, p{}.a);", i - 1, i - 1)).collect();
    let own: String = (1..200).map(|i| format!("let q{i} = array(q{}[0], q{}[1]);", i - 1, i - 1)).collect();
    for text in [
        format!("{table} fn f(i: u32) -> u32 {{ {} return 1u; }}", "let a = table[i & 255u] + table[i >> 24u];".repeat(1000)),
        format!("fn f(s0: f32) {{ {squares} }} fn g() {{ const s0 = 1.0; {squares} }}"),
        format!("struct Pair {{ a: f32, b: f32 }} fn f() {{ let p0 = Pair(1.0, 2.0); {pairs} }}"),
        format!("fn f() {{ let q0 = array(1.0, 2.0); {own} }}"),
        "var<private> big: array<u32, 1000000> = array<u32, 1000000>(); fn f() { var a = array<f32, max(7u, 2u)>(); }".into(),
        // Tables and switches of which naga types little or nothing.
        format!("const a = array<f32, 60000>({});", "1.5,".repeat(60_000)),
        format!("const a = array<f32, 60000>({});", ".5,-2.5e-3,1.5f,".repeat(20_000)),
        format!("const a = array<i32, 60000>({});", "-1,".repeat(60_000)),
        format!("const a = array<vec2f, 8000>({});", "vec2f(1.5, -2.5),".repeat(8_000)),
        format!("fn f(n: u32) {{ var x = n; switch x {{ {} default {{}} }} }}", {
            (0..8_000).map(|i| format!("case {i}u: {{ x += {i}u; }}\n")).collect::<String>()
        }),
        format!("fn f() {{ switch o[0] {{ {} default {{}} }} }}", {
            (0..8_000).map(|i| format!("case {i}u: {{ o[1] = {i}u; }}\n")).collect::<String>()
        }),
        // The maximum depth, on the stack of an ordinary thread.
        format!("const a = {}1{};", "(1 || 1 && 1 | 1 ^ ".repeat(190), ")".repeat(190)),
        "fn big(a: S, b: S) -> S { return a; } struct S { a: array<u32, 60000> } fn f(a: S) { let b = big(a, a); let c = big(b, b); }".into(),
    ] {
        assert_eq!(check(&text).err(), None, "{:.80}", text);
    }
}

/// Statements, each with the expressions that naga 30.0 creates for it and how often it visits all before, as counted
/// in its `Typifier::grow`.
const STATEMENTS: [(&str, u64, u64); 48] = [
    ("o[0] = 1u;", 5, 3),
    ("x = y;", 1, 1),
    ("x += y;", 3, 1),
    ("x = max(y, z);", 3, 3),
    ("x = clamp(y, z, x);", 4, 4),
    ("v = vec4f(a, b, a, b);", 5, 2),
    ("v = vec4f(a);", 2, 2),
    ("v = vec4f(1.0, 2.0, 3.0, 4.0);", 9, 2),
    ("x = g(x, y, z);", 4, 4),
    ("x = g(1, 2, 3);", 7, 4),
    ("a = v.x;", 2, 2),
    ("v = v.wzyx;", 2, 1),
    ("x = s.a;", 3, 3),
    ("a = s.b.x;", 4, 4),
    ("x = s.c[y];", 5, 4),
    ("s.d.e = a;", 4, 4),
    ("a = -a;", 2, 1),
    ("q = !q;", 2, 1),
    ("q = q && q;", 6, 4),
    ("q = x < y || y < z;", 11, 6),
    ("x = select(x, y, q);", 4, 2),
    ("if x < y { }", 3, 2),
    ("if q { x = 1u; } else { x = 2u; }", 3, 3),
    ("for (var i = 0; i < 4; i++) { }", 10, 5),
    ("for (var i = 0u; i < x; i += 1u) { x += y; }", 11, 6),
    ("while x < y { x++; }", 6, 2),
    ("loop { if x > y { break; } }", 3, 2),
    ("switch x { case 1u: {} default: {} }", 2, 2),
    ("switch x { case 1u, 2u, 3u: {} default: {} }", 4, 4),
    ("switch x { case 1 + 2: {} default: {} }", 5, 3),
    ("let l# = x;", 1, 1),
    ("let l#: u32 = 1;", 2, 2),
    ("var l#: array<u32, 1 + 2>;", 5, 2),
    ("const l# = K + 2;", 4, 2),
    ("x = K;", 3, 1),
    ("v = KV + v;", 3, 2),
    ("a = KV.x;", 6, 2),
    ("x = u32(a);", 2, 2),
    ("x = bitcast<u32>(a);", 2, 2),
    ("a = m[1][2];", 7, 4),
    ("x = x + y * z - 1u;", 7, 4),
    ("x = (x << 1u) | (y >> 3u);", 7, 4),
    ("x = o[x] + o[y] * o[z];", 14, 9),
    ("v = v * 2.0 + 1.0;", 9, 4),
    ("v = mix(v, v, vec4f(0.5));", 6, 5),
    ("x = x + (K + 1);", 7, 3),
    ("o[x + 1] = o[x + 2] + 3;", 16, 8),
    ("v[x] = a;", 3, 3),
];

#[test]
fn the_time_for_statements_is_that_of_naga() {
    const COUNT: usize = 1000;
    let (mut sum, mut real_sum) = (0, 0);
    for (statement, expressions, typed) in STATEMENTS {
        let body: String = (0..COUNT).map(|i| statement.replace('#', &i.to_string())).collect();
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<u32>; @group(0) @binding(1) var<storage, \
             read_write> s: S; struct S {{ a: u32, b: vec4f, c: array<u32, 4>, d: T }} struct T {{ e: f32 }}
            const K = 1; const KV = vec4f(1, 2, 3, 4); fn g(a: u32, b: u32, c: u32) -> u32 {{ return a; }}
            fn f() {{ var x = 1u; var y = 2u; var z = 3u; var a = 1.0; var b = 2.0; var v = vec4f(); var q = true;
            var m = mat4x4f(); {body} }}"
        );
        assert!(naga::front::wgsl::parse_str(&text).is_ok(), "{statement}");
        let mut measure = Measure::new(&text);
        let declarations = measure.declarations();
        measure.module(&declarations);
        declarations.iter().filter(|declaration| declaration.is_function).for_each(|it| measure.body(it));
        let real = expressions * typed * (COUNT * COUNT / 2) as u64;
        assert!(measure.visits * 2 > real, "{statement}: {} of {real}", measure.visits);
        assert!(measure.visits < real * 5, "{statement}: {} of {real}", measure.visits);
        (sum, real_sum) = (sum + measure.visits, real_sum + real);
    }
    assert!((8..20).contains(&(sum * 10 / real_sum)), "{sum} of {real_sum}");
}

/// A `switch` with as many cases as there may be is taken with all selectors that naga evaluates in a few seconds.
#[test]
fn switches_of_all_sizes_are_taken() {
    let with = |selector: fn(usize) -> String, body: fn(usize) -> String| {
        let cases: String = (0..16_383).map(|i| format!("case {}: {{ {} }}\n", selector(i), body(i))).collect();
        format!("const K = 1u; fn f(n: u32) {{ var x = n; switch x {{ {cases} default {{}} }} }}")
    };
    let selectors: [fn(usize) -> String; 7] = [
        |i| format!("{i}"),
        |i| format!("{i}u"),
        |i| format!("1+{i}"),
        |i| format!("1u + {i}u"),
        |i| format!("({i}u << 1u)"),
        |i| format!("K+{i}"),
        |i| format!("({i})"),
    ];
    for selector in selectors {
        for body in [|_| String::new(), |i| format!("x = {i}u;"), |i| format!("x += {i}u;")] {
            assert_eq!(check(&with(selector, body)).err(), None, "{} {}", selector(7), body(7));
        }
    }
    // naga would take ten seconds and more.
    assert!(refused(&with(|i| format!("({i} + 1) + 2 * 3"), |i| format!("x += {i}u;"))).contains("are too much"));
}

/// What the module has is visited once, however often functions use it.
#[test]
fn large_tables_leave_functions_their_time() {
    let table = format!("const T = array<vec2f, 20000>({});", "vec2f(1.5, -2.5),".repeat(20_000));
    let body = "x += T[i & 255u].x;\n".repeat(4000);
    let text = format!("{table} fn f(i: u32) {{ var x = 0.0; {body} }}");
    assert_eq!(check(&text).err(), None);
}

#[test]
fn long_functions_are_refused_before_naga_reads_them() {
    let cases = |count| -> String { (0..count).map(|i| format!("case {i}u: {{ o[1] = {i}u; }}\n")).collect() };
    let with = |count| format!("const a = 1;\nfn f() {{ switch o[0] {{\n{} default {{}} }} }}", cases(count));
    assert_eq!(check(&with(5000)).err(), None);
    let (message, at) = check(&with(25_000)).unwrap_err();
    assert!(
        message.starts_with("100004 operators among 150006 words and parts of constants are too much"),
        "{message}"
    );
    assert_eq!(at, 13);
    assert!(refused(&format!("fn f() {{ {} }}", "o[0] = o[1] + 1u;\n".repeat(20_000))).contains("are too much"));
}
