//! Benchmarks of worst cases, with many reads of few locations, so that nearly every write is a candidate; and of the
//! Khronos tests, all 172 questions of the 89 files.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, answer};
use spelter_memory_model::format::Format;
use spelter_memory_model::program::{Instance, unroll};
use spelter_memory_model::search::{Limits, Statistics, search};

/// Four threads with `code` each: `w` and `r` write and read the location that follows, `x` or `y`.
fn program(code: &str, semantics: bool) -> Instance {
    let (release, acquire) = if semantics { (".rel.semsc0", ".acq.semsc0") } else { ("", "") };
    let mut text = String::new();
    for thread in 0..4 {
        text += &format!("NEWSG\nNEWTHREAD {thread}\n");
        for operation in code.split(' ') {
            let (kind, name) = operation.split_at(1);
            // Each value is written once; a load has no stated value.
            text += &match kind {
                "w" => format!("st.atom{release}.scopedev.sc0 {name} = {}\n", thread + 1),
                _ => format!("ld.atom{acquire}.scopedev.sc0 {name}\n"),
            };
        }
    }
    let test = Format::Khronos.read("worst", &text).expect("the text is a test");
    unroll(&test.program, 1, false).expect("it is small").remove(0)
}

fn count(instance: &Instance) -> Statistics {
    let limits = Limits { steps: u64::MAX, ..Limits::default() };
    search(black_box(instance), Model::SPEC, limits, &mut |_| ControlFlow::Continue(())).expect("it is small")
}

fn worst_cases(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("executions");
    group.sample_size(10);
    for (name, instance) in [
        ("12 events, one location, relaxed", program("wx rx rx", false)),
        ("12 events, one location, acquire and release", program("wx rx rx", true)),
        ("16 events, one location, acquire and release", program("wx rx rx rx", true)),
        ("16 events, two locations, relaxed", program("wx ry wy rx", false)),
        ("16 events, two locations, acquire and release", program("wx ry wy rx", true)),
    ] {
        let statistics = count(&instance);
        group.bench_function(format!("{name}: {} of {} steps", statistics.executions, statistics.steps), |bencher| {
            bencher.iter(|| count(&instance));
        });
    }
    group.finish();
}

/// Reading each file of the Khronos tests and answering its questions.
fn khronos(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/khronos");
    let entries = std::fs::read_dir(folder).expect("the tests are beside the crate");
    let files = entries.map(|entry| entry.expect("a file").path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "test"));
    let texts: Vec<_> = files.map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    let decide = || {
        let mut asked = 0;
        for text in &texts {
            let test = Format::Khronos.read("khronos", black_box(text)).expect("a test");
            for question in &test.questions {
                let answer = answer(&test.program, question, &Options::default()).expect("it is small");
                assert!(!answer.differs());
                asked += 1;
            }
        }
        asked
    };
    let name = format!("khronos: {} questions of {} files", decide(), texts.len());
    criterion.bench_function(&name, |bencher| bencher.iter(decide));
}

criterion_group!(benches, worst_cases, khronos);
criterion_main!(benches);
