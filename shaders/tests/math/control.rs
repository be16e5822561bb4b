//! Expansions inside of branches and loops, with the block that only large angles enter.

use spelter_shaders::ir::{Kernel, Merge, Op};

use crate::math::{EXACT, lowered, parse};

/// Every block that a merge names is in the layout and comes after the block that names it.
#[track_caller]
fn check_merges(kernel: &Kernel) {
    let place = |block| kernel.layout.iter().position(|&other| other == block).expect("merges are in the layout");
    for &block in &kernel.layout {
        let named = match kernel.blocks[block].merge {
            None => continue,
            Some(Merge::Selection { merge }) => vec![merge],
            Some(Merge::Loop { merge, continuing }) => vec![merge, continuing],
        };
        for named in named {
            assert!(place(named) > place(block), "{block} names {named}\n{kernel}");
        }
    }
}

/// Runs one invocation before and after, on angles small and large.
#[track_caller]
fn check(body: &str) -> Kernel {
    let text = format!(
        "kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nblock0:
        v0 = const.i32 0\n v1 = buffer binding0[v0]\n v2 = load.f32 storage v1 + v0\n v3 = const.i32 4\n{body}"
    );
    let kernel = parse(&text);
    let after = lowered(kernel.clone(), EXACT);
    check_merges(&after);
    let again = parse(&after.to_string());
    for angle in [0.5f32, -3.0, 1e9, -3e30] {
        let run = |kernel: &Kernel| {
            let buffer = spelter_shaders::guest::GuestSlice::leak(8);
            buffer.store_u32(0, angle.to_bits());
            crate::math::run_on(&spelter_shaders::back::interp::Program::new(kernel), buffer);
            f32::from_bits(buffer.load_u32(4))
        };
        let [wanted, found, text] = [&kernel, &after, &again].map(run);
        assert!((wanted - found).abs() <= wanted.abs() * 1e-6, "{angle}: {found}, not {wanted}\n{after}");
        assert_eq!(found.to_bits(), text.to_bits());
    }
    after
}

#[test]
fn in_one_block_sine_and_cosine_share_the_angle() {
    let kernel = check("v4 = sin v2\n v5 = cos v2\n v6 = fadd v4, v5\n store storage v1 + v3, v6\n return");
    assert_eq!(kernel.layout.len(), 3, "{kernel}");
}

#[test]
fn a_block_that_selects_keeps_its_construct() {
    check(
        "v4 = sin v2\n v5 = const.f32 0.5\n v6 = ford_lt v4, v5
            selection block3
            branch v6, block1, block2
        block1:
            v7 = cos v4\n jump block3(v7)
        block2:
            v8 = tan v2\n v9 = sin v8\n jump block3(v9)
        block3(v10: f32):
            v11 = cos v10\n store storage v1 + v3, v11\n return",
    );
}

/// A loop of three iterations, with `header` in its header and `body` in its body.
fn looped(header: &str, body: &str) -> String {
    format!(
        "jump block1(v0, v2)
        block1(v10: i32, v11: f32):
            {header}
            v12 = ult v10, v3
            loop block4, block3
            branch v12, block2, block4
        block2:
            {body}
            jump block3
        block3:
            v13 = const.i32 1\n v14 = iadd v10, v13\n v15 = sin v11\n v16 = fadd v15, v2
            jump block1(v14, v16)
        block4:
            v17 = cos v11\n store storage v1 + v3, v17\n return"
    )
}

#[test]
fn loops_keep_their_headers() {
    check(&looped("", "v20 = sin v11"));
    let kernel =
        check(&looped("v20 = sin v11\n store storage v1 + v3, v20", "v21 = cos v20\n store storage v1 + v3, v21"));
    let header = kernel.layout[1];
    assert!(matches!(kernel.blocks[header].merge, Some(Merge::Loop { .. })), "{kernel}");
}

#[test]
fn a_loop_of_one_block_gets_a_continue_target() {
    let kernel = check(
        "jump block1(v0, v2)
        block1(v10: i32, v11: f32):
            v12 = cos v11\n v13 = const.i32 1\n v14 = iadd v10, v13\n v15 = ult v14, v3
            loop block2, block1
            branch v15, block1(v14, v12), block2
        block2:
            store storage v1 + v3, v12\n return",
    );
    let header = kernel.layout[1];
    assert!(!matches!(kernel.blocks[header].merge, Some(Merge::Loop { continuing, .. }) if continuing == header));
}

#[test]
fn what_is_never_reached_is_expanded_too() {
    let text = "kernel \"k\" 1, 1, 1
        block0:\n return
        block1:\n v1 = pow v1, v2\n v2 = const.f32 1.0\n v3 = sin v3\n v4 = fclamp v3, v4, v1\n jump block1";
    lowered(parse(text), EXACT);
}

#[test]
fn precise_blends_round_each_step() {
    let blend = |precise: &str| {
        let text =
            crate::math::text_of(Op::FMix).replace("fmix v30, v31, v32", &format!("fmix v30, v31, v32{precise}"));
        lowered(parse(&text), EXACT).to_string()
    };
    assert!(blend("").contains("fma") && !blend(" no_contraction").contains("fma"));
}
