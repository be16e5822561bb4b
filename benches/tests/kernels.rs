//! Every kernel and every overhead of the benches, small and once: all engines give the results of plain Rust.

use spelter_benches::engine::engines;
use spelter_benches::kernels;
use spelter_benches::overhead;
use spelter_benches::work::Size;

#[test]
fn kernels_agree_with_plain_rust() {
    for engine in engines().unwrap() {
        for kernel in kernels::ALL {
            kernel.checked(&engine.context, Size::Small).unwrap_or_else(|error| panic!("{}, {error}", engine.name));
        }
    }
}

#[test]
fn a_kernel_that_did_not_run_is_wrong() {
    let engine = engines().unwrap().remove(0);
    for kernel in kernels::ALL {
        let mut work = (kernel.prepare)(&engine.context, Size::Small).unwrap();
        work.plain();
        assert!(work.compare().is_err(), "{} agrees without having run", kernel.name);
    }
}

#[test]
fn overheads_run() {
    for engine in engines().unwrap() {
        for overhead in overhead::ALL {
            let repeated = (overhead.prepare)(&engine.context, Size::Small).unwrap();
            (repeated.run)().unwrap_or_else(|error| panic!("{}, {}: {error}", engine.name, overhead.name));
        }
    }
}
