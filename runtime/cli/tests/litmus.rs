//! `spelter litmus`: verdicts, explanations, repairs, pictures, shards, lists, generated tests, errors.

use crate::common::Folder;
use serde_json::Value;

/// Message passing in which nothing makes `x` available, visible or non-private.
const PRIVATE: &str = "NEWSG
NEWTHREAD
st.sc0 x = 1
st.atom.rel.scopewg.sc0.semsc0 y = 1
NEWSG
NEWTHREAD
ld.atom.acq.scopewg.sc0.semsc0 y = 1
ld.sc0 x = 1
SATISFIABLE consistent[X] && #dr>0
";

const LITMUS: &str = "VULKAN mp
{ x=0; y=0; }
 P0@sg 0, wg 0, qf 0            | P1@sg 1, wg 0, qf 0             ;
 st.av.wg.sc0 x, 1              | ld.atom.acq.wg.sc0.semsc0 r0, y ;
 st.atom.rel.wg.sc0.semsc0 y, 1 | ld.vis.wg.sc0 r1, x             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
";

/// Atomics do not race.
const FREE: &str = "VULKAN free
{ x=0; }
 P0@sg 0, wg 0, qf 0  | P1@sg 1, wg 0, qf 0  ;
 st.atom.wg.sc0 x, 1  | ld.atom.wg.sc0 r0, x ;
exists (P1:r0 == 1)
";

fn folder(test: &str) -> Folder {
    let folder = Folder::new(test);
    folder.write("private.test", PRIVATE.as_bytes());
    folder.write("mp.litmus", LITMUS.as_bytes());
    folder
}

#[test]
fn a_race_is_explained_and_repaired() {
    let text = folder("litmus-explain").good("litmus private.test --explain --repair");
    for part in [
        "private.test: RACY   1 execution, 1 racy",
        "line 9     SATISFIABLE consistent[X] && #dr>0: satisfiable, as expected",
        "outcomes   y=1 x=1 RACE",
        "race       T0:1 st x=1 (private, Uniform)  ×  T1:2 ld x=1 (private, Uniform)",
        "ordered?          yes: T0:1 -po-> T0:2 rel[U,wg] -sw-> T1:1 acq[U,wg] -po-> T1:2",
        "non-private?      no : neither access carries NonPrivatePointer",
        "available?        no : no operation makes T0:1 available to the workgroup instance domain or a wider one",
        "smallest repair: MakePointerAvailable (Workgroup) on T0:1, MakePointerVisible (Workgroup) on T1:2 -> 1 execution, none racy",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn an_answer_that_differs_ends_with_status_1() {
    let folder = folder("litmus-differs");
    folder.write("wrong.test", PRIVATE.replace("SATISFIABLE", "NOSOLUTION").as_bytes());
    let ended = folder.spelter("litmus .");
    assert_eq!((ended.status, ended.stderr.as_str()), (1, "error: 1 answer differs from what is expected\n"));
    let part = "line 9     NOSOLUTION consistent[X] && #dr>0: satisfiable, which DIFFERS from what is expected";
    assert!(ended.stdout.contains(part), "{}", ended.stdout);
    assert!(ended.stdout.contains("3 tests, 3 racy; 3 questions in "), "{}", ended.stdout);
}

#[test]
fn lists_give_expected_results() {
    let folder = folder("litmus-lists");
    folder.write("holds.csv", b"mp.litmus,0\ngone.litmus,1\n");
    folder.write("free.csv", b"mp.litmus,1\n");
    assert!(folder.good("litmus mp.litmus --expected holds.csv").contains("does not hold, as expected"));
    let ended = folder.spelter("litmus mp.litmus --expected-races free.csv");
    assert_eq!(ended.status, 1);
    assert!(ended.stdout.contains("races      expected race-free"), "{}", ended.stdout);
    // Rows that name no test are reported; a list that names none of the tests is an error.
    let text = folder.good("litmus mp.litmus private.test --expected holds.csv");
    assert!(text.contains("2 answers as expected, 0 differ, 0 without expectation, "), "{text}");
    assert!(text.contains("1 row of the lists names no test of this run"), "{text}");
    let text = folder.good("litmus .");
    assert!(text.contains("1 answers as expected, 0 differ, 1 without expectation, "), "{text}");
    let message = folder.error("litmus private.test --expected holds.csv");
    assert_eq!(message, "holds.csv: none of its 2 rows names one of the tests");
    folder.write("bad.csv", b"mp.litmus,1\nmp.litmus\n");
    let message = folder.error("litmus mp.litmus --expected bad.csv");
    assert_eq!(message, "bad.csv:2:1: a row is a path, a comma, and 0 or 1");
}

#[test]
fn json_has_an_object_for_each_test_and_one_for_all() {
    let text = folder("litmus-json").good("litmus . --json --explain --repair");
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[0]["questions"][0]["holds"], false);
    assert_eq!(objects[1]["races"], true);
    assert_eq!(objects[1]["explanation"]["cause"], "non-private");
    assert_eq!(objects[1]["repair"]["edits"].as_array().unwrap().len(), 2);
    assert_eq!(objects[2]["total"]["tests"], 2);
    assert_eq!(objects[2]["total"]["differences"], 0);
}

#[test]
fn switches_and_profiles_change_the_model() {
    let folder = folder("litmus-switches");
    for (line, model) in [
        ("litmus mp.litmus --json", "spec"),
        ("litmus mp.litmus --json --profile khronos", "khronos"),
        ("litmus mp.litmus --json --profile spec,chains=alloy", "spec,chains=alloy"),
        ("litmus mp.litmus --json --profile khronos --switch from-reads=dartagnan", "dartagnan"),
        ("litmus mp.litmus --json --switch A2=alloy --switch a5=joint", "khronos"),
    ] {
        let text = folder.good(line);
        assert!(text.contains(&format!("\"model\":\"{model}\"")), "{line}: {text}");
    }
    let message = folder.error("litmus mp.litmus --switch chains=long");
    assert_eq!(message, "`chains` may be text or alloy or single, not `long`");
    let message = folder.error("litmus mp.litmus --switch A2");
    assert_eq!(message, "--switch takes NAME=VALUE: `chains` may be text or alloy or single");
    let message = folder.error("litmus mp.litmus --switch A9=text");
    assert!(message.starts_with("no switch is called `A9`; there are overwrite (A1), chains (A2), "), "{message}");
    assert_eq!(folder.spelter("litmus mp.litmus --profile vulkan").status, 2);
}

#[test]
fn a_verdict_that_depends_on_an_ambiguity_says_so() {
    let folder = folder("litmus-depends");
    let text = "NEWTHREAD 0\nst.sc0 x = 1\nNEWTHREAD 1\navdevice\nNEWTHREAD 2\nst.sc0 x = 2\nSSW 0 1\nSSW 1 2\n";
    folder.write("overwrite.test", text.as_bytes());
    let text = folder.good("litmus overwrite.test --explain");
    assert!(
        text.contains("overwrite.test: race-free") && text.contains("depends on A1 (overwrite=api-visibility)"),
        "{text}"
    );
    let text = folder.good("litmus private.test --explain");
    assert!(text.contains("depends on none of A1 to A5"), "{text}");
}

#[test]
fn pictures_are_for_graphviz() {
    let folder = folder("litmus-dot");
    folder.good("litmus . --dot pictures");
    let text = String::from_utf8(folder.read("pictures/private.dot")).unwrap();
    assert!(text.starts_with("digraph \"private\" {") && text.trim_end().ends_with('}'));
    assert!(text.contains("e0 -> e3 [label=\"race\""), "{text}");
    assert!(text.contains("e1 -> e2 [label=\"sw\""), "{text}");
    assert!(!folder.read("pictures/mp.dot").is_empty());
    // Two files with the same name have two pictures.
    folder.write("below/private.test", PRIVATE.replace("x = 1", "x").as_bytes());
    folder.good("litmus . --dot both");
    let both = ["both/below-private.test.dot", "both/private.test.dot"].map(|name| folder.read(name));
    assert_ne!(both[0], both[1]);
}

#[test]
fn generated_tests_answer_as_they_say_in_every_shard() {
    let folder = Folder::new("litmus-generate");
    let all = folder.good("litmus --generate --events 3 --json --count 40");
    assert_eq!(all.lines().count(), 40);
    assert!(all.contains("\"racy\":true"));
    let half = |part: u8| folder.good(&format!("litmus --generate --events 3 --json --count 20 --shard {part}/2"));
    let mut halves: Vec<String> =
        [half(1), half(2)].iter().flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let mut whole: Vec<_> = all.lines().map(str::to_owned).collect();
    halves.sort();
    whole.sort();
    assert_eq!(halves, whole);
    folder.good("litmus --generate --events 3 --classes 2 --queue-families 2 --shard 7/97 --count 300 --out tests");
    let text = folder.good("litmus tests");
    assert!(text.contains("300 tests, ") && text.contains(" 0 differ, 0 without expectation, "), "{text}");
    // Barriers and updates of several threads of a subgroup.
    let line = "litmus --generate --threads 3 --threads-per-subgroup 3 --events 5 --locations 1 --scopes workgroup \
                --operations plain,rmw,barrier --shard 5/1009 --count 200 --out barriers";
    folder.good(line);
    let text = folder.good("litmus barriers");
    assert!(text.contains("200 tests, ") && text.contains(" 0 differ, "), "{text}");
    let nothing = folder.good("litmus --generate --threads 1 --events 2");
    assert_eq!(nothing, "", "one thread conflicts with none");
}

#[test]
fn errors_name_file_line_and_column() {
    let folder = folder("litmus-errors");
    folder.write("bad.test", b"st.sc0 x\nst.sc0.hop x\n");
    folder.write("bad.txt", b"");
    folder.write("binary.test", &[0xff]);
    for (line, message) in [
        ("litmus bad.test", "bad.test:2:8: `hop` is not a token of an operation"),
        (
            "litmus bad.txt",
            "bad.txt: a litmus test ends in .test (Khronos) or .litmus (Dat3M), a shader in .wgsl, .spv or .comp",
        ),
        ("litmus binary.test", "binary.test: not a text"),
    ] {
        assert_eq!(folder.error(line), message, "{line}");
    }
    assert!(folder.error("litmus missing.test").starts_with("missing.test: "));
    let ended = folder.spelter("litmus bad.test mp.litmus");
    assert_eq!((ended.status, ended.stderr.as_str()), (1, "error: 1 file cannot be read\n"));
    assert!(ended.stdout.contains("bad.test:2:8: "), "{}", ended.stdout);
    for line in ["litmus", "litmus mp.litmus --shard 3/2", "litmus mp.litmus --shard 1", "litmus mp.litmus --generate"]
    {
        assert_eq!(folder.spelter(line).status, 2, "{line}");
    }
    let ended = folder.spelter("litmus mp.litmus --steps 1");
    assert_eq!(ended.status, 1);
    let message = "mp.litmus: undecided: the program is too large: the search takes too many steps, and the bound is 1: \
                   raise it with --steps\n line 6     exists (P1:r0 == 1 /\\ P1:r1 == 0): undecided for the same reason\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (message, "error: 2 verdicts are undecided\n"));
}

#[test]
fn what_a_loop_hides_beyond_its_bound_is_undecided() {
    let folder = Folder::new("litmus-unroll");
    let counts = "VULKAN counts
{ x=0; }
 P0@sg 0, wg 0, qf 0 ;
 again: ;
 rmw.atom.acq_rel.dv.sc0.semsc0.add r0, x, 1 ;
 bne r0, 3, again ;
exists (P0:r0 == 3)
";
    folder.write("counts.litmus", counts.as_bytes());
    let ended = folder.spelter("litmus counts.litmus");
    assert_eq!((ended.status, ended.stderr.as_str()), (1, "error: 1 verdict is undecided\n"));
    let message = "counts.litmus: race-free   1 execution, 0 racy\n line 7     exists (P0:r0 == 3): undecided: the program \
                   is too large: paths of thread P0 were cut in a loop, and the bound is 2: raise it with --unroll\n \
                   outcomes   none within the bound\n";
    assert_eq!(ended.stdout, message);
    let text = folder.spelter("litmus counts.litmus --json").stdout;
    assert!(text.contains("\"complete\":false"), "{text}");
    let text = folder.good("litmus counts.litmus --unroll 4");
    assert!(text.contains("race-free") && text.contains("(P0:r0 == 3): holds\n"), "{text}");
    let text = folder.good("litmus counts.litmus --unroll 4 --json");
    assert!(text.contains("\"complete\":true"), "{text}");
}

#[test]
fn races_can_be_denied() {
    let folder = folder("litmus-deny");
    let ended = folder.spelter("litmus private.test --deny-races");
    assert_eq!((ended.status, ended.stderr.as_str()), (3, "error: 1 test races (--deny-races)\n"));
    assert!(ended.stdout.starts_with("private.test: RACY"), "{}", ended.stdout);
    folder.write("free.litmus", FREE.as_bytes());
    folder.good("litmus free.litmus --deny-races");
    // An answer that differs comes first.
    folder.write("wrong.test", PRIVATE.replace("SATISFIABLE", "NOSOLUTION").as_bytes());
    assert_eq!(folder.spelter("litmus . --deny-races").status, 1);
    assert_eq!(folder.spelter("litmus --generate --deny-races").status, 2);
}

/// Operations keep their tokens, and the comment of a line stays.
#[test]
fn a_repair_is_written_in_the_tokens_of_the_file() {
    let folder = folder("litmus-write");
    let commented = PRIVATE.replace("st.sc0 x = 1", "// the data\nst.sc0 x = 1");
    folder.write("data.test", commented.as_bytes());
    let text = folder.good("litmus data.test --write-repair fixed.test");
    for part in
        ["line 4    st.sc0 x = 1  ->  st.av.scopewg.sc0 x = 1", "line 9    ld.sc0 x = 1  ->  ld.vis.scopewg.sc0 x = 1"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let fixed = String::from_utf8(folder.read("fixed.test")).unwrap();
    let expected = "NEWSG
NEWTHREAD
// the data
st.av.scopewg.sc0 x = 1
st.atom.rel.scopewg.sc0.semsc0 y = 1
NEWSG
NEWTHREAD
ld.atom.acq.scopewg.sc0.semsc0 y = 1
ld.vis.scopewg.sc0 x
// SATISFIABLE consistent[X] && #dr>0
SATISFIABLE consistent[X] && #dr=0
NOSOLUTION consistent[X] && #dr>0
";
    assert_eq!(fixed, expected);
    assert!(folder.good("litmus fixed.test --deny-races").starts_with("fixed.test: race-free"));
    let json = folder.good("litmus data.test --repair --json");
    assert!(json.contains(r#""after":"st.av.scopewg.sc0 x = 1","before":"st.sc0 x = 1","line":4"#), "{json}");
    // A new control barrier is a line of its own; in Dat3M's format, a row.
    let bare = "st.nonpriv.sc0 x = 1\nNEWSG\nNEWTHREAD\nld.nonpriv.sc0 x\n";
    folder.write("bare.test", bare.as_bytes());
    folder.good("litmus bare.test --write-repair ordered.test");
    let ordered = String::from_utf8(folder.read("ordered.test")).unwrap();
    let barrier = "cbar.acq.rel.semav.semvis.scopewg.semsc0 0";
    assert!(
        ordered.starts_with(&format!("st.nonpriv.sc0 x = 1\n{barrier}\nNEWSG\nNEWTHREAD\n{barrier}\n")),
        "{ordered}"
    );
    let text = folder.good("litmus mp.litmus --write-repair ordered.litmus");
    assert!(text.contains("line 5    (new)  ->  cbar.acq_rel.semav.semvis.wg.semsc0"), "{text}");
    folder.write("free.litmus", FREE.as_bytes());
    assert!(folder.good("litmus ordered.litmus --deny-races").contains("race-free"));
    for (line, message) in [
        ("litmus free.litmus --write-repair x", "--write-repair: there is nothing to repair, since no race was found"),
        ("litmus mp.litmus data.test --write-repair x", "--write-repair takes one test, not 2"),
    ] {
        let ended = folder.spelter(line);
        assert_eq!((ended.status, ended.stderr), (1, format!("error: {message}\n")), "{line}");
    }
}

#[test]
fn outcomes_include_the_locations_of_the_question() {
    let folder = folder("litmus-finals");
    let text = LITMUS.replace("exists (P1:r0 == 1 /\\ P1:r1 == 0)", "exists (P1:r0 == 1 /\\ x == 1)");
    assert_ne!(text, LITMUS);
    folder.write("final.litmus", text.as_bytes());
    let text = folder.good("litmus final.litmus");
    assert!(text.contains("P1:r0=1 P1:r1=1 [x]=1"), "{text}");
    assert!(!folder.good("litmus mp.litmus").contains("[x]"));
    let races = "VULKAN races\n{ x=0; }\n P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n st.sc0 x, 1 | st.sc0 x, 2 ;\n\
                 exists (x == 1)\n";
    folder.write("races.litmus", races.as_bytes());
    let text = folder.good("litmus races.litmus");
    assert!(text.contains("outcomes   [x]=1/2 RACE"), "{text}");
}
