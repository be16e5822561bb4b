//! Kernels with the order of invocations in a workgroup reversed, which exposes races that depend on that order.

use spelter_shaders::ir::{BuiltIn, Inst, InstData, Kernel, Op, Type, Value};

/// The kernel with every workgroup's invocations reversed in each dimension. `None` if that would change its meaning:
/// subgroups consist of consecutive invocations.
pub fn mirrored(kernel: &Kernel) -> Option<Kernel> {
    let of_subgroups = |data: &InstData| match data {
        InstData::Subgroup { .. } => true,
        InstData::BuiltIn { builtin, .. } => {
            matches!(builtin, BuiltIn::SubgroupId | BuiltIn::SubgroupLocalInvocationId)
        }
        _ => false,
    };
    if kernel
        .layout
        .iter()
        .flat_map(|&block| &kernel.blocks[block].insts)
        .any(|&inst| of_subgroups(&kernel.insts[inst]))
    {
        return None;
    }
    let mut kernel = kernel.clone();
    for position in 0..kernel.layout.len() {
        let block = kernel.layout[position];
        let old = std::mem::take(&mut kernel.blocks[block].insts);
        let mut insts = Vec::with_capacity(old.len());
        for inst in old {
            if let InstData::BuiltIn { builtin, component } = kernel.insts[inst] {
                kernel.insts[inst] = from_the_end(&mut kernel, &mut insts, builtin, component);
            }
            insts.push(inst);
        }
        kernel.blocks[block].insts = insts;
    }
    Some(kernel)
}

/// The replacement of a built-in, with the instructions that compute it.
fn from_the_end(kernel: &mut Kernel, insts: &mut Vec<Inst>, builtin: BuiltIn, component: u8) -> InstData {
    let same = InstData::BuiltIn { builtin, component };
    let (size, invocations) = (kernel.workgroup_size[usize::from(component)], kernel.invocations());
    let mut push = |data: InstData| -> Value {
        let inst = kernel.insts.push(data);
        let value = kernel.define(inst, Type::I32);
        insts.push(inst);
        value
    };
    let constant = |bits: u32| InstData::Const { ty: Type::I32, bits: u64::from(bits) };
    let ends = match builtin {
        BuiltIn::LocalInvocationIndex => push(constant(invocations - 1)),
        BuiltIn::LocalInvocationId => push(constant(size - 1)),
        BuiltIn::GlobalInvocationId => {
            // Sum of the first and the last of the workgroup.
            let (twice, rest) = (push(constant(2 * size)), push(constant(size - 1)));
            let group = push(InstData::BuiltIn { builtin: BuiltIn::WorkgroupId, component });
            let first = push(InstData::Pure { op: Op::IMul, args: [group, twice].as_slice().into() });
            push(InstData::Pure { op: Op::IAdd, args: [first, rest].as_slice().into() })
        }
        _ => return same,
    };
    let own = push(same);
    InstData::Pure { op: Op::ISub, args: [ends, own].as_slice().into() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU32;

    use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
    use spelter_shaders::back::Scratch;
    use spelter_shaders::compile::{self, Module};
    use spelter_shaders::guest::GuestSlice;
    use spelter_shaders::ir::verify;

    use super::*;
    use crate::engine;

    /// The 64 words that eight workgroups of 4 x 2 write.
    fn words(kernel: &Kernel) -> Vec<u32> {
        verify(kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
        let out = GuestSlice::leak(256);
        let stop = AtomicU32::new(0);
        let (buffers, push) = ([out], [0; MAX_PUSH_BYTES]);
        let args = DispatchArgs { buffers: &buffers, push: &push, images: &[], num_workgroups: [2, 4, 1], stop: &stop };
        engine::dispatch(&*compile::interpret(kernel), &args, &mut Scratch::default());
        (0..64).map(|index| out.load_u32(4 * index)).collect()
    }

    fn kernel(body: &str) -> Kernel {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
             @compute @workgroup_size(4, 2) fn main(
                 @builtin(global_invocation_id) id: vec3<u32>,
                 @builtin(local_invocation_id) local: vec3<u32>,
                 @builtin(local_invocation_index) index: u32,
             ) {{ {body} }}"
        );
        let module = Module::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}"));
        module.kernel("main", &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn races_show_and_other_kernels_give_the_same() {
        let apart = kernel("out[id.y * 8u + id.x] = index * 100u + local.y * 10u + local.x;");
        let mirror = mirrored(&apart).expect("no subgroups");
        assert_eq!(words(&apart), words(&mirror));
        assert!(words(&apart).contains(&713), "the last of a workgroup was there");
        let racing = kernel("out[id.x / 4u] = id.y * 8u + id.x;");
        let mirror = mirrored(&racing).expect("no subgroups");
        assert_eq!(words(&racing)[..2], [59, 63]);
        assert_eq!(words(&mirror)[..2], [48, 52]);
    }
}
