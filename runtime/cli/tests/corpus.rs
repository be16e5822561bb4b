//! `spelter test --check --many-seeds N`: a corpus of scripts, shaders and launches in many orders, as a job array.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use serde_json::Value as Json;

use crate::common::Folder;

/// All invocations write a word.
pub(crate) const RACY: &str = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) { d[0] = l; }
";

/// Each invocation writes its own word.
pub(crate) const RIGHT: &str = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { d[id.x] = d[id.x] + 1u; }
";

/// The last one that comes decides, without a race.
const LAST: &str = "@group(0) @binding(0) var<storage, read_write> last: atomic<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) { atomicStore(&last, id.x); }
";

/// Needs an image, of which nothing says what it is.
pub(crate) const IMAGE: &str = "@group(0) @binding(0) var to: texture_storage_2d<r32float, write>;
@compute @workgroup_size(1) fn main() { textureStore(to, vec2(0u, 0u), vec4(1.0)); }
";

pub(crate) const FRAGMENT: &str = "@fragment fn main() -> @location(0) vec4f { return vec4f(); }\n";

const AFFINE: &str = include_str!("scripts/affine.amber");

/// A folder with one of each.
fn corpus(test: &str) -> Folder {
    let folder = Folder::new(test);
    for (name, text) in [
        ("racy.wgsl", RACY),
        ("right.wgsl", RIGHT),
        ("last.wgsl", LAST),
        ("image.wgsl", IMAGE),
        ("fragment.wgsl", FRAGMENT),
        ("affine.amber", AFFINE),
    ] {
        folder.write(&format!("corpus/{name}"), text.as_bytes());
    }
    folder
}

fn text_of(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap()
}

#[test]
fn scripts_and_shaders_are_checked_in_many_orders() {
    let folder = corpus("corpus_orders");
    let ended = folder.spelter("test corpus --check --many-seeds 3");
    assert_eq!(ended.status, 66, "{}{}", ended.stdout, ended.stderr);
    for part in [
        "pass  corpus/affine.amber\n",
        "pass  corpus/affine.amber, order 2\n",
        "skip  corpus/fragment.wgsl: it has no compute entry point\n",
        "skip  corpus/image.wgsl: main: binding 0.0: images, samplers and texel buffers need options",
        "FAIL  corpus/racy.wgsl\n      1 error of checked mode: SPELTER-RACE-WAW\n",
        "FAIL  corpus/racy.wgsl, order 2\n",
        "pass  corpus/right.wgsl, order 1\n",
        "9 passed, 3 failed, 6 skipped\n",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
    let depends = ended.stdout.matches("the result depends on the order: 0.0 (last) differs at byte 0").count();
    assert!(depends > 0, "{}", ended.stdout);
    // The report is printed once, with the line of the shader.
    assert_eq!(ended.stdout.matches("error[SPELTER-RACE-WAW]").count(), 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("corpus/racy.wgsl:2:"), "{}", ended.stdout);
    assert!(ended.stderr.contains("note: checked: 1 error"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("error: 3 of 18 runs failed\n"), "{}", ended.stderr);
    // What is suppressed fails nothing.
    let line = "test corpus --check --many-seeds 2 --suppress rule:SPELTER-RACE-WAW --quiet";
    let ended = folder.spelter(&format!("{line} --allow-unchecked"));
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("in what was checked, 2 suppressed\n"), "{}", ended.stderr);
    // The shader that needs options was not checked.
    assert_eq!(folder.spelter(line).status, 67);
}

#[test]
fn a_corpus_is_divided_continued_and_merged() {
    let folder = corpus("corpus_shards");
    let line = "test corpus --check --many-seeds 4";
    let whole = folder.spelter(&format!("{line} --results whole.jsonl"));
    assert_eq!(whole.status, 66, "{}", whole.stderr);
    // 6 files in 4 orders.
    assert_eq!(text_of(&folder, "whole.jsonl").lines().count(), 25);
    for shard in ["1/3", "2/3", "3/3"] {
        folder.spelter(&format!("{line} --shard {shard} --results {}.jsonl", &shard[..1]));
    }
    // The second shard was killed while it wrote its fourth result.
    let complete = text_of(&folder, "2.jsonl");
    let part: Vec<&str> = complete.lines().take(4).collect();
    folder.write("2.jsonl", format!("{}\n{{\"job\":13,\"re", part.join("\n")).as_bytes());
    let missing = folder.spelter("merge 1.jsonl 2.jsonl 3.jsonl");
    assert_eq!(missing.status, 1, "{}", missing.stderr);
    assert!(missing.stderr.starts_with("error: 5 of 24 jobs are missing: "), "{}", missing.stderr);
    folder.spelter(&format!("{line} --shard 2/3 --results 2.jsonl"));
    assert_eq!(text_of(&folder, "2.jsonl"), complete);
    let merged = folder.spelter("merge 3.jsonl 1.jsonl 2.jsonl --out all.jsonl --json");
    assert_eq!(merged.status, 3, "{}", merged.stderr);
    let value: Json = serde_json::from_str(&merged.stdout).unwrap();
    // 4 of a race, and 4 of what was not checked.
    assert_eq!((&value["done"], &value["failed"]), (&24.into(), &8.into()));
    let totals = serde_json::json!({
        "fail": 4, "findings": 4, "not_shown": 0, "pass": 12, "skipped": 8, "suppressed": 0,
    });
    assert_eq!(value["totals"], totals);
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));
    // All are done, and the failures count, and are listed: as the file has them.
    let again = folder.spelter(&format!("{line} --results whole.jsonl"));
    let lines: Vec<_> = again.stdout.lines().collect();
    assert_eq!(lines[0], "FAIL  corpus/racy.wgsl, of an earlier run, orders 0, 1, 2, 3", "{}", again.stdout);
    assert_eq!(lines[1], "      1 error of checked mode: SPELTER-RACE-WAW");
    assert!(lines[2].starts_with("      error[SPELTER-RACE-WAW]: data race (write after write)"), "{}", again.stdout);
    assert_eq!(lines[3..], ["12 passed, 4 failed, 8 skipped"]);
    let again = folder.spelter(&format!("{line} --results whole.jsonl --json"));
    assert_eq!(again.status, 66, "{}", again.stderr);
    let value: Json = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&value["failed"], value["scripts"].as_array().map(Vec::len)), (&4.into(), Some(24)));
    assert!(value["scripts"].as_array().unwrap().iter().all(|script| script["earlier"] == true), "{value}");
    // Other options are another job array.
    for (options, problem) in [
        ("test corpus --check --many-seeds 5", "its jobs is 24, not 30; its orders is 4, not 5"),
        ("test corpus --check=spec --many-seeds 4", "its profile is \"common\", not \"spec\""),
        ("test corpus --check --many-seeds 4 --groups 5", "other options or suppressions were given"),
        ("test corpus --check --many-seeds 4 --backend interpreter", "its device.backend is "),
    ] {
        let message = folder.error(&format!("{options} --results whole.jsonl"));
        let expected = format!("whole.jsonl: it has results of another job array: {problem}");
        assert!(message.starts_with(&expected), "{options}: {message}");
    }
}

/// What is wrong before anything runs is said once, and counted in each order.
#[test]
fn an_error_of_the_compiler_is_printed_once() {
    let folder = corpus("corpus_once");
    folder.write("corpus/broken.wgsl", b"fn main( {\n");
    folder.write("corpus/all.launches", b"right.wgsl\n");
    folder.write("corpus/more/other.launches", b"right.wgsl\n");
    let ended = folder.spelter("test corpus --check --many-seeds 4");
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    for name in ["broken", "fragment", "image"] {
        let lines = ended.stdout.matches(&format!("  corpus/{name}.wgsl")).count();
        assert_eq!(lines - usize::from(name == "broken"), 1, "{name}\n{}", ended.stdout);
    }
    assert!(ended.stdout.contains("FAIL  corpus/racy.wgsl, order 3\n"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("12 passed, 8 failed, 8 skipped\n"), "{}", ended.stdout);
    // So is it by a shard without the usual order.
    let shard = folder.spelter("test corpus/broken.wgsl --check --many-seeds 4 --shard 2/2");
    assert_eq!(shard.stdout.matches("FAIL  corpus/broken.wgsl\n").count(), 1, "{}", shard.stdout);
    // Lists in folders are passed over, unless they are named, too.
    let note = "note: passed over: corpus/all.launches and 1 more; a list of launches must be named\n";
    assert!(ended.stderr.starts_with(note), "{}", ended.stderr);
    folder.write("corpus/all.launches", b"corpus/right.wgsl --bind 0.0=zeros:256\n");
    let named = folder.spelter("test corpus ./corpus/all.launches --check");
    let note = "note: passed over: corpus/more/other.launches; a list of launches must be named\n";
    assert!(named.stderr.starts_with(note), "{}", named.stderr);
}

#[test]
fn results_that_depend_on_the_order_may_be_denied() {
    let folder = Folder::with("corpus_deny", "last.wgsl", LAST);
    folder.write("right.wgsl", RIGHT.as_bytes());
    let test = |options: &str| folder.spelter(&format!("test right.wgsl last.wgsl --check --many-seeds 6 {options}"));
    assert_eq!(test("").status, 0);
    for _ in 0..2 {
        // Also if all is in the file of results.
        let denied = test("--deny-order --results r.jsonl");
        assert_eq!(denied.status, 66, "{}{}", denied.stdout, denied.stderr);
        assert!(denied.stdout.contains("      the result depends on the order: 0.0 (last) differs at byte 0\n"));
    }
    assert!(test("--results r.jsonl").stderr.contains("other options"));
    assert_eq!(folder.spelter("merge r.jsonl").status, 3);

    let run = |options: &str| {
        let line = "run last.wgsl --bind 0.0=zeros:4 --groups 8 --check --many-seeds 6";
        folder.spelter(&format!("{line} {options}"))
    };
    let noted = run("");
    assert_eq!(noted.status, 0, "{}", noted.stderr);
    assert!(noted.stderr.contains("note: the result depends on the order: 0.0 (last) differs at byte 0 with"));
    for _ in 0..2 {
        let denied = run("--deny-order --results run.jsonl");
        assert_eq!(denied.status, 66, "{}", denied.stderr);
        let error = "error: the result depends on the order: 0.0 (last) differs at byte 0 with --schedule random:";
        assert!(denied.stderr.contains(error) && !denied.stderr.contains("note: the result"), "{}", denied.stderr);
        assert!(denied.stderr.contains("(--deny-order)\n"), "{}", denied.stderr);
    }
    assert_eq!(folder.spelter("merge run.jsonl").status, 3);
    // Orders that failed by the option are not those of a run without it, nor the reverse.
    assert_eq!(run("--results noted.jsonl").status, 0);
    assert_eq!(folder.spelter("merge noted.jsonl").status, 0);
    for (options, file) in [("", "run.jsonl"), ("--deny-order", "noted.jsonl")] {
        let refused = run(&format!("{options} --results {file}"));
        let problem = "it has results of another job array: other options or suppressions were given";
        assert_eq!((refused.status, refused.stderr), (1, format!("error: {file}: {problem}\n")), "{options}");
    }
    let denied = run("--deny-order --error-exitcode 9 --json");
    let object: Json = serde_json::from_str(&denied.stdout).unwrap();
    assert_eq!((denied.status, object["depends_on_order"].is_string()), (9, true), "{}", denied.stderr);
    // The object says what failed, and has what was computed.
    let error = object["error"].as_str().unwrap();
    assert!(error.starts_with("the result depends on the order: ") && error.ends_with(" (--deny-order)"), "{error}");
    assert!(denied.stderr.contains(&format!("error: {error}\n")), "{}", denied.stderr);
    assert!(object["outputs"].is_array() && object["findings"].is_array(), "{object}");
    // Without the option, and in a right kernel, nothing did.
    let noted: Json = serde_json::from_str(&run("--json").stdout).unwrap();
    assert_eq!((noted["depends_on_order"].is_string(), noted.get("error")), (true, None), "{noted}");
    let right = "run right.wgsl --bind 0.0=zeros:1K --groups 4 --check --many-seeds 2 --deny-order --json";
    let right: Json = serde_json::from_str(&folder.spelter(right).stdout).unwrap();
    assert_eq!(right.get("error"), None, "{right}");
    for line in [
        "run last.wgsl --bind 0.0=zeros:4 --check --deny-order",
        "test last.wgsl --check --deny-order",
        "test last.wgsl --many-seeds 2 --deny-order",
    ] {
        assert!(folder.usage(line).contains("required arguments were not provided"), "{line}");
    }
    let line = "run last.wgsl --bind 0.0=zeros:4 --many-seeds 2 --deny-order";
    assert!(folder.usage(line).contains("needs --check"), "{line}");
}

#[test]
fn a_list_says_how_shaders_are_launched() {
    let folder = Folder::with("corpus_list", "racy.wgsl", RACY);
    folder.write("image.wgsl", IMAGE.as_bytes());
    let list = "# one a line\nracy.wgsl --bind 0.0=zeros:4 # all\n\nimage.wgsl --image 0.0=r32float:2x2 --groups 2\n";
    folder.write("all.launches", list.as_bytes());
    let ended = folder.spelter("test all.launches --check --many-seeds 2");
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    for part in ["FAIL  all.launches:2 racy.wgsl\n", "FAIL  all.launches:4 image.wgsl\n", "0 passed, 4 failed"] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
    // A launch that is wrong fails, and the others run.
    folder.write("wrong.launches", b"racy.wgsl\nimage.wgsl --image 0.0=r32float:2x2\n");
    let ended = folder.spelter("test wrong.launches --check");
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    assert!(ended.stdout.contains("binding 0.0 (d), a storage buffer, has no buffer"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("1 passed, 1 failed, 0 skipped\n"), "{}", ended.stdout);
    folder.write("bad.launches", b"racy.wgsl --groups x\n");
    assert!(folder.error("test bad.launches --check").starts_with("bad.launches:1: invalid value 'x'"));
    folder.write("empty.launches", b"# nothing\n");
    assert!(folder.error("test empty.launches --check").contains("there is no launch in it"));
}

#[test]
fn shaders_need_checked_mode() {
    let folder = Folder::with("corpus_unchecked", "a.wgsl", RIGHT);
    assert!(folder.usage("test a.wgsl").contains("a.wgsl: a shader has no expectation that could fail: --check"));
    assert!(folder.usage("test a.wgsl --groups 2").contains("--check"));
    assert!(folder.error("test . ").contains("there is no .amber file in it"));
}

/// A kernel with floats, counts and addresses of structures has buffers with which it does something.
#[test]
fn automatic_buffers_fit_the_invocations() {
    let text = "struct Item { weight: f32, next: u32 }
        struct Count { n: u32, scale: f32 }
        @group(0) @binding(0) var<storage, read> items: array<Item>;
        @group(0) @binding(1) var<uniform> count: Count;
        @group(0) @binding(2) var<storage, read_write> sums: array<f32>;
        @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {
            // In bounds, and all of them differ from 0.
            if id.x >= count.n || items[id.x].next >= count.n || arrayLength(&items) != count.n { sums[0] = 1.0; }
            if items[id.x].weight < 0.0 || items[id.x].weight >= 1.0 { sums[0] = 2.0; }
        }";
    let folder = Folder::with("corpus_buffers", "items.wgsl", text);
    let ended = folder.spelter("test items.wgsl --check --groups 3");
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "pass  items.wgsl\n1 passed, 0 failed, 0 skipped\n"));
}
