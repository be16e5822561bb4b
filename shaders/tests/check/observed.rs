//! What is reported of accesses, atomics and fences.

use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Kernel;

use crate::check::{buffer, checked, events, events_of, machine_code, observe, observe_in, observe_in_all, parse};

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
fn private_memory_and_push_constants_are_not_reported() {
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
    let found = observe_in_all(&checked(&parse(text)), &[buffer(&[0])], [1, 1, 1]);
    assert_eq!(found.of(0), ["site0 buffer 0 0+4", "ends"]);
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

/// A kernel of 3 invocations that goes on with the address of each, `v4` and `v7`, from a table; and its memory: the
/// table, and two address ranges of which the second is that of invocation 1.
fn by_address(body: &str) -> (Kernel, [GuestSlice; 3]) {
    let text = format!(
        "kernel \"test\" 3, 1, 1
        binding0 = storage 0.0[1] 0
        site0 = read uniform
        site1 = read uniform
        block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_index.0
            v2 = element v0, v1 * 8
            v3 = buffer binding0[v0]
            v4 = load.i32 storage v3 + v2
            v5 = const.i32 4
            v6 = element v2, v5 * 1
            v7 = load.i32 storage v3 + v6
            v8 = buffer_near v4, v7
            v9 = buffer_offset v8, v4, v7
            v10 = buffer_at v4, v7
            v11 = buffer_offset v10, v4, v7
            {body}"
    );
    let mut ranges = [buffer(&[0; 4]), buffer(&[0; 4])];
    ranges.sort_by_key(|range| range.address() as u64);
    let [low, high] = ranges;
    let addresses = [low, high, low].map(|range| range.address() as u64 + 4);
    let table = addresses.map(|address| [address as u32, (address >> 32) as u32]);
    (parse(&text), [buffer(table.as_flattened()), low, high])
}

/// Machine code takes the slow path for all of a subgroup if the first address range does not hold for one; both paths
/// are one access of the module.
#[test]
fn an_access_by_address_is_reported_once_whatever_its_path() {
    let (kernel, buffers) = by_address(
        "v12 = reaches v8 + v9
            selection block3
            branch v12, block1, block2
        block1:
            check site0 storage v8 + v9
            v13 = load.i32 storage v8 + v9
            jump block3(v13)
        block2:
            check site0 storage v10 + v11
            v14 = load.i32 storage v10 + v11
            jump block3(v14)
        block3(v15: i32):
            store storage v3 + v2, v15
            return",
    );
    let found = observe_in_all(&kernel, &buffers, [1, 1, 1]);
    let expected = [1, 2, 1].map(|range| vec![format!("site0 buffer {range} 4+4"), "ends".into()]);
    assert_eq!([0, 1, 2].map(|local| found.of(local).into_iter().map(String::from).collect::<Vec<_>>()), expected);
}

/// Which address range `buffer_near` gives is up to the code: without `reaches`, what lies in another is out of bounds.
#[test]
fn an_access_near_an_address_is_reported_where_it_reaches() {
    let (kernel, buffers) = by_address(
        "check site0 storage v8 + v9
            v12 = load.i32 storage v8 + v9
            check site1 storage v10 + v11
            v13 = load.i32 storage v10 + v11
            return",
    );
    let [near, exact] = [0, 1].map(|site| move |range: u32| format!("site{site} buffer {range} 4+4"));
    let both = |range: u32| vec![near(range), exact(range), "ends".into()];
    let of = |found: &crate::check::Recorder| {
        [0, 1, 2].map(|local| found.of(local).into_iter().map(String::from).collect::<Vec<_>>())
    };
    assert_eq!(of(&observe(&kernel, &buffers, [1, 1, 1])), [both(1), both(2), both(1)]);
    for (isa, program) in machine_code(&kernel) {
        let found = observe_in(&program.unwrap(), &buffers, [1, 1, 1]);
        assert_eq!(of(&found), [both(1), vec![exact(2), "ends".into()], both(1)], "{isa:?}");
    }
}
