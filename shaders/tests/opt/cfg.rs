//! Control flow cleanup: what is decided, what is straight, and which constructs are left.

use spelter_shaders::ir::verify;
use spelter_shaders::opt::CFG;

use crate::opt::parse;

/// The selection's merge block is in a loop that the selection is not in: control comes to it through the loop's header
/// only.
#[test]
fn blocks_come_after_their_dominators_whatever_annotations_say() {
    let text = "
        block0:
            v0 = const.i32 0
            v1 = load.i32 push + v0
            v2 = ine v1, v0
            v3 = buffer binding0[v0]
            selection block4
            branch v2, block1, block9
        block1:
            store storage v3 + v0, v1
            jump block2(v0)
        block2(v4: i32):
            v5 = ult v4, v1
            loop block5, block4
            branch v5, block4, block5
        block4:
            store storage v3 + v4, v4
            jump block2(v1)
        block5:
            store storage v3 + v0, v0
            return
        block9:
            return";
    let mut kernel = parse(text);
    (CFG.run)(&mut kernel);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    let blocks: Vec<_> = kernel.layout.iter().map(|block| block.to_string()).collect();
    let place = |name: &str| blocks.iter().position(|block| block == name);
    // The loop is one run of blocks.
    assert_eq!(place("block2").map(|header| header + 1), place("block4"), "{kernel}");
}
