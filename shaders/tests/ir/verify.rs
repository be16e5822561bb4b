//! Every rule of the verifier refuses a kernel that breaks it.

use spelter_shaders::ir::{Binding, Block, Inst, InstData, Kernel, Merge, Type, Value, ValueDef, Variable, verify};

/// What a kernel with these declarations and blocks is refused for.
#[track_caller]
fn refused(text: &str, message: &str) {
    let head = if text.starts_with("kernel") {
        ""
    } else {
        "kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nvar0 = private 4 \"x\"\n"
    };
    let kernel = Kernel::parse(&format!("{head}{text}")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(&kernel).expect_err("must be refused").to_string(), message);
}

/// As [`refused`], of one block with a bool v0, an i32 v1, an f32 v2 and a buffer v3.
#[track_caller]
fn refused_inst(inst: &str, message: &str) {
    let start = "block0:\n v0 = const.bool true\n v1 = const.i32 1\n v2 = const.f32 1\n v3 = buffer binding0[v1]\n";
    refused(&format!("{start} {inst}\n return"), &format!("`{inst}`: {message}"));
}

/// What a kernel is refused for once `spoil` has been at it: what text cannot say.
#[track_caller]
fn refused_after(spoil: impl FnOnce(&mut Kernel), message: &str) {
    let mut kernel = crate::ir::parse(
        "kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nvar0 = private 4 \"x\"
        block0:\n v0 = const.i32 1\n v1 = iadd v0, v0\n jump block1(v1)
        block1(v2: i32):\n v3 = buffer binding0[v2]\n v4 = load.i32 var0 + v2\n return",
    );
    spoil(&mut kernel);
    assert_eq!(verify(&kernel).expect_err("must be refused").to_string(), message);
}

#[test]
fn tables() {
    refused("kernel \"k\" 0, 1, 1\nblock0:\n return", "a workgroup of [0, 1, 1] is empty or too large");
    refused("kernel \"k\" 65536, 65536, 1\nblock0:\n return", "a workgroup of [65536, 65536, 1] is empty or too large");
    refused(
        "kernel \"k\" 1, 1, 1\nvar0 = private 6 \"\"\nblock0:\n return",
        "var0: 6 bytes are not a whole number of words",
    );
    let large = "var0 = workgroup 4294967280 \"\"\nvar1 = workgroup 64 \"\"\n";
    refused(&format!("kernel \"k\" 1, 1, 1\n{large}block0:\n return"), "workgroup variables do not fit 4 GiB");
}

#[test]
fn layout_and_blocks() {
    refused("kernel \"k\" 1, 1, 1", "the kernel has no entry block");
    refused("block0:", "block0 does not end with a terminator");
    refused("block0:\n v0 = const.i32 1", "block0 does not end with a terminator");
    refused("block0:\n return\n return", "`return`: a terminator is not at the end of its block");
    refused("block0(v0: i32):\n return", "the entry block0 has parameters");
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
fn merges() {
    let merge = Block::from_u32(9);
    let entry = Block::from_u32(0);
    let message = "block0 merges in block9, which is not in the kernel";
    refused_after(|kernel| kernel.blocks[entry].merge = Some(Merge::Selection { merge }), message);
    refused_after(|kernel| kernel.blocks[entry].merge = Some(Merge::Loop { merge: entry, continuing: merge }), message);
}

#[test]
fn definitions() {
    let block = Block::from_u32(0);
    let inst = |number| Inst::from_u32(number);
    let value = |number| Value::from_u32(number);
    refused_after(|kernel| kernel.blocks[block].insts.insert(0, inst(99)), "inst99 in block0 is not in the kernel");
    refused_after(
        |kernel| kernel.blocks[block].insts.insert(0, inst(0)),
        "`v0 = const.i32 1`: the instruction has two places",
    );
    refused_after(|kernel| kernel.results[inst(0)] = None, "`const.i32 1`: the instruction has 1 results, not 0");
    refused_after(
        |kernel| kernel.results[inst(2)] = Some(value(0)),
        "`v0 = jump block1(v1)`: the instruction has 0 results, not 1",
    );
    refused_after(
        |kernel| kernel.results[inst(1)] = Some(value(0)),
        "`v0 = iadd v0, v0`: the definition of v0 is elsewhere",
    );
    refused_after(
        |kernel| kernel.values[value(0)] = ValueDef::Result { inst: inst(0), index: 0, ty: Type::F32 },
        "`v0 = const.i32 1`: v0 is i32, not f32",
    );
    refused_after(
        |kernel| kernel.values[value(2)] = ValueDef::Param { block, index: 0, ty: Type::I32 },
        "v2 is a parameter of block1, but its definition does not say so",
    );
    refused_after(
        |kernel| kernel.insts[inst(1)] = InstData::Element { base: value(77), index: value(0), stride: 1 },
        "`v1 = element v77, v0 * 1`: v77 is not defined in the layout",
    );
    refused_after(
        |kernel| {
            kernel.blocks[block].insts.remove(0);
        },
        "`v1 = iadd v0, v0`: v0 is not defined in the layout",
    );
    refused_after(
        |kernel| kernel.insts[inst(3)] = InstData::Buffer { binding: Binding::from_u32(5), index: value(2) },
        "`v3 = buffer binding5[v2]`: binding5 is not in the kernel",
    );
    let place = spelter_shaders::ir::Place::Variable { variable: Variable::from_u32(5), offset: value(2) };
    refused_after(
        |kernel| {
            kernel.insts[inst(4)] =
                InstData::Load { ty: Type::I32, width: Default::default(), place, access: Default::default() }
        },
        "`v4 = load.i32 var5 + v2`: var5 is not in the kernel",
    );
}

#[test]
fn dominance() {
    refused("block0:\n v0 = iadd v0, v0\n return", "`v0 = iadd v0, v0`: v0 does not dominate its use");
    refused(
        "block0:\n v0 = iadd v1, v1\n v1 = const.i32 1\n return",
        "`v0 = iadd v1, v1`: v1 does not dominate its use",
    );
    refused(
        "block0:\n v0 = const.bool true\n branch v0, block1, block2
        block1:\n v1 = const.i32 1\n jump block2
        block2:\n v2 = ineg v1\n return",
        "`v2 = ineg v1`: v1 does not dominate its use",
    );
    refused(
        "block0:\n v0 = const.bool true\n branch v0, block1, block2(v2)\nblock1:\n jump block2(v2)\nblock2(v2: bool):\n return",
        "`branch v0, block1, block2(v2)`: v2 does not dominate its use",
    );
}

#[test]
fn unreachable_blocks_may_use_what_does_not_dominate_them() {
    crate::ir::parse(
        "kernel \"k\" 1, 1, 1\nblock0:\n return\nblock1:\n v0 = ineg v1\n jump block2\nblock2:\n v1 = ineg v0\n return",
    );
}

#[test]
fn branches() {
    refused(
        "block0:\n v0 = const.i32 1\n branch v0, block1, block1\nblock1:\n return",
        "`branch v0, block1, block1`: v0 is i32, not bool",
    );
    refused(
        "block0:\n v0 = const.f32 1\n switch v0, block1 []\nblock1:\n return",
        "`switch v0, block1 []`: v0 is f32, not i32",
    );
    refused(
        "block0:\n v0 = const.i32 1\n switch v0, block1 [5: block1, 6: block1, 5: block1]\nblock1:\n return",
        "`switch v0, block1 [5: block1, 6: block1, 5: block1]`: case 5 is there twice",
    );
    refused("block0:\n jump block1\nblock1(v0: i32):\n return", "`jump block1`: block1 takes 1 arguments, not 0");
    refused(
        "block0:\n v0 = const.f32 1\n jump block1(v0)\nblock1(v1: i32):\n return",
        "`jump block1(v0)`: v0 is f32, not i32",
    );
}

#[test]
fn operands() {
    refused_inst("v9 = iadd v1, v2", "v2 is f32, not i32");
    refused_inst("v9 = lnot v1", "v1 is i32, not bool");
    refused_inst("v9 = select.i32 v1, v1, v1", "v1 is i32, not bool");
    refused_inst("v9 = select.i32 v0, v1, v2", "v2 is f32, not i32");
    refused_inst("v9 = select.f32 v0, v1, v1", "v9 is i32, not f32");
    refused_inst("v9 = element v1, v3 * 4", "v3 is buffer, not i32");
    refused_inst("v9 = buffer binding0[v0]", "v0 is bool, not i32");
    refused_inst("v9 = subgroup.ballot v1", "v1 is i32, not bool");
    refused_inst("v9 = subgroup.shuffle.i32 v2, v1", "v2 is f32, not i32");
    refused_inst("v9 = subgroup.shuffle.bool v0, v1", "there is no shuffle of bool");
    refused_inst("v9 = subgroup.reduce.iadd.3 v1", "there are no clusters of 3");
    refused_inst("v9 = subgroup.reduce.iadd.32 v1", "there are no clusters of 32");
    refused_inst("v9 = subgroup.inclusive.isub v1", "isub does not combine the values of a subgroup");
    refused_inst("v9 = buffer_size v1", "v1 is i32, not buffer");
    refused_inst("v9 = builtin workgroup_id.3", "workgroup_id has 3 components");
    refused_inst("v9 = builtin subgroup_id.1", "subgroup_id has 1 components");
    refused_inst("v9 = const.bool 0x2", "0x2 is not a valid bool");
    refused_inst("v9 = const.i32 0x100000000", "0x100000000 is not a valid i32");
    refused_inst("v9 = const.buffer 0x0", "constants of type buffer do not exist");
}

#[test]
fn memory() {
    refused_inst("v9 = load.bool storage v3 + v1", "memory holds no bool");
    refused_inst("v9 = load.i32 storage v1 + v1", "v1 is i32, not buffer");
    refused_inst("v9 = load.i32 storage v3 + v2", "v2 is f32, not i32");
    refused_inst("v9 = load.i32 push + v2", "v2 is f32, not i32");
    refused_inst("v9 = load.i32 var0 + v2", "v2 is f32, not i32");
    refused_inst("store storage v3 + v1, v0", "memory holds no bool");
    refused_inst("store uniform v3 + v1, v1", "uniform buffers are constant");
    refused_inst("store push + v1, v1", "push constants are constant");
    refused_inst("v9 = atomic.load uniform v3 + v1 device relaxed", "uniform buffers are constant");
    refused_inst("v9 = atomic.iadd storage v3 + v1 device relaxed", "atomic.iadd has the wrong number of operands");
    refused_inst("v9 = atomic.load storage v3 + v1, v1 device relaxed", "atomic.load has the wrong number of operands");
    refused_inst(
        "v9 = atomic.iadd storage v3 + v1, v1, v1 device relaxed",
        "atomic.iadd has the wrong number of operands",
    );
    refused_inst(
        "v9 = atomic.compare_exchange storage v3 + v1, v1 device relaxed",
        "atomic.compare_exchange has the wrong number of operands",
    );
    refused_inst("v9 = atomic.iadd storage v3 + v1, v2 device relaxed", "v2 is f32, not i32");
}

#[test]
fn checks() {
    let refused = |inst: &str, message: &str| {
        let head = "kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nvar0 = private 4 \"x\"
            site0 = read uniform\nsite1 = fence device acquire|storage
            site2 = atomic.compare_exchange uniform device relaxed\nsite3 = atomic.iadd uniform device relaxed
            block0:\n v0 = const.bool true\n v1 = const.i32 1\n v3 = buffer binding0[v1]\n";
        refused(&format!("{head} {inst}\n return"), &format!("`{inst}`: {message}"));
    };
    refused("check site0 var0 + v1", "var0 is not in workgroup memory");
    refused("check site0 push + v1", "push constants are not checked");
    refused("check site0 storage v1 + v1", "v1 is i32, not buffer");
    let another = "which is another kind of instruction";
    refused("check site1 storage v3 + v1", &format!("site1 is `fence device acquire|storage`, {another}"));
    refused("check_image.read.1d.float.0 site0 v3, v0", "v0 is bool, not i32");
    refused("sync site0", &format!("site0 is `read uniform`, {another}"));
    refused("sync site1 storage v3 + v1 bytes 4", &format!("site1 is `fence device acquire|storage`, {another}"));
    refused("sync site3 storage v3 + v1 bytes 3", "no atomic is on 3 bytes");
    refused(
        "sync site3 storage v3 + v1 bytes 4 wrote v0",
        &format!("site3 is `atomic.iadd uniform device relaxed`, {another}"),
    );
    refused("sync site2 storage v3 + v1 bytes 4 wrote v1", "v1 is i32, not bool");
}
