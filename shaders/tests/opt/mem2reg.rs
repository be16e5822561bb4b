//! Private variables become values.

use spelter_shaders::ir::verify;
use spelter_shaders::opt::MEM2REG;

use crate::opt::parse;

#[test]
fn many_words_in_deep_nests_of_loops_stay_in_memory() {
    let (words, depth) = (5_000, 1_000);
    let name = |kind: u32, level: u32| format!("block{}", kind * 2 * depth + level);
    let (header, continuing, merge) = (|i| name(0, i), |i| name(1, i), |i| name(2, i));
    let mut text = format!("kernel \"k\" 1, 1, 1\nvar0 = private {} \"x\"\nblock0:\nv0 = const.bool true\n", words * 4);
    for word in 0..words {
        text += &format!("v{} = const.i32 {}\n", word + 1, word * 4);
    }
    text += "jump block1\n";
    for i in 1..=depth {
        text += &format!("{}:\nloop {}, {}\n", header(i), merge(i), continuing(i));
        text += &format!("branch v0, {}, {}\n", header(i + 1), merge(i));
    }
    text += &format!("{}:\n", header(depth + 1));
    for word in 1..=words {
        text += &format!("v{} = load.i32 var0 + v{word}\n", words + word);
        text += &format!("store var0 + v{}, v{}\n", words + 1 - word, words + word);
    }
    text += &format!("jump {}\n", continuing(depth));
    for i in (1..=depth).rev() {
        let next = if i == 1 { "return".into() } else { format!("jump {}", continuing(i - 1)) };
        text += &format!("{}:\njump {}\n{}:\n{next}\n", continuing(i), header(i), merge(i));
    }
    let mut kernel = parse(&text);
    (MEM2REG.run)(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()));
    let params: usize = kernel.blocks.values().map(|block| block.params.len()).sum();
    assert!((10_000..500_000).contains(&params) && kernel.variables.len() == 1, "{params}");
}
