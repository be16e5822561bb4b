//! Random structured programs on every engine: a fixed part of what the program `fuzz` does for hours.

use spelter_shaders::compile;
use spelter_shaders::ir::{InstData, Kernel, Op, Scope, verify};
use spelter_tests::engine::{Engine, engines, interleaved};
use spelter_tests::fuzz::{
    Bench, Coverage, Feature, Features, Generated, Options, Program, Tape, generate, reduce, shrink, text,
};

/// Programs of each test.
const PROGRAMS: u64 = 1000;

fn programs(options: Options) -> impl Iterator<Item = (u64, Generated)> {
    (0..PROGRAMS).map(move |seed| (seed, generate(Tape::random(seed), options).0))
}

#[test]
fn engines_agree_on_random_programs() {
    let mut bench = Bench::default();
    // The command `fuzz` runs as many as one likes.
    for (seed, generated) in programs(Options::ALL).step_by(2) {
        verify(&generated.program.kernel).unwrap();
        if let Err(finding) = bench.check(&generated.program) {
            panic!("seed {seed}: {}: {}", finding.what, finding.detail);
        }
    }
}

/// Other threads write to a program's buffers while it runs.
#[test]
fn random_programs_that_race_touch_nothing_else() {
    let mut bench = Bench::default();
    bench.race();
    for (seed, generated) in programs(Options::ALL).step_by(8) {
        if let Err(finding) = bench.check(&generated.program) {
            panic!("seed {seed}: {}: {}", finding.what, finding.detail);
        }
    }
}

/// A sum with 0 is no new value: its place in the scope once replaced the first value of its kind.
#[test]
fn there_is_a_value_of_each_kind_at_each_place() {
    let seed = 77 << 48 | 21028;
    verify(&generate(Tape::random(seed), Options::ALL).0.program.kernel).unwrap();
}

/// Without determinism a difference between engines would prove nothing.
#[test]
fn answers_do_not_depend_on_the_order_of_invocations() {
    let prepare = |kernel: &Kernel| compile::interpret(&interleaved(kernel, Scope::Subgroup));
    let turns = Engine { name: "invocations in turns", prepare, of_lowered: None };
    let mut bench = Bench::new(vec![engines()[0], turns]);
    // Their own subgroup barriers must stay in step.
    let own = |generated: &Generated| generated.features.has(Feature::BarrierSubgroup);
    for (seed, generated) in programs(Options::ALL).filter(|(_, generated)| !own(generated)) {
        if let Err(finding) = bench.check(&generated.program) {
            panic!("seed {seed}: {}: {}", finding.what, finding.detail);
        }
    }
}

#[test]
fn every_feature_is_generated_and_reached() {
    let mut bench = Bench::default();
    let (mut coverage, mut reached) = (Coverage::default(), Features::default());
    for (_, generated) in programs(Options { marks: true, transcendental: true, ..Options::ALL }) {
        coverage.add(&generated.features);
        let comes = bench.reached(&generated.program).unwrap();
        comes.iter().for_each(|feature| reached.insert(feature));
    }
    // Rare features need more programs than this test can run.
    for seed in PROGRAMS..8 * PROGRAMS {
        coverage.add(&generate(Tape::random(seed), Options::ALL).0.features);
    }
    let missing: Vec<_> = Feature::ALL.iter().filter(|&&feature| coverage.percent(feature).0 == 0.0).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
    let unreached: Vec<_> =
        Feature::ALL.iter().filter(|&&feature| feature.is_at_a_place() && !reached.has(feature)).collect();
    assert!(unreached.is_empty(), "never reached: {unreached:?}");
}

#[test]
fn a_tape_gives_its_program_again() {
    for seed in 0..50 {
        let (first, tape) = generate(Tape::random(seed), Options::ALL);
        let (again, _) = generate(Tape::fixed(tape.into_words()), Options::ALL);
        assert_eq!(first.program.kernel.to_string(), again.program.kernel.to_string());
        assert_eq!(first.program.buffers, again.program.buffers);
    }
}

/// A wrong engine: signed minimum instead of unsigned.
fn wrong(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    for inst in kernel.insts.keys() {
        if let InstData::Pure { op: op @ Op::SMin, .. } = &mut kernel.insts[inst] {
            *op = Op::UMin;
        }
    }
    kernel
}

#[test]
fn a_wrong_engine_is_found_and_what_it_fails_on_becomes_small() {
    let wrong = Engine { name: "wrong", prepare: |kernel| compile::interpret(&wrong(kernel)), of_lowered: None };
    let mut bench = Bench::new(vec![engines()[0], wrong]);
    let mut fails =
        |program: &Program| bench.check(program).is_err_and(|finding| finding.what == "wrong: wrong memory");
    let found = (0..PROGRAMS).find_map(|seed| {
        let (generated, tape) = generate(Tape::random(seed), Options::ALL);
        fails(&generated.program).then(|| tape.into_words())
    });
    let tape = shrink(found.expect("no program shows it"), Options::ALL, 4000, &mut fails);
    let (generated, _) = generate(Tape::fixed(tape), Options::ALL);
    let program = reduce(generated.program, 4000, &mut fails);
    let kernel = &program.kernel;
    let insts: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
    assert!(insts < 25, "{insts} instructions are left:\n{kernel}");
    let again = text::read(&text::write(&program, "it is wrong")).expect("what was written is read");
    assert_eq!((again.buffers.clone(), again.push.clone()), (program.buffers.clone(), program.push.clone()));
    assert!(fails(&again));
}

#[test]
fn what_was_found_once_stays_right() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz-findings");
    let mut bench = Bench::default();
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "ir")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let program = text::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let Err(finding) = bench.check(&program) {
            panic!("{}: {}: {}", path.display(), finding.what, finding.detail);
        }
    }
}
