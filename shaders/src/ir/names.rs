//! Names in the text form, other than those of the op table; shared by printer and parser.

use super::{AtomicOp, BindingKind, BufferSpace, BuiltIn, MemoryModel, Scope, StorageClass, VariableSpace};

macro_rules! names {
    ($($ty:ident { $($variant:ident $name:literal)* })*) => {
        $(impl $ty {
            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The item with this name in the text form.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        })*
    };
}

names! {
    Scope {
        CrossDevice "cross_device"
        Device "device"
        Workgroup "workgroup"
        Subgroup "subgroup"
        Invocation "invocation"
        QueueFamily "queue_family"
    }
    AtomicOp {
        Load "load"
        Store "store"
        Exchange "exchange"
        CompareExchange "compare_exchange"
        Add "iadd"
        Sub "isub"
        SMin "smin"
        UMin "umin"
        SMax "smax"
        UMax "umax"
        And "and"
        Or "or"
        Xor "xor"
        FAdd "fadd"
        FMin "fmin"
        FMax "fmax"
        FAddHalf "fadd_half"
        HalfLoad "half_load"
        HalfStore "half_store"
        HalfExchange "half_exchange"
        HalfAdd "half_add"
        HalfMin "half_min"
        HalfMax "half_max"
    }
    BuiltIn {
        NumWorkgroups "num_workgroups"
        WorkgroupId "workgroup_id"
        LocalInvocationId "local_invocation_id"
        GlobalInvocationId "global_invocation_id"
        LocalInvocationIndex "local_invocation_index"
        NumSubgroups "num_subgroups"
        SubgroupId "subgroup_id"
        SubgroupLocalInvocationId "subgroup_local_invocation_id"
    }
    BindingKind {
        StorageBuffer "storage"
        UniformBuffer "uniform"
        Sampler "sampler"
        SampledImage "sampled_image"
        CombinedImageSampler "combined_image_sampler"
        StorageImage "storage_image"
        UniformTexelBuffer "uniform_texel_buffer"
        StorageTexelBuffer "storage_texel_buffer"
    }
    BufferSpace {
        Storage "storage"
        Uniform "uniform"
    }
    MemoryModel {
        Vulkan "vulkan"
        Glsl450 "glsl450"
        Wgsl "wgsl"
    }
    StorageClass {
        Uniform "uniform"
        Workgroup "workgroup"
        Image "image"
    }
    VariableSpace {
        Workgroup "workgroup"
        Private "private"
        Constant "constant"
    }
}

/// Names of the bits of SPIR-V's `Memory Semantics`. Other bits are printed as a number.
pub(super) const SEMANTICS: &[(u32, &str)] = &[
    (0x2, "acquire"),
    (0x4, "release"),
    (0x8, "acq_rel"),
    (0x10, "seq_cst"),
    (0x40, "storage"),
    (0x80, "subgroup"),
    (0x100, "workgroup"),
    (0x200, "cross_workgroup"),
    (0x400, "atomic_counter"),
    (0x800, "image"),
    (0x1000, "output"),
    (0x2000, "available"),
    (0x4000, "visible"),
    (0x8000, "volatile"),
];
