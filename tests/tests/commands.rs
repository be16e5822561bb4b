//! Checked mode between commands against the axioms of the memory model, on random programs: no race of adjacent
//! accesses is missed, nothing is reported in vain.

use spelter_driver::check::{CheckOptions, Severity};
use spelter_tests::commands::{Comparison, Machine, Pace, Program};

/// A small number; the program `commands` runs more.
const PROGRAMS: u64 = 400;

#[test]
fn random_programs_agree_with_the_axioms() {
    // The log is cleaned while programs run, too.
    let machine = Machine::new(CheckOptions { log_accesses: 4, ..CheckOptions::default() }).unwrap();
    let (mut races, mut pairs, mut race_free, mut hidden, mut too_large) = (0, 0, 0, 0, 0);
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        let comparison = Comparison::of(&machine, &program).unwrap();
        assert!(comparison.agrees(), "seed {seed}\n{program}{comparison:#?}");
        too_large += comparison.too_large;
        races += comparison.races;
        pairs += comparison.pairs;
        hidden += comparison.hidden;
        race_free += u64::from(comparison.races == 0);
    }
    // Programs of all kinds: with races and without, and pairs that something orders.
    let counts = (race_free, races, pairs, hidden, too_large);
    let all_kinds = race_free > PROGRAMS / 20 && races > 200 && pairs - races > 100 && hidden > 10;
    assert!(all_kinds && too_large * 100 < pairs, "{counts:?}");
}

#[test]
fn programs_are_those_of_their_seed() {
    let text = Program::random(7).to_string();
    assert_eq!(Program::parse(text.lines()).unwrap(), Program::random(7));
}

#[test]
fn an_event_that_is_set_is_not_set_again() {
    let machine = Machine::new(CheckOptions::default()).unwrap();
    let scopes = "COMPUTE_SHADER:SHADER_STORAGE_WRITE -> COMPUTE_SHADER:SHADER_STORAGE_READ";
    let commands = format!("write a; set e0 {scopes}; write b; set e0 {scopes}; wait e0 {scopes}");
    let errors = |read: &str| {
        let text = format!("x0 = {commands}; read {read}\nsubmit q0 run x0\n");
        let program = Program::parse(text.lines()).unwrap();
        let findings = machine.run(&program, Pace::InOrder).unwrap();
        findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    };
    // What comes after the first set is in no first scope of the wait.
    assert_eq!(["a", "b"].map(errors), [0, 1]);
}

/// The number of errors of a program with one command buffer.
#[allow(clippy::unwrap_used, reason = "a helper of tests")]
fn errors_of(commands: &str) -> usize {
    let machine = Machine::new(CheckOptions::default()).unwrap();
    let text = format!("x0 = {commands}\nsubmit q0 run x0\n");
    let program = Program::parse(text.lines()).unwrap();
    let findings = machine.run(&program, Pace::InOrder).unwrap();
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

#[test]
fn a_plain_access_counts_beside_a_later_atomic_of_its_word() {
    for (commands, errors) in [
        // The plain write races with the atomic of the other dispatch, each way.
        ("restart a; atomic a", 1),
        ("atomic a; restart a", 1),
        ("double a; atomic a", 1),
        ("atomic a; atomic a", 0),
    ] {
        assert_eq!(errors_of(commands) > 0, errors > 0, "{commands}");
    }
    let ordered = "barrier COMPUTE_SHADER:SHADER_WRITE -> COMPUTE_SHADER:SHADER_READ|SHADER_WRITE";
    assert_eq!(errors_of(&format!("restart a; {ordered}; double a; {ordered}; restart a")), 0);
}

#[test]
fn reads_of_each_access_type_count() {
    let after =
        |access: &str| errors_of(&format!("fill a; barrier CLEAR:TRANSFER_WRITE -> COMPUTE_SHADER:{access}; both a"));
    assert_eq!(["UNIFORM_READ|SHADER_READ", "SHADER_READ", "UNIFORM_READ"].map(after), [0, 1, 1]);
}

#[test]
fn stages_of_graphics_are_links_of_dependency_chains() {
    let through = |first: &str, second: &str| {
        let [one, other] = [("CLEAR:TRANSFER_WRITE", first), (second, "COMPUTE_SHADER:SHADER_READ")]
            .map(|(src, dst)| format!("barrier {src} -> {dst}"));
        errors_of(&format!("fill a; {one}; {other}; read a"))
    };
    assert_eq!(through("FRAGMENT_SHADER", "FRAGMENT_SHADER"), 0);
    assert_eq!(through("VERTEX_SHADER", "ALL_GRAPHICS"), 0);
    assert_eq!(through("BLIT", "ALL_TRANSFER"), 0);
    // Logically earlier than what the first barrier waits in.
    assert_eq!(through("FRAGMENT_SHADER", "VERTEX_SHADER"), 1);
    assert_eq!(through("RESOLVE", "BLIT"), 1);
    let drawing = "barrier COMPUTE_SHADER:SHADER_WRITE -> ALL_GRAPHICS:INDIRECT_COMMAND_READ";
    assert_eq!(errors_of(&format!("write a; {drawing}; indirect a:0..12")), 0);
}

#[test]
fn a_wait_for_several_events_has_a_dependency_for_each() {
    let (write, order) = ("CLEAR:TRANSFER_WRITE -> COPY:TRANSFER_READ", "CLEAR -> COMPUTE_SHADER");
    let of = |waits: &str| errors_of(&format!("set e0 {write}; fill a; set e1 {order}; {waits}; copy a b"));
    // The fill comes before the signal of the other event only, whose dependency does not lead to the copy.
    assert_eq!(of(&format!("wait e0 {write} and e1 {order}")), 1);
    assert_eq!(of(&format!("wait e0 {write}; wait e1 {order}")), 1);
    assert_eq!(of(&format!("wait e0 {order} and e1 {write}")), 0);
    assert_eq!(of(&format!("wait e1 {write} and e0 {order}")), 0);
}

#[test]
fn an_event_that_the_host_sets_comes_after_what_the_host_did_and_waited_for() {
    let machine = Machine::new(CheckOptions::default()).unwrap();
    let errors = |src: &str, host: &str| {
        let wait = format!("x0 = wait e0 {src} -> ALL_TRANSFER:TRANSFER_READ; copy a b");
        let text = format!("{wait}\nx1 = fill a\nsubmit q1 run x0\n{host}\nhost set e0\nhost idle\n");
        let program = Program::parse(text.lines()).unwrap();
        let findings = machine.run(&program, Pace::Free).unwrap();
        findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    };
    let (waits, does_not) = ("submit q0 run x1 fence f0\nhost wait f0", "submit q0 run x1");
    assert_eq!(errors("HOST:HOST_WRITE", waits), 0);
    assert_eq!(errors("HOST", waits), 0, "the fence made the fill available");
    assert_eq!(errors("ALL_COMMANDS:MEMORY_WRITE", waits), 1, "without HOST the signal is in no first scope");
    assert_eq!(errors("HOST:HOST_WRITE", does_not), 1);
    assert_eq!(errors("HOST:HOST_WRITE", "host write a"), 0);
    assert_eq!(errors("HOST", "host write a"), 1, "the write is not available");
    assert_eq!(errors("ALL_COMMANDS:MEMORY_WRITE", "host write a"), 1);
}

#[test]
fn the_ends_of_the_pipeline_order_all_commands_and_carry_no_accesses() {
    let through = |src: &str, dst: &str| errors_of(&format!("fill a; barrier {src} -> {dst}; read a"));
    let (write, read) = ("CLEAR:TRANSFER_WRITE", "COMPUTE_SHADER:SHADER_READ");
    assert_eq!(through("BOTTOM_OF_PIPE:MEMORY_WRITE", read), 1);
    assert_eq!(through(write, "TOP_OF_PIPE:MEMORY_READ"), 1);
    assert_eq!(through("BOTTOM_OF_PIPE|CLEAR:TRANSFER_WRITE", "TOP_OF_PIPE|COMPUTE_SHADER:SHADER_READ"), 0);
    // They are links of chains: a write that is available stays so.
    assert_eq!(through(write, &format!("TOP_OF_PIPE; barrier COPY -> {read}")), 0);
    assert_eq!(through(write, &format!("COPY; barrier BOTTOM_OF_PIPE -> {read}")), 0);
    assert_eq!(through(write, &format!("BOTTOM_OF_PIPE; barrier COPY -> {read}")), 1);
    let after = |src: &str| errors_of(&format!("barrier NONE -> ALL_TRANSFER transition i; {src}; copy i j"));
    let again = "-> ALL_TRANSFER:TRANSFER_READ|TRANSFER_WRITE on i";
    assert_eq!(after(&format!("barrier BOTTOM_OF_PIPE {again}")), 0, "a transition is available by itself");
    assert_eq!(after(&format!("barrier TOP_OF_PIPE {again}")), 1);
    assert_eq!(errors_of("read a; barrier BOTTOM_OF_PIPE -> TOP_OF_PIPE; fill a"), 0, "order is all that it needs");
}

#[test]
fn the_transition_of_a_wait_for_events_follows_what_comes_before_the_signal() {
    let of = |src: &str, commands: [&str; 2], dst: &str| {
        let scopes = format!("{src} -> {dst} transition i");
        let [first, second] = commands;
        errors_of(&format!("{first}; set e0 {scopes}; {second}; wait e0 {scopes}; copy i j"))
    };
    let (write, read) = ("ALL_TRANSFER:TRANSFER_WRITE", "ALL_TRANSFER:TRANSFER_READ");
    assert_eq!(of(write, ["clear i", "fill a"], read), 0);
    assert_eq!(of(write, ["fill a", "clear i"], read), 1, "the clear comes after the signal");
    assert_eq!(of("ALL_TRANSFER", ["clear i", "fill a"], read), 1, "the clear is not available");
    assert_eq!(of("COMPUTE_SHADER", ["clear i", "fill a"], read), 1, "the clear is in another stage");
    assert_eq!(of(write, ["clear i", "fill a"], "COMPUTE_SHADER:SHADER_READ"), 1, "the copy is in another stage");
}

#[test]
fn a_repair_has_all_that_the_observed_execution_lacks() {
    let machine = Machine::new(CheckOptions::default()).unwrap();
    let repairs = |text: &str| -> Vec<String> {
        let program = Program::parse(text.lines()).unwrap();
        let findings = machine.run(&program, Pace::InOrder).unwrap();
        findings.iter().flat_map(|finding| &finding.repairs).map(|repair| repair.text.clone()).collect()
    };
    let barrier = "barrier COMPUTE_SHADER:SHADER_WRITE -> HOST:HOST_READ";
    // The host reads without a wait: that alone does not make the value visible to it.
    let alone = repairs("x0 = write a\nsubmit q0 run x0\nhost read a\n");
    assert!(alone[0].contains("a fence of that submission") && alone[0].contains("HOST_READ"), "{alone:?}");
    let visible = repairs(&format!("x0 = write a; {barrier}\nsubmit q0 run x0\nhost read a\n"));
    assert_eq!(visible, ["wait for a fence of that submission before the host accesses the memory"]);
    let queues = repairs("x0 = write a\nx1 = read a\nsubmit q0 run x0\nsubmit q1 run x1\n");
    assert!(queues[0].starts_with("a semaphore that the submission of "), "{queues:?}");
}
