//! Rows of workgroups: which run side by side in the lanes, and what one call does once for all of them.

use std::collections::BTreeMap;

use spelter_shaders::compile::{self, Floats, Module};
use spelter_shaders::simd::{Kernel, merge_simd_blocks, verify, workgroup_loop};
use spelter_shaders::vectorize::{AccessCosts, widen};

/// The SIMD form of a kernel with a buffer, by the size of its workgroups, what stands before its entry point, and its
/// body.
fn widened(size: [u32; 3], before: &str, body: &str) -> Kernel {
    let [x, y, z] = size;
    let text = format!(
        "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;
        {before}
        @compute @workgroup_size({x}, {y}, {z})
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(local_invocation_id) local: vec3<u32>,
            @builtin(local_invocation_index) index: u32,
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {{ {body} }}"
    );
    let module = Module::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = module.kernel("main", &BTreeMap::new()).expect("an entry point");
    widen(&compile::lower(&kernel, Floats::FAST, |_, _| {}), &AccessCosts::AVX512).expect("it can be widened")
}

const PLAIN: &str = "words[id.y * 100u + id.x] += id.z;";

#[test]
fn small_workgroups_run_side_by_side() {
    let sizes = [
        ([8, 8, 1], 2),
        ([4, 4, 1], 4),
        ([4, 4, 4], 4),
        ([2, 4, 1], 8),
        ([1, 1, 1], 16),
        ([8, 1, 1], 2),
        ([16, 16, 1], 1),
        ([64, 1, 1], 1),
        ([3, 3, 1], 1),
        // Rows with one workgroup would leave most lanes inactive.
        ([2, 8, 1], 1),
        ([1, 64, 1], 1),
        ([2, 64, 1], 1),
    ];
    for (size, merged_workgroups) in sizes {
        let kernel = widened(size, "", PLAIN);
        assert_eq!(kernel.merged_workgroups, merged_workgroups, "{size:?}\n{kernel}");
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    }
}

#[test]
fn workgroups_that_know_more_of_themselves_run_alone() {
    let bodies = [
        ("", "storageBarrier(); words[id.x] = 1u;"),
        ("var<workgroup> tile: array<u32, 4>;", "tile[id.x & 3u] = id.y; words[id.x] = tile[id.y & 3u];"),
        ("", "words[id.x] = atomicAdd(&sum, 1u);"),
        ("", "words[id.x] = group.x;"),
        ("", "words[id.x] = local.x;"),
        ("", "words[id.x] = index;"),
        ("", "words[id.x] = subgroupAdd(id.y);"),
    ];
    for (before, body) in bodies {
        assert_eq!(widened([8, 8, 1], before, body).merged_workgroups, 1, "{body}");
    }
    for body in ["words[id.x] = group.y;", "words[id.x] = local.y;", "words[id.x] = groups.x;", PLAIN] {
        assert_eq!(widened([8, 8, 1], "", body).merged_workgroups, 2, "{body}");
    }
}

#[test]
fn loops_that_lanes_leave_one_by_one_keep_lanes_near_each_other() {
    let to = |end: &str| format!("var n = 0u; while n < {end} {{ n += words[n]; }} words[id.y * 100u + id.x] = n;");
    assert_eq!(widened([8, 8, 1], "", &to("id.x + id.y")).merged_workgroups, 1);
    // Alone they would not fill the lanes, or lanes leave at once.
    assert_eq!(widened([4, 2, 1], "", &to("id.x + id.y")).merged_workgroups, 4);
    assert_eq!(widened([8, 8, 1], "", &to("groups.x")).merged_workgroups, 2);
}

#[test]
fn a_row_looks_at_its_descriptors_once() {
    let mut kernel = widened([64, 1, 1], "", "if id.x == 7u { return; } words[id.x] += arrayLength(&words);");
    merge_simd_blocks(&mut kernel);
    workgroup_loop(&mut kernel);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    let text = kernel.to_string();
    let blocks: Vec<&str> = text.split("\nblock").collect();
    let holds = |block: usize, what: &str| blocks[block].contains(what);
    assert!(holds(1, "buffer_base") && holds(1, "buffer_len") && !holds(1, "workgroup_id"), "{text}");
    assert!(holds(2, "context workgroup_id.0") && !text.contains("return"), "{text}");
    assert_eq!(text.matches("next_workgroup").count(), 1, "{text}");
    assert_eq!(Kernel::parse(&text).expect("its text").to_string(), text);
}

#[test]
fn what_workgroups_may_write_is_read_for_each() {
    let body = "let first = words[0]; words[id.x + 1u] = first;";
    let mut kernel = widened([64, 1, 1], "", body);
    workgroup_loop(&mut kernel);
    let text = kernel.to_string();
    let entry = text.split("\nblock").nth(1).unwrap_or_default();
    assert!(!entry.contains("load"), "{text}");
}
