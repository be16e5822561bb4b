//! Which checks are redundant.

use spelter_shaders::check::subsume;

use crate::check::{checked, parse};

/// The checks that are left, by the site of the access.
#[track_caller]
fn left(body: &str) -> Vec<String> {
    let text = format!(
        "kernel \"test\" 3, 1, 1\nbinding0 = storage 0.0[1] 0\nbinding1 = storage 0.1[1] 0\n\
         var0 = workgroup 8 \"a\"\n{body}"
    );
    let mut kernel = checked(&parse(&text));
    subsume(&mut kernel);
    let checks = kernel.to_string();
    checks.lines().filter_map(|line| line.trim().strip_prefix("check ")).map(str::to_owned).collect()
}

const HEAD: &str = "block0:
    v0 = const.i32 0
    v1 = const.i32 4
    v2 = buffer binding0[v0]
    ";

#[test]
fn a_store_to_the_same_memory_makes_the_check_of_a_load_redundant() {
    let body = format!(
        "{HEAD} v3 = load.i32 storage v2 + v1\n store storage v2 + v0, v3\n store storage v2 + v1, v3\n return"
    );
    assert_eq!(left(&body), ["site1 storage v2 + v0", "site2 storage v2 + v1"]);
}

#[test]
fn a_load_that_requires_less_keeps_its_check() {
    let body =
        format!("{HEAD} v3 = load.i32 storage v2 + v1\n store storage v2 + v1, v3 non_private made device\n return");
    assert_eq!(left(&body), ["site0 storage v2 + v1", "site1 storage v2 + v1"]);
}

#[test]
fn of_equal_checks_the_first_is_left() {
    let body = format!("{HEAD} v3 = load.i32 var0 + v1\n v4 = load.i32 var0 + v1\n v5 = load.i32 var0 + v0\n return");
    assert_eq!(left(&body), ["site0 var0 + v1", "site2 var0 + v0"]);
}

#[test]
fn a_store_through_another_descriptor_keeps_the_check_of_a_later_load() {
    let of = |store: &str| {
        let load = "load.i32 storage v2 + v1";
        let body = format!("v4 = {load}\n store storage {store}, v4\n v5 = {load}\n return");
        left(&format!("{HEAD} v3 = buffer binding1[v0]\n {body}"))
    };
    assert_eq!(of("v3 + v1"), ["site0 storage v2 + v1", "site1 storage v3 + v1", "site2 storage v2 + v1"]);
    assert_eq!(of("v2 + v0"), ["site0 storage v2 + v1", "site1 storage v2 + v0"]);
}

#[test]
fn synchronization_keeps_checks_apart() {
    for sync in ["fence device acq_rel|storage", "barrier workgroup workgroup relaxed"] {
        let body = format!(
            "{HEAD} v3 = load.i32 storage v2 + v1\n {sync}\n v4 = load.i32 storage v2 + v1\n {sync}\n \
             store storage v2 + v1, v4\n return"
        );
        assert_eq!(left(&body), ["site0 storage v2 + v1", "site2 storage v2 + v1", "site4 storage v2 + v1"]);
    }
}
