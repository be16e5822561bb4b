//! Reductions, scans, clusters and partitions.

use super::module::{SIZE, Setup, Test};
use super::number::Ty;

#[test]
fn values_are_put_together() {
    for (number, setup) in Setup::ALL.into_iter().enumerate() {
        for ty in Ty::ALL {
            let mut test = Test::new(setup, ty, number as u64 * 31 + 7);
            let values = test.values.clone();
            for (op, identity) in ty.ops() {
                let all = |index: usize, takes: &dyn Fn(usize) -> bool| {
                    let group = setup.group(index, &values);
                    let parts = group.into_iter().filter(|(lane, _)| takes(*lane)).map(|(_, value)| value);
                    Some(parts.fold(identity, |a, b| ty.apply(op, a, b)))
                };
                let name = format!("OpGroupNonUniform{op} %c3");
                let id = test.instruction(&ty.id(), &format!("{name} Reduce %value"));
                test.store(ty, &id, |index| all(index, &|_| true));
                let id = test.instruction(&ty.id(), &format!("{name} InclusiveScan %value"));
                test.store(ty, &id, |index| all(index, &|lane| lane <= index % SIZE));
                let id = test.instruction(&ty.id(), &format!("{name} ExclusiveScan %value"));
                test.store(ty, &id, |index| all(index, &|lane| lane < index % SIZE));
                for cluster in [1, 2, 4, 8, 16] {
                    let size = test.constant(cluster);
                    let id = test.instruction(&ty.id(), &format!("{name} ClusteredReduce %value {size}"));
                    let cluster = cluster as usize;
                    test.store(ty, &id, |index| all(index, &|lane| lane / cluster == index % SIZE / cluster));
                }
            }
            test.run("arithmetic");
        }
    }
}

/// Invocations with the same number modulo three are a partition.
#[test]
fn partitions_are_put_together() {
    for (number, setup) in Setup::ALL.into_iter().enumerate() {
        for ty in Ty::ALL {
            let mut test = Test::new(setup, ty, number as u64 * 77 + 1);
            let values = test.values.clone();
            let three = test.constant(3);
            let number = test.instruction("%u32", &format!("OpUMod %l {three}"));
            let mask = test.instruction("%v4u32", &format!("OpGroupNonUniformPartitionEXT {number}"));
            let low = test.instruction("%u32", &format!("OpCompositeExtract {mask} 0"));
            let zeros = vec![0; values.len()];
            test.store(Ty::Int(32), &low, |index| {
                let group = setup.group(index, &zeros);
                Some(group.iter().filter(|(lane, _)| lane % 3 == index % SIZE % 3).map(|(lane, _)| 1 << lane).sum())
            });
            for (op, identity) in ty.ops() {
                let all = |index: usize, takes: &dyn Fn(usize) -> bool| {
                    let group = setup.group(index, &values).into_iter();
                    let same = group.filter(|(lane, _)| lane % 3 == index % SIZE % 3 && takes(*lane));
                    Some(same.fold(identity, |a, (_, b)| ty.apply(op, a, b)))
                };
                let name = format!("OpGroupNonUniform{op} %c3");
                let id = test.instruction(&ty.id(), &format!("{name} PartitionedReduceEXT %value {mask}"));
                test.store(ty, &id, |index| all(index, &|_| true));
                let id = test.instruction(&ty.id(), &format!("{name} PartitionedInclusiveScanEXT %value {mask}"));
                test.store(ty, &id, |index| all(index, &|lane| lane <= index % SIZE));
                let id = test.instruction(&ty.id(), &format!("{name} PartitionedExclusiveScanEXT %value {mask}"));
                test.store(ty, &id, |index| all(index, &|lane| lane < index % SIZE));
            }
            test.run("partitions");
        }
    }
}
