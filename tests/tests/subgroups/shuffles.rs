//! Values of other invocations. For invocations that take no part, and numbers beyond the subgroup, the result does
//! not depend on the engine; Vulkan leaves it open.

use super::module::{SIZE, Setup, Test};
use super::number::{Random, Ty};

#[test]
fn values_come_from_other_invocations() {
    for (number, setup) in Setup::ALL.into_iter().enumerate() {
        for ty in Ty::ALL {
            let mut random = Random(number as u64 + 99);
            let mut test = Test::new(setup, ty, number as u64 * 5 + 3);
            let values = test.values.clone();
            let of = |index: usize, lane: usize| {
                let other = index / SIZE * SIZE + lane % SIZE;
                Some(if setup.is_on(other) { values[other] } else { 0 })
            };
            let first = |index: usize| setup.group(index, &values).first().map(|&(_, value)| value);
            let broadcast = |name: &str| format!("OpGroupNonUniform{name} %c3 %value");
            let id = test.instruction(&ty.id(), &broadcast("BroadcastFirst"));
            test.store(ty, &id, first);
            let id = test.instruction(&ty.id(), "OpSubgroupFirstInvocationKHR %value");
            test.store(ty, &id, first);
            let equal = test.instruction("%bool", &broadcast("AllEqual"));
            test.store(Ty::Bool, &equal, |index| {
                let group = setup.group(index, &values);
                Some(group.iter().all(|&(_, value)| value == group[0].1).into())
            });
            // Constant, uniform and varying numbers.
            let same = test.instruction("%u32", &broadcast_of("%low"));
            for (constant, each) in [(3, None), (12, None), (0, Some(same)), (0, Some("%low".to_owned()))] {
                let known = test.constant(constant);
                let lows: Vec<usize> = (0..setup.invocations).map(|index| test.low(index) as usize).collect();
                let numbers = |index: usize| match &each {
                    None => constant as usize,
                    Some(id) if id == "%low" => lows[index],
                    Some(_) => {
                        setup.group(index, &lows.iter().map(|&low| low as u64).collect::<Vec<_>>())[0].1 as usize
                    }
                };
                let by = each.clone().unwrap_or(known);
                let lane = |index: usize| index % SIZE;
                let ops: [(&str, &dyn Fn(usize) -> usize); 4] = [
                    ("Shuffle", &|index| numbers(index)),
                    ("ShuffleXor", &|index| lane(index) ^ numbers(index)),
                    ("ShuffleUp", &|index| lane(index).wrapping_sub(numbers(index))),
                    ("ShuffleDown", &|index| lane(index).wrapping_add(numbers(index))),
                ];
                for (name, from) in ops {
                    let id = test.instruction(&ty.id(), &format!("{} {by}", broadcast(name)));
                    test.store(ty, &id, |index| of(index, from(index)));
                }
                let id = test.instruction(&ty.id(), &format!("{} {by}", broadcast("RotateKHR")));
                test.store(ty, &id, |index| of(index, lane(index) + numbers(index)));
                let four = test.constant(4);
                let id = test.instruction(&ty.id(), &format!("{} {by} {four}", broadcast("RotateKHR")));
                test.store(ty, &id, |index| of(index, lane(index) & !3 | (lane(index) + numbers(index)) & 3));
            }
            let number = random.word() % 16;
            let wanted = test.constant(number);
            for name in [broadcast("Broadcast"), "OpSubgroupReadInvocationKHR %value".to_owned()] {
                let id = test.instruction(&ty.id(), &format!("{name} {wanted}"));
                test.store(ty, &id, |index| of(index, number as usize));
            }
            for direction in 0..3 {
                let wanted = test.constant(direction);
                let id = test.instruction(&ty.id(), &format!("{} {wanted}", broadcast("QuadSwap")));
                test.store(ty, &id, |index| of(index, (index % SIZE) ^ (direction as usize + 1)));
                let id = test.instruction(&ty.id(), &format!("{} {wanted}", broadcast("QuadBroadcast")));
                test.store(ty, &id, |index| of(index, (index % SIZE) & !3 | direction as usize));
            }
            test.run("shuffles");
        }
    }
}

fn broadcast_of(id: &str) -> String {
    format!("OpGroupNonUniformBroadcastFirst %c3 {id}")
}
