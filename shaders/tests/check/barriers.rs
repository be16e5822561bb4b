//! Arrivals at barriers and releases, and barriers at which invocations are missing.

use crate::check::{checked, events, observe_in_all, parse};

#[test]
fn a_workgroup_arrives_and_is_released_once() {
    let body = "
        block0:
            barrier workgroup workgroup acq_rel|workgroup
            return";
    let expected = "0.0: site0 arrives\n0.1: site0 arrives\n0.2: site0 arrives\nworkgroup 0 released: workgroup\n\
                    0.0: ends\n0.1: ends\n0.2: ends\n";
    assert_eq!(events(body, [1, 1, 1]), expected);
}

#[test]
fn a_barrier_without_ended_invocations_is_divergent() {
    let body = "
        block0:
            v0 = const.i32 1
            v1 = builtin local_invocation_index.0
            v2 = ieq v1, v0
            selection block2
            branch v2, block1, block2
        block1:
            return
        block2:
            barrier workgroup workgroup acq_rel|workgroup
            return";
    let text = events(body, [1, 1, 1]);
    assert_eq!(text.lines().filter(|line| line.starts_with("divergent")).count(), 1, "{text}");
    assert!(
        text.contains("divergent workgroup: 0@site0 2@site0, without 1\nworkgroup 0 released: workgroup\n"),
        "{text}"
    );
}

#[test]
fn two_barriers_at_once_are_divergent() {
    let body = "
        block0:
            v0 = const.i32 1
            v1 = builtin local_invocation_index.0
            v2 = ult v1, v0
            selection block3
            branch v2, block1, block2
        block1:
            barrier workgroup workgroup acq_rel|workgroup
            jump block3
        block2:
            barrier workgroup workgroup acq_rel|workgroup
            jump block3
        block3:
            return";
    let text = events(body, [1, 1, 1]);
    assert!(text.contains("divergent workgroup: 0@site0 1@site1 2@site1, without\n"), "{text}");
}

/// The subgroup's barrier in the branch is passed first; those that wait at the later one have not arrived yet.
#[test]
fn a_subgroups_barrier_is_passed_by_those_that_reach_it_together() {
    let text = "kernel \"test\" 20, 1, 1
        block0:
            v0 = const.i32 18
            v1 = builtin local_invocation_index.0
            v2 = ult v1, v0
            selection block2
            branch v2, block2, block1
        block1:
            barrier subgroup subgroup acq_rel|workgroup
            jump block2
        block2:
            barrier subgroup subgroup acq_rel|workgroup
            return";
    let text = observe_in_all(&checked(&parse(text)), &[], [1, 1, 1]).text();
    let second: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("0.18")).collect();
    let expected = [
        "0.18: site0 arrives",
        "0.19: site0 arrives",
        "divergent subgroup: 18@site0 19@site0, without 16 17",
        "workgroup 0 released: subgroup 1",
        "0.16: site1 arrives",
        "0.17: site1 arrives",
        "0.18: site1 arrives",
        "0.19: site1 arrives",
        "workgroup 0 released: subgroup 1",
        "0.16: ends",
        "0.17: ends",
        "0.18: ends",
        "0.19: ends",
    ];
    assert_eq!(second, expected, "{text}");
}

/// Several subgroups, of which the last is not full: all arrive before the workgroup is released.
#[test]
fn a_workgroup_of_several_subgroups_is_released_when_the_last_has_arrived() {
    let text = "kernel \"test\" 40, 1, 1
        binding0 = storage 0.0[1] 0
        var0 = workgroup 160 \"a\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 39
            v2 = builtin local_invocation_index.0
            v3 = buffer binding0[v0]
            v4 = element v0, v2 * 4
            v5 = isub v1, v2
            v6 = element v0, v5 * 4
            store var0 + v4, v2
            barrier workgroup workgroup acq_rel|workgroup
            v7 = load.i32 var0 + v6
            store storage v3 + v4, v7
            barrier subgroup subgroup acq_rel|workgroup
            barrier workgroup workgroup acq_rel|workgroup
            v8 = atomic.iadd storage v3 + v0, v2 workgroup acq_rel|storage
            return";
    let buffer = crate::check::buffer(&[0; 40]);
    let text = observe_in_all(&checked(&parse(text)), &[buffer], [2, 1, 1]).text();
    let releases = text.lines().filter(|line| line.ends_with("released: workgroup"));
    assert_eq!(releases.count(), 4, "{text}");
    assert!(text.contains("workgroup 1 released: subgroup 2\n"), "{text}");
}
