//! Malformed texts: each gives an error with line and column, or a test that is decided or rejected with the bound
//! named. No panics, no hangs.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use crate::common;
use std::path::Path;

use proptest::prelude::*;
use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, answer, find_race};
use spelter_memory_model::dot::dot;
use spelter_memory_model::explain::explain;
use spelter_memory_model::format::{Format, Test, write_khronos};
use spelter_memory_model::repair::{Effort, repair, words};
use spelter_memory_model::search::Limits;

fn refused(format: Format, text: &str) -> String {
    match format.read("bad", text) {
        Ok(test) => panic!("read as {test:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn khronos_texts_are_rejected_with_their_place() {
    for (text, message) in [
        ("st.sc0 x\nhop.sc0 x", "2:1: `hop` is not a token of an operation"),
        ("st.sc0.dance x", "1:8: `dance` is not a token of an operation"),
        ("st x = 1", "1:1: an access has a storage class, sc0 or sc1"),
        ("st.sc0.sc1 x = 1", "1:8: an operation has one storage class, not two"),
        ("st.atom.scopewg.scopedev.sc0 x = 1", "1:17: an operation has one scope, not two"),
        ("  st.sc0", "1:9: an access has the name of its reference"),
        ("st.sc0 1x = 1", "1:8: `1x` is not a name"),
        ("st.sc0 x = one", "1:12: a value is a number, not `one`"),
        ("st.sc0 x = 99999999999999999999", "1:12: a value is a number, not `99999999999999999999`"),
        ("st.sc0 x 1", "1:10: a `=` stands before a value"),
        ("st.sc0 x = 1 2", "1:14: only a read-modify-write has two values"),
        ("cbar.scopewg", "1:1: a control barrier has the number of its instance"),
        ("cbar.scopewg two", "1:14: an instance of a control barrier is a number, not `two`"),
        ("cbar.scopewg 4000000000", "1:14: the number is too large; the bound is 1073741824"),
        ("st.membar.sc0 x", "1:1: an operation is of one kind: these tokens are of several"),
        ("acq.rel", "1:1: an operation is st, ld, rmw, membar, cbar, avdevice or visdevice"),
        ("membar.sc0.rel.semsc0.scopewg", "1:1: only an access has a storage class; did you mean semsc?"),
        ("membar.rel.semsc0.scopewg x", "1:27: only an access or a control barrier has an operand"),
        ("avdevice.av", "1:1: only an access is atomic, non-private, available or visible"),
        ("NEWTHREAD zero", "1:11: a thread is a number, not `zero`"),
        ("NEWTHREAD 1 2", "1:13: NEWTHREAD takes one number at most"),
        ("NEWWG 1", "1:7: nothing may follow NEWWG"),
        ("st.sc0 x\nNEWTHREAD 0\nst.sc0 x", "3:1: thread 0 is already defined"),
        ("st.sc0 x\nNEWSG\nst.sc0 x", "3:1: a new subgroup begins with NEWTHREAD"),
        ("st.sc0 x\nNEWWG\nNEWTHREAD\nst.sc0 x", "4:1: a new workgroup begins with NEWSG and NEWTHREAD"),
        (
            "st.sc0 x\nNEWQF\nNEWSG\nNEWTHREAD\nst.sc0 x",
            "5:1: a new queue family begins with NEWWG, NEWSG and NEWTHREAD",
        ),
        ("SSW 0", "1:1: SSW takes two numbers of threads"),
        ("SSW 0 7\nst.sc0 x", "1:7: there is no thread 7 with operations"),
        ("SLOC x", "1:1: SLOC takes two names"),
        ("SATISFIABLE", "1:12: `` is not one of consistent[X], #dr and #rs"),
        ("SATISFIABLE consistent[X] && #ab=0", "1:30: `#ab=0` is not one of consistent[X], #dr and #rs"),
        ("NOSOLUTION #dr", "1:12: `#dr` does not compare with a number"),
        ("NOSOLUTION #dr>x", "1:12: `#dr>x` does not compare with a number"),
        ("", "1:1: the test has no operations"),
        ("// a comment\nSATISFIABLE #dr=0", "1:1: the test has no operations"),
        ("st.sc0 x = 1\nld.sc0 x = 5", "2:12: no operation writes 5 to `x`: it cannot be read"),
        ("rmw.scopewg.sc0 x = 3 4", "1:21: no operation writes 3 to `x`: it cannot be read"),
        ("st.sc0 x\nSLOC x y", "2:8: no operation uses the name `y`"),
    ] {
        assert_eq!(refused(Format::Khronos, text), message, "{text}");
    }
    let twice = Format::Khronos.read("twice", "st.sc0 x = 1\nst.sc0 x = 1\nld.sc0 x = 1").unwrap();
    assert_eq!(twice.warnings[0].to_string(), "3:12: 1 would be read from two sources; the program has no executions");
    let open = Format::Khronos.read("open", "st.sc0 x = 1\nrmw.scopewg.sc0 x = -1 2\nld.sc0 x").unwrap();
    assert_eq!((open.program.pins, open.warnings), (vec![], vec![]));
}

/// A `.litmus` text with `code` as its only thread.
fn thread(code: &str) -> String {
    format!("VULKAN t\n{{ x=0; }}\n P0@sg 0, wg 0, qf 0 ;\n{code}\nexists (x == 0)")
}

#[test]
fn dartagnan_texts_are_rejected_with_their_place() {
    for (text, message) in [
        ("", "1:1: VULKAN is expected here, not the end"),
        ("PTX t\n{ }", "1:1: the test is for `PTX`, not for VULKAN"),
        ("VULKAN t", "1:9: `{` is expected here, not the end"),
        ("VULKAN t\n\"never ends", "2:1: the quoted text does not end"),
        ("VULKAN t\n{ x=0; } (* never", "2:10: the comment does not end"),
        ("VULKAN t\n{ x=y; }", "2:5: a number is expected here, not `y`"),
        ("VULKAN t\n{ x=0; x=1; }", "2:8: `x` is already defined"),
        ("VULKAN t\n{ x=0 y=0; }", "2:7: `;` is expected here, not `y`"),
        ("VULKAN t\n{ x=0; }\n{ see P0 P1; }", "3:3: `ssw` is expected here, not `see`"),
        ("VULKAN t\n{ }\n P0@wg 0", "3:5: `sg` is expected here, not `wg`"),
        ("VULKAN t\n{ }\n P0@sg 0, wg 0, qf -1 ;", "3:20: the number of a group is from 0 to 4294967295"),
        ("VULKAN t\n{ }\n P0@sg 0, wg 0, qf 0 | P0@sg 0, wg 0, qf 0 ;", "3:24: thread `P0` is already defined"),
        ("VULKAN t\n{ ssw }", "2:7: `=` is expected here, not `}`"),
        (
            "VULKAN t\n{ }\n P0@sg 0, wg 0, qf 0 ;\n",
            "4:1: exists, forall, ~exists or filter is expected here, not the end",
        ),
        ("VULKAN t\n{ x=0; }\n{ ssw 0 7; }\n P0@sg 0, wg 0, qf 0 ;\nexists (0==0)", "3:9: there is no thread `P7`"),
        ("VULKAN t\n{ x=0; }\n{ ssw 0 ; }", "3:9: a thread is expected here, not `;`"),
        ("VULKAN t\n{ P7:r0=0; }\n P0@sg 0, wg 0, qf 0 ;\nexists (0==0)", "2:3: there is no thread `P7`"),
        (&thread("jump there ;"), "4:1: `jump` is not an instruction"),
        (&thread("st.sc0 x ;"), "4:10: `,` is expected here, not `;`"),
        (&thread("st.sc9 x, 1 ;"), "4:4: `sc9` is not a part of `st`"),
        (&thread("st.sc0.sc0 x, 1 ;"), "4:8: `sc0` appears twice"),
        (&thread("st.sc0.sc1 x, 1 ;"), "4:8: an instruction has one storage class, not two"),
        (&thread("st x, 1 ;"), "4:1: an access has a storage class, sc0 to sc3"),
        (&thread("goto away ;"), "4:6: thread 0 has no label `away`"),
        (&thread("a: ;\na: ;"), "5:1: label `a` is already defined"),
        (&thread("cbar.wg 1, 1, 0 ;"), "4:15: a quorum is from 1 to 65536"),
        (&thread("add r0, 1 ;"), "4:11: `,` is expected here, not `;`"),
        (&thread("st.sc0 x, 1 | st.sc0 x, 1 ;"), "4:13: `;` is expected here, not `|`"),
        (&thread("beq r0, 99999999999999999999, a ;"), "4:9: `99999999999999999999` is not a 64-bit number"),
        (&thread("").replace("x == 0", "q == 0"), "5:9: there is no location `q`"),
        (&thread("").replace("x == 0", "P3:r0 == 0"), "5:9: there is no thread `P3`"),
        (&thread("").replace("x == 0", "x 0"), "5:11: a comparison is expected here, not `0`"),
        (&thread("").replace("(x == 0)", "(x == 0"), "5:15: `)` is expected here, not the end"),
        (&thread("").replace("(x == 0)", "(x == 0) x"), "5:17: nothing may follow the condition, but `x` does"),
        (&thread("").replace("(x == 0)", &"(".repeat(9999)), "5:73: the condition nests deeper than the bound of 64"),
        ("VULKAN t\n§", "2:1: `§` is unexpected here"),
        (&thread(""), "1:1: the test has no operations"),
        ("VULKAN t\n{ y aliases x; }", "2:13: there is no location `x`: the text begins with { x=0; }"),
        (&thread("st.sc0 x, r0 ;"), "4:11: nothing sets register `r0` of thread P0"),
        (&thread("beq r7, 1, a ;\na: ;"), "4:5: nothing sets register `r7` of thread P0"),
        (&thread("st.sc0 x, 1 ;").replace("x == 0", "P0:r9 == 0"), "5:12: nothing sets register `r9` of thread P0"),
        (
            "VULKAN t\n{ x=0; }\n P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;\nst.sc0 x, 1 ;\nexists (x == 0)",
            "4:13: the row has 1 of 2 columns",
        ),
        (
            &thread("st.priv.sc0 x, 1 ;"),
            "4:4: an access is private unless it is atom, av, vis or nonpriv: leave `priv` out",
        ),
    ] {
        assert_eq!(refused(Format::Dartagnan, text), message, "{text}");
    }
}

fn few() -> Options {
    Options { limits: Limits { steps: 20_000, ..Limits::default() }, ..Options::default() }
}

/// A parsed test must be decided, or rejected with a bound.
fn decide(test: &Test) {
    for question in &test.questions {
        let _ = answer(&test.program, question, &few());
    }
    if let Ok(Some(race)) = find_race(&test.program, None, &few()) {
        assert!(explain(&test.program, &race, Model::SPEC, 0).is_some());
        assert!(dot(&test.program, &race, Model::SPEC).ends_with("}\n"));
        let effort = Effort { edits: 2, programs: 20, steps: 5000, ..Effort::default() };
        if let Ok(Some(repair)) = repair(&test.program, None, &few(), effort) {
            assert!(!words(&test.program, &repair.edits).is_empty());
            let _ = write_khronos(&repair.program);
        }
    }
}

#[test]
fn programs_that_are_too_large_are_rejected_with_the_bound() {
    let error = |format: Format, text: &str| {
        let test = format.read("large", text).unwrap();
        find_race(&test.program, None, &few()).unwrap_err().to_string()
    };
    let many = "st.sc0 x = 1\n".repeat(200);
    let message = "the program is too large: an execution has 200 events, and the bound is 128";
    assert_eq!(error(Format::Khronos, &many), message);
    let wide: String =
        (0..9).map(|at| format!("NEWTHREAD {at}\nst.atom.scopewg.sc0 x = 1\nld.atom.scopewg.sc0 x\n")).collect();
    let message = "the program is too large: the search takes too many steps, and the bound is 20000";
    assert_eq!(error(Format::Khronos, &wide), message);
    let doubling = "add r0, r0, r0 ;\n".repeat(60);
    let message = "the program is too large: a value of thread P0 has 2047 parts, and the bound is 1024";
    assert_eq!(error(Format::Dartagnan, &thread(&format!("ld.sc0 r0, x ;\n{doubling}"))), message);
    let forks: String = (0..20).map(|at| format!("ld.sc0 r{at}, x ;\nbeq r{at}, 0, l{at} ;\nl{at}: ;\n")).collect();
    let message = "the program is too large: thread P0 has more than 4096 paths, and the bound is 4096";
    assert_eq!(error(Format::Dartagnan, &thread(&forks)), message);
    // Modification orders are steps, too.
    let writes: String = (0..14).map(|at| format!("NEWSG\nNEWTHREAD {at}\nst.atom.scopedev.sc0 x\n")).collect();
    assert!(error(Format::Khronos, &writes).ends_with("too many steps, and the bound is 20000"));
    let row = |cell: &str| format!("{} ;\n", [cell; 10].join("|"));
    let head: Vec<_> = (0..10).map(|at| format!("P{at}@sg {at}, wg 0, qf 0")).collect();
    let ten = |code: &str| format!("VULKAN t\n{{ x=0; }}\n{} ;\n{code}exists (x == 0)", head.join("|"));
    let pairs = ten(&row("cbar.wg 1, 1, 2").repeat(2));
    let message =
        "the program is too large: it has more than 65536 combinations of paths and barriers, and the bound is 65536";
    assert_eq!(error(Format::Dartagnan, &pairs), message);
    // All paths together have one bound on steps.
    let cell = |at: u32| {
        format!("{}{}{}", row("ld.atom.dv.sc0 r, x"), row(&format!("beq r, 7, l{at}")), row(&format!("l{at}:")))
    };
    let forks = ten(&(cell(0) + &row("st.atom.dv.sc0 x, 1")));
    assert!(error(Format::Dartagnan, &forks).ends_with("too many steps, and the bound is 20000"));
    let threads: Vec<_> = (0..129).map(|at| format!("P{at}@sg 0, wg 0, qf 0")).collect();
    let message = refused(Format::Dartagnan, &format!("VULKAN t\n{{ }}\n{} ;\nexists (0 == 0)", threads.join("|")));
    assert!(message.ends_with("there are more threads than the bound of 128"), "{message}");
    let states: String = (0..13).map(|at| format!("st.sc0 v{at}, 1 | st.sc0 v{at}, 2 ;\n")).collect();
    let wanted: Vec<_> = (0..13).map(|at| format!("v{at} == 3")).collect();
    let head = "P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0";
    let names: String = (0..13).map(|at| format!("v{at}=0; ")).collect();
    let states = format!("VULKAN t\n{{ {names}}}\n{head} ;\n{states}exists ({})", wanted.join(" /\\ "));
    let test = Format::Dartagnan.read("states", &states).unwrap();
    let message =
        "the program is too large: an execution's racing writes leave too many final states, and the bound is 4096";
    assert_eq!(answer(&test.program, &test.questions[0], &few()).unwrap_err().to_string(), message);
    assert!(refused(Format::Khronos, &"st.sc0 x = 1\n".repeat(5000)).contains("the bound of 4096"));
    assert!(refused(Format::Khronos, &" ".repeat(1 << 21)).contains("the bound is 1048576"));
}

/// Words of both formats, and other words.
const WORDS: [&str; 60] = [
    "VULKAN",
    "t",
    "{",
    "}",
    "x=0;",
    "P0",
    "P1",
    "@",
    "sg 0,",
    "wg 0,",
    "qf 0",
    "|",
    ";",
    "\n",
    "st.sc0 x, 1",
    "ld.sc0 r0, x",
    "st.atom.wg.sc0 x, r0",
    "rmw.atom.wg.sc0.add r0, x, 1",
    "membar.acq.wg.semsc0",
    "cbar.wg 1",
    "cbar.wg 1, 1, 2",
    "LC0:",
    "goto LC0",
    "beq r0, 1, LC0",
    "add r0, r0, 1",
    "avdevice",
    "exists",
    "forall",
    "~exists",
    "filter",
    "(P0:r0 == 1)",
    "/\\",
    "\\/",
    "x aliases y;",
    "ssw P0 P1;",
    "NEWQF",
    "NEWWG",
    "NEWSG",
    "NEWTHREAD",
    "NEWTHREAD 0",
    "st.sc0 x = 1",
    "ld.sc0 x = 1",
    "st.atom.rel.scopewg.sc0.semsc0 y = 1",
    "ld.atom.acq.scopewg.sc0.semsc0 y = 1",
    "rmw.scopewg.sc0 x = 1 2",
    "cbar.acq.rel.scopewg.semsc0 0",
    "SSW 0 1",
    "SLOC x y",
    "SATISFIABLE consistent[X] && #dr=0",
    "NOSOLUTION #dr>0",
    "//",
    "\"",
    "(*",
    "*)",
    "-1",
    "0xff",
    "§",
    "\r",
    "\t",
    "==",
];

/// The texts of the tests in this folder.
fn texts() -> Vec<(Format, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    let of = |extension: &str, format| {
        let files = common::files(&folder, extension);
        files.into_iter().map(move |file| (format, std::fs::read_to_string(file).unwrap())).collect::<Vec<_>>()
    };
    [of("test", Format::Khronos), of("litmus", Format::Dartagnan)].concat()
}

fn read_and_decide(format: Format, text: &str) {
    match format.read("fuzz", text) {
        Ok(test) => decide(&test),
        Err(error) => {
            assert!(error.place.line >= 1 && error.place.column >= 1, "{error}");
            let lines = text.split('\n').count() as u32;
            assert!(error.place.line <= lines, "{error} in {lines} lines");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40)) {
        let text = words.join(" ");
        read_and_decide(Format::Khronos, &text.replace(' ', "\n"));
        read_and_decide(Format::Khronos, &words.join("\n"));
        read_and_decide(Format::Dartagnan, &text);
    }

    #[test]
    fn tests_with_pieces_moved_or_lost(
        pick in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3u8), 1..6),
        word in prop::sample::select(&WORDS[..]),
    ) {
        let all = texts();
        let (format, text) = &all[pick.index(all.len())];
        let mut text: Vec<char> = text.chars().collect();
        for (from, to, kind) in cuts {
            if text.is_empty() {
                break;
            }
            let (from, to) = (from.index(text.len()), to.index(text.len()));
            let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 30));
            match kind {
                0 => drop(text.drain(from..to)),
                1 => {
                    let piece: Vec<_> = text[from..to].to_vec();
                    text.splice(to..to, piece);
                }
                _ => drop(text.splice(from..to, word.chars())),
            }
        }
        read_and_decide(*format, &text.into_iter().collect::<String>());
    }

    #[test]
    fn any_text(text in ".{0,200}") {
        read_and_decide(Format::Khronos, &text);
        read_and_decide(Format::Dartagnan, &format!("VULKAN\n{{}}{text}"));
    }
}
