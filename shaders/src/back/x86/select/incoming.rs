//! The arguments that branches pass to block parameters: ranges and prefetch distances of parameters follow from them.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::simd::{Block, InstData, Kernel, Value};

/// Arguments of a block parameter, each with the branch condition if it is the first target of a branch.
pub(super) type IncomingArguments = SmallVec<[(Value, Option<Value>); 2]>;

/// For each block with parameters, the arguments of each.
pub(super) fn incoming_arguments(kernel: &Kernel) -> SecondaryMap<Block, Vec<IncomingArguments>> {
    let mut incoming: SecondaryMap<Block, Vec<IncomingArguments>> = SecondaryMap::new();
    for &block in &kernel.layout {
        let Some(&last) = kernel.blocks[block].insts.last() else { continue };
        let data = &kernel.insts[last];
        for (number, call) in data.targets().iter().enumerate() {
            if call.args.is_empty() {
                continue;
            }
            let condition = match data {
                InstData::Branch { condition, .. } if number == 0 => Some(*condition),
                _ => None,
            };
            let all = &mut incoming[call.block];
            all.resize(all.len().max(call.args.len()), IncomingArguments::new());
            for (position, &arg) in call.args.iter().enumerate() {
                all[position].push((arg, condition));
            }
        }
    }
    incoming
}
