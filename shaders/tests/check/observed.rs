//! What is reported of accesses, atomics and fences.

use crate::{checked, events, events_of, observe_in_all, parse};

/// Holds events of the only invocation against the expected ones.
#[track_caller]
fn of_first(body: &str, expected: &[&str]) {
    let text = events_of(1, body, [1, 1, 1]);
    let of: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("0.0: ")).collect();
    assert_eq!(of, expected, "{text}");
}

#[test]
fn loads_and_stores_are_reported_with_their_memory() {
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 8
            v3 = buffer binding0[v0]
            v4 = buffer binding1[v0]
            v5 = load.i32 storage v3 + v2
            store storage v4 + v0, v5
            v6 = load.u8 storage v4 + v1
            store.u16 var1 + v2, v6
            v7 = load.i32 var0 + v0
            return";
    let expected = [
        "site0 buffer 0 8+4",
        "site1 buffer 1 0+4",
        "site2 buffer 1 1+1",
        "site3 shared 24+2 of var1",
        "site4 shared 0+4 of var0",
        "ends",
    ];
    of_first(body, &expected);
}

#[test]
fn accesses_out_of_bounds_are_not_reported() {
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 16
            v2 = const.i32 14
            v3 = const.i32 -1
            v4 = buffer binding0[v0]
            v5 = buffer binding0[v1]
            v6 = load.i32 storage v4 + v1
            v7 = load.i32 storage v4 + v2
            v8 = load.u16 storage v4 + v2
            v9 = load.i32 storage v4 + v3
            v10 = load.i32 storage v5 + v0
            store var1 + v2, v0
            store.u16 var1 + v2, v0
            store var1 + v3, v0
            return";
    of_first(body, &["site2 buffer 0 14+2", "site6 shared 30+2 of var1", "ends"]);
}

#[test]
fn private_push_and_uniform_memory_is_not_reported() {
    let text = "kernel \"test\" 1, 1, 1
        push 4
        binding0 = uniform 0.0[1] 0
        var0 = private 4 \"own\"
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            v3 = load.i32 uniform v1 + v0
            store var0 + v0, v3
            v4 = load.i32 var0 + v0
            return";
    let kernel = checked(&parse(text));
    assert!(kernel.sites.is_empty());
}

#[test]
fn atomics_are_reported_with_what_they_wrote() {
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 2
            v3 = const.i32 4
            v4 = buffer binding0[v0]
            v5 = atomic.iadd storage v4 + v0, v1 device relaxed
            v6 = atomic.load storage v4 + v3 device acquire|storage
            v7 = atomic.compare_exchange storage v4 + v0, v2, v1 device relaxed
            v8 = atomic.compare_exchange storage v4 + v0, v2, v1 device relaxed
            v9 = atomic64.compare_exchange var1 + v3, v1, v1, v0, v0 device relaxed
            v10 = atomic64.compare_exchange var1 + v3, v1, v1, v1, v0 device relaxed
            atomic.half_store storage v4 + v2, v0 device relaxed
            v11 = atomic.iadd storage v4 + v2, v1 device relaxed
            v12 = atomic.iadd storage v4 + v1, v1 device relaxed
            return";
    let expected = [
        "site0 atomic buffer 0 0+4 true",
        "site1 atomic buffer 0 4+4 false",
        "site2 atomic buffer 0 0+4 true",
        "site3 atomic buffer 0 0+4 false",
        "site4 atomic shared 20+8 of var1 true",
        "site5 atomic shared 20+8 of var1 false",
        "site6 atomic buffer 0 2+2 true",
        "ends",
    ];
    of_first(body, &expected);
}

#[test]
fn fences_are_reported_and_workgroups_follow_each_other() {
    let body = "
        block0:
            fence device acq_rel|storage
            return";
    let text = events(body, [2, 1, 2]);
    let all: Vec<String> = (0..4)
        .flat_map(|group| {
            (0..3).flat_map(move |local| ["site0 fence", "ends"].map(|e| format!("{group}.{local}: {e}")))
        })
        .collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), all);
}

/// Machine code has no private variable that nothing accesses; the workgroup variable after it keeps its number.
#[test]
fn passes_that_remove_variables_leave_checks_at_theirs() {
    let text = "kernel \"test\" 3, 1, 1
        var0 = private 4 \"own\"
        var1 = workgroup 16 \"a\"
        var2 = workgroup 16 \"b\"
        block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_index.0
            v2 = element v0, v1 * 4
            store var0 + v0, v1
            v3 = load.i32 var0 + v0
            store var2 + v2, v3
            v4 = atomic.iadd var1 + v0, v1 workgroup relaxed
            return";
    let found = observe_in_all(&checked(&parse(text)), &[], [1, 1, 1]);
    assert_eq!(found.of(2), ["site0 shared 24+4 of var1", "site1 atomic shared 0+4 of var0 true", "ends"]);
}
