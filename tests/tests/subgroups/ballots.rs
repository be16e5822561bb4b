//! Votes, ballots and queries of them, quads, and the masks of relations.

use super::module::{SIZE, Setup, Test};
use super::number::Ty;

#[test]
fn invocations_vote() {
    for (number, setup) in Setup::ALL.into_iter().enumerate() {
        let mut test = Test::new(setup, Ty::Bool, number as u64 + 17);
        let values = test.values.clone();
        let group = |index: usize| setup.group(index, &values);
        let votes = |index: usize| -> u64 { group(index).iter().map(|(lane, value)| value << lane).sum() };
        let (one, word) = (Ty::Bool, Ty::Int(32));
        let elected = test.instruction("%bool", "OpGroupNonUniformElect %c3");
        test.store(one, &elected, |index| Some((group(index)[0].0 == index % SIZE).into()));
        for name in ["OpGroupNonUniformAll %c3", "OpSubgroupAllKHR"] {
            let id = test.instruction("%bool", &format!("{name} %value"));
            test.store(one, &id, |index| Some(group(index).iter().all(|(_, value)| *value != 0).into()));
        }
        for name in ["OpGroupNonUniformAny %c3", "OpSubgroupAnyKHR"] {
            let id = test.instruction("%bool", &format!("{name} %value"));
            test.store(one, &id, |index| Some((votes(index) != 0).into()));
        }
        let id = test.instruction("%bool", "OpSubgroupAllEqualKHR %value");
        test.store(one, &id, |index| {
            let group = group(index);
            Some(group.iter().all(|(_, value)| *value == group[0].1).into())
        });
        let mut ballot = String::new();
        for name in ["OpGroupNonUniformBallot %c3", "OpSubgroupBallotKHR"] {
            ballot = test.instruction("%v4u32", &format!("{name} %value"));
            let low = test.instruction("%u32", &format!("OpCompositeExtract {ballot} 0"));
            test.store(word, &low, |index| Some(votes(index)));
            let rest = test.instruction("%u32", &format!("OpCompositeExtract {ballot} 1"));
            test.store(word, &rest, |_| Some(0));
        }
        let id = test.instruction("%bool", &format!("OpGroupNonUniformInverseBallot %c3 {ballot}"));
        test.store(one, &id, |index| Some(values[index]));
        let five = test.constant(5);
        for (number, of) in [("%l", None), (five.as_str(), Some(5))] {
            let id = test.instruction("%bool", &format!("OpGroupNonUniformBallotBitExtract %c3 {ballot} {number}"));
            test.store(one, &id, |index| Some(votes(index) >> of.unwrap_or(index % SIZE) & 1));
        }
        let below = |index: usize, more: usize| votes(index) & ((1 << (index % SIZE + more)) - 1);
        for (name, counted) in [
            ("Reduce", &votes as &dyn Fn(usize) -> u64),
            ("InclusiveScan", &|index| below(index, 1)),
            ("ExclusiveScan", &|index| below(index, 0)),
        ] {
            let id = test.instruction("%u32", &format!("OpGroupNonUniformBallotBitCount %c3 {name} {ballot}"));
            test.store(word, &id, |index| Some(counted(index).count_ones().into()));
        }
        let id = test.instruction("%u32", &format!("OpGroupNonUniformBallotFindLSB %c3 {ballot}"));
        test.store(word, &id, |index| {
            Some(votes(index)).filter(|&votes| votes != 0).map(|v| v.trailing_zeros().into())
        });
        let id = test.instruction("%u32", &format!("OpGroupNonUniformBallotFindMSB %c3 {ballot}"));
        test.store(word, &id, |index| Some(votes(index)).filter(|&votes| votes != 0).map(|v| v.ilog2().into()));
        let quad = |index: usize| {
            let quad: Vec<u64> =
                group(index).iter().filter(|(lane, _)| lane / 4 == index % SIZE / 4).map(|v| v.1).collect();
            quad
        };
        let id = test.instruction("%bool", "OpGroupNonUniformQuadAllKHR %value");
        test.store(one, &id, |index| Some(quad(index).iter().all(|&value| value != 0).into()));
        let id = test.instruction("%bool", "OpGroupNonUniformQuadAnyKHR %value");
        test.store(one, &id, |index| Some(quad(index).iter().any(|&value| value != 0).into()));
        test.run("votes");
    }
}
