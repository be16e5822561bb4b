//! Repairs: descriptions of edits, bounds of the search, and filters.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter_memory_model::answer::{Options, find_race};
use spelter_memory_model::format::{Format, QuestionKind, Test};
use spelter_memory_model::program::TooLarge;
use spelter_memory_model::repair::{Effort, Repair, repair, words};

fn khronos(text: &str) -> Test {
    Format::Khronos.read("test", text).unwrap()
}

fn with_effort(test: &Test, effort: Effort) -> Result<Option<Repair>, TooLarge> {
    repair(&test.program, None, &Options::default(), effort)
}

fn edits(test: &Test) -> String {
    let repair = with_effort(test, Effort::default()).unwrap().unwrap();
    assert!(repair.is_smallest(), "{:?}", repair.gave_up);
    words(&test.program, &repair.edits)
}

/// Two threads with a control barrier that orders no memory.
const BARE: &str = "st.nonpriv.sc0 x = 1\ncbar.scopewg 0\nNEWSG\nNEWTHREAD\ncbar.scopewg 0\nld.nonpriv.sc0 x\nNEWSG\nNEWTHREAD\ncbar.scopewg 0";

#[test]
fn an_edit_of_a_barrier_names_all_its_operations() {
    let text = edits(&khronos(BARE));
    assert!(text.contains("Release|UniformMemory on T0:2, T1:1 and T2:1"), "{text}");
}

#[test]
fn a_new_barrier_names_the_operations_around_it() {
    let text = edits(&khronos("st.nonpriv.sc0 x = 1\nNEWSG\nNEWTHREAD\nld.nonpriv.sc0 x"));
    assert!(text.contains("a control barrier for UniformMemory after T0:1 and before T1:1"), "{text}");
}

#[test]
fn semantics_that_an_edit_gives_can_make_memory_available() {
    // Three locations: adding two flags to one barrier, once it has semantics, takes fewer edits than two for each
    // access.
    assert_eq!(
        edits(&khronos(&three_locations())),
        "MakeAvailable on T0:4 and T1:1, MakeVisible on T0:4 and T1:1, \
         Release|UniformMemory on T0:4 and T1:1, Acquire|UniformMemory on T0:4 and T1:1"
    );
}

fn three_locations() -> String {
    let accesses = |kind: &str| ["x", "y", "z"].map(|name| format!("{kind}.nonpriv.sc0 {name}\n")).concat();
    let stores = accesses("st").replace('\n', " = 1\n");
    format!("{stores}cbar.scopewg 0\nNEWSG\nNEWTHREAD\ncbar.scopewg 0\n{}", accesses("ld"))
}

#[test]
fn the_class_of_a_flag_and_the_scope_of_a_detour_are_tried() {
    let text = "st.av.scopewg.sc0 x = 1\nmembar.rel.scopewg.semsc0\nst.atom.scopewg.sc1 f = 1\nNEWSG\nNEWTHREAD\n\
                ld.atom.scopewg.sc1 f = 1\nmembar.acq.scopewg.semsc0.semsc1\nld.vis.scopewg.sc0 x";
    assert_eq!(edits(&khronos(text)), "WorkgroupMemory on T0:2");
    let text = "st.av.scopedev.sc0 x = 1\nst.atom.rel.scopedev.sc0.semsc0 f = 1\nNEWWG\nNEWSG\nNEWTHREAD\n\
                ld.atom.acq.scopeqf.sc0.semsc0 g = 1\nld.vis.scopedev.sc0 x\n\
                NEWQF\nNEWWG\nNEWSG\nNEWTHREAD\nld.atom.acq.scopedev.sc0.semsc0 f = 1\n\
                st.atom.rel.scopedev.sc0.semsc0 g = 1";
    assert_eq!(edits(&khronos(text)), "Device scope on T1:1");
    let text = "st.av.scopedev.sc0 x = 1\nst.atom.rel.scopewg.sc0.semsc0 f = 1\nNEWWG\nNEWSG\nNEWTHREAD\n\
                ld.atom.acq.scopewg.sc0.semsc0 f = 1\nld.vis.scopedev.sc0 x";
    assert_eq!(edits(&khronos(text)), "QueueFamily scope on T0:2, QueueFamily scope on T1:1");
}

/// Two readers see two writes in different orders, which wider scopes forbid.
#[test]
fn the_value_of_a_racing_read_is_not_a_guard() {
    let thread = |code: &str| format!("NEWWG\nNEWSG\nNEWTHREAD\n{code}");
    let store = |value: u8| thread(&format!("st.atom.scopewg.sc0 x = {value}\n"));
    let load = |value: u8| format!("ld.atom.scopewg.sc0 x = {value}\n");
    let readers = [thread(&(load(1) + &load(2))), thread(&(load(2) + &load(1)))].concat();
    let text = edits(&khronos(&format!("{}{}{readers}", store(1), store(2))));
    assert_eq!(text.matches("QueueFamily scope").count(), 6, "{text}");
}

#[test]
fn a_race_that_no_edit_prevents_has_no_repair() {
    // Two references of one location, in two workgroups.
    let test = khronos("st.nonpriv.sc0 x = 1\nNEWWG\nNEWSG\nNEWTHREAD\nld.nonpriv.sc0 y\nSLOC x y");
    assert!(with_effort(&test, Effort::default()).unwrap().is_none());
}

#[test]
fn the_search_for_a_repair_has_a_bound_on_all_its_steps() {
    let test = khronos(&three_locations());
    let error = |effort| with_effort(&test, effort).unwrap_err().to_string();
    let message = "the program is too large: the search for a repair takes too many steps, and the bound is 3";
    assert_eq!(error(Effort { steps: 3, ..Effort::default() }), message);
    // Two barriers that order nothing: with more steps there is a repair, but with eight edits it is too large to prove
    // it minimal.
    let text = "st.nonpriv.sc0 x = 1\ncbar.scopewg 0\nst.nonpriv.sc0 y = 1\ncbar.scopewg 1\nNEWSG\nNEWTHREAD\n\
                cbar.scopewg 0\nld.nonpriv.sc0 x\ncbar.scopewg 1\nld.nonpriv.sc0 y";
    let long = khronos(text);
    let mut kinds = Vec::new();
    for power in (4..23).step_by(2) {
        match with_effort(&long, Effort { steps: 1 << power, edits: 8, ..Effort::default() }) {
            Err(bound) => {
                assert!(bound.what.contains("too many steps"), "{bound}");
                kinds.push(0);
            }
            Ok(Some(repair)) => {
                assert!(find_race(&repair.program, None, &Options::default()).unwrap().is_none());
                kinds.push(if repair.is_smallest() { 2 } else { 1 });
                if let Some(bound) = repair.gave_up {
                    assert_eq!(bound.what, "the search for the smallest repair takes too many steps");
                }
            }
            Ok(None) => panic!("there is a repair"),
        }
    }
    assert!(kinds.is_sorted() && kinds.contains(&0) && kinds.contains(&1), "{kinds:?}");
    let few = with_effort(&test, Effort { programs: 2, ..Effort::default() }).unwrap().unwrap();
    let bound = few.gave_up.unwrap().to_string();
    assert!(
        bound.ends_with("the search for the smallest repair tries too many programs, and the bound is 2"),
        "{bound}"
    );
    let short = with_effort(&test, Effort { edits: 1, ..Effort::default() }).unwrap().unwrap();
    let bound = short.gave_up.unwrap().to_string();
    assert!(bound.ends_with("the smallest repair takes more edits, and the bound is 1"), "{bound}");
}

/// Executions that do not see the flag have a race of their own; the payload matters only in those that see it.
#[test]
fn a_repair_considers_only_executions_that_pass_the_filter() {
    let text = "VULKAN t
{ x=0; flag=0; }
 P0@sg 0, wg 0, qf 0                      | P1@sg 1, wg 0, qf 0                       ;
 st.nonpriv.sc0 x, 7                      | ld.atom.acq.wg.sc0.semsc0 seen, flag      ;
 st.atom.rel.wg.sc0.semsc0.semav flag, 1  | ld.nonpriv.sc0 got, x                     ;
filter (P1:seen == 1)
forall (P1:got == 7)";
    let test = Format::Dartagnan.read("t", text).unwrap();
    let QuestionKind::Final { filter, .. } = &test.questions[0].kind else { panic!("no condition") };
    let repaired = repair(&test.program, filter.as_ref(), &Options::default(), Effort::default()).unwrap().unwrap();
    assert_eq!(words(&test.program, &repaired.edits), "MakePointerVisible (Workgroup) on P1:2");
}
