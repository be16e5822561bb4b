//! Atomics: in order of the lanes, with and without a lock, with and without the old values.

use super::{engines, head, run};

const OPS: [&str; 13] = [
    "load",
    "store",
    "exchange",
    "compare_exchange",
    "iadd",
    "isub",
    "smin",
    "umin",
    "smax",
    "umax",
    "and",
    "or",
    "xor",
];

const INDEX: [u32; 16] = [0, 1, 1, 2, 5, 0, 0, 7, 3, 3, 3, 3, 6, 1, 4, 0];
const VALUES: [u32; 16] =
    [5, 1, 0xffff_fff0, 7, 0x8000_0000, 3, 0x7fff_ffff, 0, 12, 11, 10, 9, 0xf0f0_f0f0, 6, 0x0f0f_0f0f, 2];
const WORDS: [u32; 8] = [4, 0xffff_ff00, 0, 11, 0x7fff_0000, 5, 0xaaaa_5555, 1];

fn after(op: &str, old: u32, value: u32, comparator: u32) -> u32 {
    let (a, b) = (old.cast_signed(), value.cast_signed());
    match op {
        "load" => old,
        "store" | "exchange" => value,
        "compare_exchange" if old == comparator => value,
        "compare_exchange" => old,
        "iadd" => old.wrapping_add(value),
        "isub" => old.wrapping_sub(value),
        "smin" => a.min(b).cast_unsigned(),
        "umin" => old.min(value),
        "smax" => a.max(b).cast_unsigned(),
        "umax" => old.max(value),
        "and" => old & value,
        "or" => old | value,
        _ => old ^ value,
    }
}

/// How lanes come by a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Lanes,
    Constant,
    Splat,
}

const FORMS: [Form; 3] = [Form::Lanes, Form::Constant, Form::Splat];

/// Statements that define `name`, and what it is.
fn vector(name: usize, form: Form, lanes: &[u32; 16]) -> (String, [u32; 16]) {
    let first = lanes[3];
    match form {
        Form::Lanes => {
            let list: Vec<String> = lanes.iter().map(|word| format!("{word:#x}")).collect();
            (format!("    v{name} = lanes [{}]\n", list.join(", ")), *lanes)
        }
        Form::Constant => (format!("    v{name} = const.v32 {first:#x}\n"), [first; 16]),
        Form::Splat => {
            let text = format!(
                "    v{0} = const.s32 {first:#x}\n    v{1} = iadd v{0}, v8\n    v{name} = splat v{1}\n",
                name + 400,
                name + 500
            );
            (text, [first; 16])
        }
    }
}

fn one(op: &str, forms: [Form; 3], mask: u32, lock: &str, result: bool) {
    let (index_text, index) = vector(20, forms[0], &INDEX);
    let (value_text, values) = vector(21, forms[1], &VALUES);
    let (comparator_text, comparators) = vector(22, forms[2], &std::array::from_fn(|lane| WORDS[INDEX[lane] as usize]));
    let operands = match op {
        "load" => "",
        "compare_exchange" => ", v21, v22",
        _ => ", v21",
    };
    let yields = op != "store";
    let mut text = format!(
        "{}    v8 = const.s32 0\n    v50 = const.mask {mask:#x}\n    v51 = const.mask 0xffff\n{index_text}{value_text}{comparator_text}    {}atomic.{op} v0 + v20 * 4{operands}{lock} mask v50\n",
        head(2),
        if yields { "v30 = " } else { "" },
    );
    if result && yields {
        text += "    store_row v2 + v8 if < v3, v30 mask v51\n";
    }
    text += "    return\n";
    let (mut words, mut old) = (WORDS, [0; 16]);
    for lane in (0..16).filter(|lane| mask >> lane & 1 != 0) {
        let word = &mut words[index[lane] as usize];
        old[lane] = *word;
        *word = after(op, *word, values[lane], comparators[lane]);
    }
    let found = run(&text, &[&WORDS, &[9; 16]]);
    assert_eq!(found[0], words, "{text}");
    let expected = if result && yields { old } else { [9; 16] };
    assert_eq!(found[1], expected, "{text}");
}

#[test]
fn lanes_take_their_turns() {
    if engines().is_empty() {
        return;
    }
    for op in OPS {
        for index in FORMS {
            for value in FORMS {
                for mask in [0, 0xffff, 0x8421, 0x00ff] {
                    for lock in ["", " lock", " sequential", " lock sequential"] {
                        [false, true].into_iter().for_each(|result| one(op, [index, value, value], mask, lock, result));
                    }
                }
            }
        }
    }
}

/// One operation on words next to each other, from number `first` on.
fn neighbours(op: &str, first: u32, mask: u32, lock: &str, result: bool) {
    let start: [u32; 20] = std::array::from_fn(|place| WORDS[place % 8].wrapping_add(place as u32));
    let number = |lane: usize| first.wrapping_add(lane as u32);
    // Active lanes have their words in bounds.
    let mask = (0..16).filter(|&lane| mask >> lane & 1 != 0 && number(lane) < 20).map(|lane| 1 << lane).sum::<u32>();
    let (value_text, values) = vector(21, Form::Lanes, &VALUES);
    let mut text = format!(
        "{}    v8 = const.s32 0\n    v9 = load.s32 v2 + v8 * 4 if v8 < v3\n    v18 = splat v9\n    v19 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n    v20 = iadd v18, v19\n    v50 = const.mask {mask:#x}\n    v51 = const.mask 0xffff\n{value_text}    v30 = atomic.{op} v0 + v20 * 4, v21{lock} mask v50\n",
        head(2),
    );
    if result {
        text += "    store_row v2 + v8 if < v3, v30 mask v51\n";
    }
    text += "    return\n";
    let (mut words, mut old) = (start, [0; 16]);
    for lane in (0..16).filter(|lane| mask >> lane & 1 != 0) {
        let word = &mut words[number(lane) as usize];
        old[lane] = *word;
        *word = after(op, *word, values[lane], 0);
    }
    let mut kept = [9; 16];
    kept[0] = first;
    let found = run(&text, &[&start, &kept]);
    assert_eq!(found[0], words, "{text}");
    assert_eq!(found[1], if result { old } else { kept }, "{text}");
}

#[test]
fn words_next_to_each_other_change_together() {
    if engines().is_empty() {
        return;
    }
    for op in OPS.into_iter().filter(|op| !matches!(*op, "load" | "store" | "compare_exchange")) {
        for first in [0, 1, 4, 7, 19, 0xffff_fffd] {
            for mask in [0, 0xffff, 0x8421, 0xfff7] {
                for lock in ["", " lock"] {
                    [false, true].into_iter().for_each(|result| neighbours(op, first, mask, lock, result));
                }
            }
        }
    }
}

#[test]
fn threads_lose_no_update() {
    use spelter_shaders::back::x86::compile;
    let body = |op: &str| {
        format!(
            "{}    v8 = const.s32 0\n    v9 = const.s32 1\n    v10 = const.s32 1000\n    v50 = const.mask 0xffff\n    v20 = lanes [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]\n    v21 = const.v32 1\n    v22 = const.v32 0\n    v25 = const.mask 0\n    jump block1(v8)\n\nblock1(v60: s32):\n    {op}    v61 = iadd v60, v9\n    v62 = ult v61, v10\n    branch v62, block1(v61), block2\n\nblock2:\n    return\n",
            head(1)
        )
    };
    let forms = [
        ("v23 = atomic.iadd v0 + v20 * 4, v21 lock mask v50\n", [8000, 8000]),
        (
            "v23 = atomic.iadd v0 + v20 * 4, v21 lock mask v50\n    v24 = atomic.or v0 + v22 * 4, v23 lock mask v25\n",
            [8000, 8000],
        ),
        ("v23 = atomic.iadd v0 + v22 * 4, v21 lock mask v50\n", [16000, 0]),
        (
            "v30 = splat v8\n    v31 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n    v32 = iadd v30, v31\n    v23 = atomic.iadd v0 + v32 * 4, v21 lock mask v50\n",
            [1000, 1000],
        ),
    ];
    for (op, expected) in forms {
        let kernel = super::parse(&body(op));
        for isa in engines() {
            let program = compile(&kernel, isa).unwrap();
            let slice = super::buffer(&[0; 32]);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| super::run_program(&program, &[slice], [0; 3], false));
                }
            });
            assert_eq!(super::words(slice)[..2], expected.map(|count| count * 2));
        }
    }
}
