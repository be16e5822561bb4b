//! Every rule of the verifier refuses a kernel that breaks it.

use spelter_shaders::simd::{Block, Inst, InstData, Kernel, Type, Value, ValueDef, verify};

use crate::simd::text::{EVERYTHING, parse};

const HEAD: &str = "simd kernel \"k\"\ndescriptors 2\nframes 128\n";

/// What a kernel with these blocks is refused for.
#[track_caller]
fn refused(text: &str, message: &str) {
    let kernel = parse(&format!("{HEAD}{text}"));
    assert_eq!(verify(&kernel).expect_err("must be refused").to_string(), message);
}

#[track_caller]
fn accepted(text: &str) {
    let kernel = parse(&format!("{HEAD}{text}"));
    assert_eq!(verify(&kernel), Ok(()), "{text}");
}

/// What one instruction is refused for. There are v0: s1, v1: s32, v2: s64, v3: v32, v4: mask.
#[track_caller]
fn refused_inst(inst: &str, message: &str) {
    let start =
        "block0:\n v0 = const.s1 true\n v1 = const.s32 1\n v2 = const.s64 1\n v3 = const.v32 1\n v4 = const.mask 1\n";
    refused(&format!("{start} {inst}\n return"), &format!("`{inst}`: {message}"));
}

/// What a kernel is refused for after something was done to it.
#[track_caller]
fn refused_after(change: impl FnOnce(&mut Kernel), message: &str) {
    let mut kernel = parse(
        "simd kernel \"k\"\nblock0:\n v0 = const.s32 1\n v1 = iadd v0, v0\n jump block1(v1)\nblock1(v2: s32):\n return",
    );
    change(&mut kernel);
    assert_eq!(verify(&kernel).expect_err("must be refused").to_string(), message);
}

#[test]
fn the_kernel_of_the_book_is_right() {
    let page = include_str!("../../../docs/simd.md");
    let text = page.split("```").nth(1).expect("the page has a kernel");
    assert_eq!(verify(&parse(text)), Ok(()));
}

#[test]
fn one_of_everything_breaks_only_the_rule_for_masks() {
    let message = verify(&parse(EVERYTHING)).expect_err("must be refused").to_string();
    assert_eq!(message, "`store v28 + 4, v0 mask v8`: the block has no execution mask");
}

#[test]
fn layout_and_blocks() {
    refused("", "the kernel has no entry block");
    refused("block0:", "block0 does not end with a terminator");
    refused("block0:\n v0 = const.s32 1", "block0 does not end with a terminator");
    refused("block0:\n return\n return", "`return`: a terminator is not at the end of its block");
    refused("block0(v0: s32):\n return", "the entry block0 has parameters");
    refused("block0:\n jump block1\nblock1:\n jump block0", "`jump block0`: the entry has no predecessors");
    refused("block0:\n jump block1", "`jump block1`: block1 is not in the layout");
    refused(
        "block0:\n jump block2\nblock1:\n return\nblock2:\n jump block1",
        "block1 comes before block2, which dominates it",
    );
    refused_after(|kernel| kernel.layout.push(Block::from_u32(0)), "block0 is in the layout twice");
    refused_after(|kernel| kernel.layout.push(Block::from_u32(9)), "block9 is in the layout but not in the kernel");
}

#[test]
fn definitions() {
    let block = Block::from_u32(0);
    let inst = |number| Inst::from_u32(number);
    let value = |number| Value::from_u32(number);
    refused_after(|kernel| kernel.blocks[block].insts.insert(0, inst(99)), "inst99 in block0 is not in the kernel");
    refused_after(
        |kernel| kernel.blocks[block].insts.insert(0, inst(0)),
        "`v0 = const.s32 1`: the instruction has two places",
    );
    refused_after(|kernel| kernel.results[inst(0)].clear(), "`const.s32 1`: the instruction has 1 results, not 0");
    refused_after(
        |kernel| kernel.results[inst(2)].push(value(0)),
        "`v0 = jump block1(v1)`: the instruction has 0 results, not 1",
    );
    refused_after(
        |kernel| kernel.results[inst(1)][0] = value(0),
        "`v0 = iadd v0, v0`: the definition of v0 is elsewhere",
    );
    refused_after(
        |kernel| kernel.values[value(0)] = ValueDef::Result { inst: inst(0), index: 0, ty: Type::V32 },
        "`v0 = const.s32 1`: v0 is s32, not v32",
    );
    refused_after(
        |kernel| kernel.values[value(0)] = ValueDef::Result { inst: inst(0), index: 1, ty: Type::S32 },
        "`v0 = const.s32 1`: the definition of v0 is elsewhere",
    );
    refused_after(
        |kernel| kernel.values[value(2)] = ValueDef::Param { block, index: 0, ty: Type::S32 },
        "v2 is a parameter of block1, but its definition does not say so",
    );
    refused_after(
        |kernel| kernel.insts[inst(1)] = InstData::Splat { value: value(77) },
        "`v1 = splat v77`: v1 is v32, not s32",
    );
    refused_after(
        |kernel| kernel.insts[inst(1)] = InstData::Extract { vector: value(77), lane: value(0) },
        "`v1 = extract v77, v0`: v77 is not defined in the layout",
    );
}

#[test]
fn dominance() {
    refused(
        "block0:\n v0 = const.s1 true\n branch v0, block1, block2\n\
         block1:\n v1 = const.s32 1\n jump block2\n\
         block2:\n v2 = ineg v1\n return",
        "`v2 = ineg v1`: v1 does not dominate its use",
    );
    refused_after(
        |kernel| kernel.blocks[Block::from_u32(0)].insts.swap(0, 1),
        "`v1 = iadd v0, v0`: v0 does not dominate its use",
    );
    let unreachable = "block0:\n return\nblock1:\n v0 = const.s32 1\n jump block2\nblock2:\n v1 = ineg v0\n return";
    accepted(unreachable);
    let mut kernel = parse(&format!("{HEAD}{unreachable}"));
    kernel.layout.swap(1, 2);
    assert_eq!(
        verify(&kernel).expect_err("would not be read back").to_string(),
        "`v1 = ineg v0`: v0 does not dominate its use"
    );
}

#[test]
fn branches() {
    refused(
        "block0:\n v0 = const.s32 1\n branch v0, block1, block1\nblock1:\n return",
        "`branch v0, block1, block1`: v0 is s32, not s1",
    );
    refused(
        "block0:\n v0 = const.v32 1\n switch v0, block1 []\nblock1:\n return",
        "`switch v0, block1 []`: v0 is v32, not s32",
    );
    refused(
        "block0:\n v0 = const.s32 1\n switch v0, block1 [5: block1, 6: block1, 5: block1]\nblock1:\n return",
        "`switch v0, block1 [5: block1, 6: block1, 5: block1]`: case 5 is there twice",
    );
    refused("block0:\n jump block1\nblock1(v0: s32):\n return", "`jump block1`: block1 takes 1 arguments, not 0");
    refused(
        "block0:\n v0 = const.v32 1\n jump block1(v0)\nblock1(v1: s32):\n return",
        "`jump block1(v0)`: v0 is v32, not s32",
    );
}

#[test]
fn operands() {
    refused_inst("v9 = iadd v1, v3", "v1 is s32, not v32");
    refused_inst("v9 = iadd v1, v2", "v2 is s64, not s32");
    refused_inst("v9 = iadd v4, v4", "v4 is mask, not v32");
    refused_inst("v9 = lnot v1", "v1 is s32, not s1");
    refused_inst("v9 = lnot v3", "v3 is v32, not mask");
    refused_inst("v9 = sin v3", "lowering leaves no sin");
    refused_inst("v9 = fadd v1, v1", "fadd is on vectors only");
    refused_inst("v9 = sint_to_float v1", "sint_to_float is on vectors only");
    refused_inst("v9 = select v1, v1, v1", "v1 is s32, not s1");
    refused_inst("v9 = select v0, v1, v3", "v3 is v32, not s32");
    refused_inst("v9 = select v4, v1, v1", "s32 is not a vector");
    refused_inst("v9 = wide.extend v2", "v2 is s64, not s32");
    refused_inst("v9 = wide.add v2, v1", "v1 is s32, not s64");
    refused_inst("v9 = wide.shr v2, v1", "v1 is s32, not s64");
    refused_inst("v9 = splat v2", "there is no splat of s64");
    refused_inst("v9 = extract v4, v1", "v4 is mask, not v32");
    refused_inst("v9 = first_lane v3", "v3 is v32, not mask");
    refused_inst("v9 = any v0", "v0 is s1, not mask");
    refused_inst("v9 = context workgroup_id.3", "there is no workgroup_id.3");
    refused_inst("v9 = buffer_base v2", "v2 is s64, not s32");
    refused_inst("v9 = const.s1 0x2", "0x2 is not a valid s1");
    refused_inst("v9 = const.v32 0x100000000", "0x100000000 is not a valid v32");
    refused_inst("v9 = const.mask 0x10000", "0x10000 is not a valid mask");
}

#[test]
fn constants_out_of_range() {
    let lane = "block0:\n v0 = const.s32 16\n v1 = const.v32 0\n v2 = extract v1, v0\n return";
    refused(lane, "`v2 = extract v1, v0`: there is no lane 16");
    let shift = "block0:\n v0 = const.s64 64\n v1 = wide.shr v0, v0\n return";
    refused(shift, "`v1 = wide.shr v0, v0`: v0 is not a constant below 64");
    let unknown = "block0:\n v0 = const.s64 1\n v1 = wide.add v0, v0\n v2 = wide.shr v0, v1\n return";
    refused(unknown, "`v2 = wide.shr v0, v1`: v1 is not a constant below 64");
    let descriptor = "block0:\n v0 = const.s32 2\n v1 = buffer_len v0\n return";
    refused(descriptor, "`v1 = buffer_len v0`: there is no descriptor 2");
}

#[test]
fn memory() {
    refused_inst("v9 = load.s64 v2", "memory holds no s64");
    refused_inst("v9 = load.s32 v1", "v1 is s32, not s64");
    refused_inst("v9 = load.s32 v2 + v3 * 4 if v3 < v3", "v3 is v32, not s32 or s64");
    refused_inst("v9 = load.s32 v2 + v1 * 4 if v1 < v2", "v2 is s64, not s32");
    refused_inst("v9 = load.s32 v2 + v1 * 3 if v1 < v1", "there is no scale 3");
    refused_inst("store v2, v2 mask v4", "memory holds no s64");
    refused_inst("store v2, v1 mask v0", "v0 is s1, not mask");
    refused_inst("v9 = load_row v2 + v3 if < v1", "v3 is v32, not s32");
    refused_inst("v9 = load_row v2 + v1 if < v2", "v2 is s64, not s32");
    refused_inst("store_row v2 + v1 if < v1, v1 mask v4", "v1 is s32, not v32");
    refused_inst("v9 = load_elements v2 + v1 if < [v1]", "elements have 2 to 4 words, not 1");
    refused_inst("v9 = load_elements v2 + v1 * 2 if < [v1]", "elements of 1 words are not 2 bytes apart");
    refused_inst("v9 = load_elements v2 + v1 * 6 if < [v1]", "elements of 1 words are not 6 bytes apart");
    refused_inst("v9, v8 = load_elements.u8 v2 + v1 * 9 if < [v1, v1]", "elements of sub-words are not 9 bytes apart");
    refused_inst(
        "v9, v8 = load_elements v2 + v1 * 16 if < [v1, v1]",
        "words are loaded with all words of their elements, or four",
    );
    refused_inst("v9, v8 = load_elements v2 + v1 segments 5 v1 if < [v1, v1]", "segments have 4 or 8 lanes");
    refused_inst("v9, v8 = load_elements.u8 v2 + v1 segments 8 v1 if < [v1, v1]", "sub-words have no segments");
    refused_inst("load_elements v2 + v1 if < [v1, v1, v1, v1, v1]", "the instruction has 5 results, not 0");
    refused_inst("v9, v8 = load_elements v2 + v1 if < [v1, v3]", "v3 is v32, not s32");
    refused_inst("store_elements v2 + v1 if < [v1, v1], [v3] mask v4", "1 words have 2 limits");
    refused_inst("store_elements v2 + v1 if < [v1, v1], [v3, v1] mask v4", "v1 is s32, not v32");
    refused_inst(
        "v9, v8, v7 = gather_elements v2 + v3 masks [v4, v4, v4]",
        "elements are gathered by 2 or 4 words, not 3",
    );
    refused_inst("v9, v8 = gather_elements v2 + v1 masks [v4, v4]", "v1 is s32, not v32");
    refused_inst("v9, v8 = gather_elements v2 + v3 masks [v4, v1]", "v1 is s32, not mask");
    refused_inst("v9 = gather v2 + v1 * 4 mask v4", "v1 is s32, not v32");
    refused_inst("v9 = gather v2 + v3 * 16 mask v4", "there is no scale 16");
    refused_inst("scatter v2 + v3 * 4, v1 mask v4", "v1 is s32, not v32");
    refused_inst("v9 = atomic.load v2 + v3 * 4, v3 mask v4", "atomic.load has the wrong number of operands");
    refused_inst("v9 = atomic.iadd v2 + v3 * 4, v3, v3 mask v4", "atomic.iadd has the wrong number of operands");
    refused_inst("atomic.store v2 + v3 * 4 mask v4", "atomic.store has the wrong number of operands");
    refused_inst("v9 = atomic.iadd v2 + v3 * 4, v1 mask v4", "v1 is s32, not v32");
    refused_inst("v9 = frame_load.v32 v2 + 65", "a v32 at 65 does not fit a frame of 128 bytes");
    refused_inst("v9 = frame_load.s32 v2 + 121", "a s32 at 121 does not fit a frame of 128 bytes");
    refused_inst("frame_store v2 + 4294967295, v3", "a v32 at 4294967295 does not fit a frame of 128 bytes");
    refused_inst("frame_store v1 + 0, v3", "v1 is s32, not s64");
    refused_inst("zero v2, 6", "6 bytes are not a whole number of words");
    let mut kernel = parse(&format!("{HEAD}block0:\n v0 = const.s64 1\n v1 = load.s32 v0\n return"));
    let InstData::Load { address, .. } = &mut kernel.insts[Inst::from_u32(1)] else { panic!("the load is there") };
    address.scale = 2;
    let message = verify(&kernel).expect_err("must be refused").to_string();
    assert_eq!(message, "`v1 = load.s32 v0`: scale 2 without an index");
}
