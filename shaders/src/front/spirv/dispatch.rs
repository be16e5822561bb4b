//! Dispatches each instruction to the method that translates it: one match on the opcode, in the chapters of the
//! specification.

use spirv::Op;

use super::stages;
use super::translate::{IdDefinition, Translator};
use super::words::{Inst, InstResult, operand};
use crate::ir::AtomicOp;

impl Translator<'_> {
    /// Translates an instruction that is neither `OpPhi`, a call, a merge nor a terminator.
    pub(super) fn dispatch(&mut self, inst: &Inst) -> InstResult<()> {
        let operands = self.sections.words.operands(inst);
        if stages::is_of_fragments(inst.op) {
            return Err("only fragment shaders have the instruction".into());
        }
        // Its opcode belongs to an extension that the grammar does not know.
        if let Some(accumulator) = inst.mixed_dot {
            let value = self.mixed_dot(inst, operands, accumulator)?;
            self.bind(inst.id, value);
            return Ok(());
        }
        let value = match inst.op {
            // Memory
            Op::Variable => return self.function_variable(inst, operands),
            Op::AccessChain | Op::InBoundsAccessChain => return self.access_chain(inst, operands),
            Op::Load => return self.load_op(inst, operands),
            Op::Store => return self.store_op(operands),
            Op::CopyMemory => return self.copy_memory(operands),
            Op::CopyObject => return self.copy_object(inst, operands),
            Op::ArrayLength => return self.array_length(inst, operands),

            // Variable pointers
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => return self.ptr_access_chain(inst, operands),
            Op::PtrEqual => return self.ptr_equal(inst, operands, true),
            Op::PtrNotEqual => return self.ptr_equal(inst, operands, false),
            Op::PtrDiff => return self.ptr_diff(inst, operands),

            // Addresses
            Op::ConvertUToPtr => return self.address_of_integer(inst, operands, true),
            Op::ConvertPtrToU => return self.integer_of_address(inst, operands, true),
            Op::Bitcast if self.is_address(inst.ty) => return self.address_of_integer(inst, operands, false),
            Op::Bitcast if self.has_address(operands) => return self.integer_of_address(inst, operands, false),

            // Atomics and barriers
            Op::ControlBarrier => return self.control_barrier(operands),
            Op::MemoryBarrier => return self.memory_barrier(operands),
            Op::AtomicStore => return self.atomic_store(operands),
            Op::AtomicLoad => return self.read_modify_write(inst, AtomicOp::Load, operands),
            Op::AtomicExchange => return self.read_modify_write(inst, AtomicOp::Exchange, operands),
            Op::AtomicIAdd => return self.read_modify_write(inst, AtomicOp::Add, operands),
            Op::AtomicISub => return self.read_modify_write(inst, AtomicOp::Sub, operands),
            Op::AtomicSMin => return self.read_modify_write(inst, AtomicOp::SMin, operands),
            Op::AtomicUMin => return self.read_modify_write(inst, AtomicOp::UMin, operands),
            Op::AtomicSMax => return self.read_modify_write(inst, AtomicOp::SMax, operands),
            Op::AtomicUMax => return self.read_modify_write(inst, AtomicOp::UMax, operands),
            Op::AtomicAnd => return self.read_modify_write(inst, AtomicOp::And, operands),
            Op::AtomicOr => return self.read_modify_write(inst, AtomicOp::Or, operands),
            Op::AtomicXor => return self.read_modify_write(inst, AtomicOp::Xor, operands),
            Op::AtomicFAddEXT => return self.read_modify_write(inst, AtomicOp::FAdd, operands),
            Op::AtomicFMinEXT => return self.read_modify_write(inst, AtomicOp::FMin, operands),
            Op::AtomicFMaxEXT => return self.read_modify_write(inst, AtomicOp::FMax, operands),
            Op::AtomicCompareExchange => return self.compare_exchange(inst, operands),
            Op::AtomicIIncrement => return self.by_one(inst, AtomicOp::Add, operands),
            Op::AtomicIDecrement => return self.by_one(inst, AtomicOp::Sub, operands),

            // Images
            Op::SampledImage => return self.sampled_image(inst, operands),
            Op::Image => return self.image_of(inst, operands),
            Op::ImageTexelPointer => return self.texel_pointer(inst, operands),
            Op::ImageRead => return self.image_read(inst, operands),
            Op::ImageWrite => return self.image_write(operands),
            Op::ImageFetch => return self.image_fetch(inst, operands),
            Op::ImageSampleExplicitLod => return self.sample(inst, operands, false, false),
            Op::ImageSampleDrefExplicitLod => return self.sample(inst, operands, true, false),
            Op::ImageSampleProjExplicitLod => return self.sample(inst, operands, false, true),
            Op::ImageSampleProjDrefExplicitLod => return self.sample(inst, operands, true, true),
            Op::ImageGather => return self.gather(inst, operands, false),
            Op::ImageDrefGather => return self.gather(inst, operands, true),
            Op::ImageQuerySizeLod => return self.query_size(inst, operands, true),
            Op::ImageQuerySize => return self.query_size(inst, operands, false),
            Op::ImageQueryLevels => return self.query_levels(inst, operands),
            Op::ImageQuerySamples => return self.query_samples(inst, operands),

            // Composites
            Op::CompositeConstruct => self.construct(inst.ty, operands)?,
            Op::CompositeExtract => self.extract(inst.ty, operands)?,
            Op::CompositeInsert => self.insert(inst.ty, operands)?,
            Op::VectorShuffle => self.vector_shuffle(inst.ty, operands)?,
            Op::VectorExtractDynamic => self.extract_dynamic(inst.ty, operands)?,
            Op::VectorInsertDynamic => self.insert_dynamic(inst.ty, operands)?,
            Op::CopyLogical => self.copy_logical(inst.ty, operands)?,
            Op::Select => self.select(inst, operands)?,
            Op::Undef if !self.has_values(inst.ty)? => {
                self.frame.values.insert(inst.id, IdDefinition::Undefined(inst.ty));
                return Ok(());
            }
            Op::Undef => self.zero(inst.ty)?,

            // Extensions
            Op::ExtInst => return self.extended(inst, operands),
            Op::ReadClockKHR => return self.read_clock(inst, operands),
            // The optimizer does not use the condition, so its type does not matter.
            Op::AssumeTrueKHR => return operand(operands, 0).map(|_| ()),
            Op::ExpectKHR => self.expected(inst.ty, operands)?,

            // Groups and subgroups
            Op::GroupNonUniformElect
            | Op::GroupNonUniformAll
            | Op::GroupNonUniformAny
            | Op::GroupNonUniformAllEqual
            | Op::GroupNonUniformBallot
            | Op::GroupNonUniformInverseBallot
            | Op::GroupNonUniformBallotBitExtract
            | Op::GroupNonUniformBallotBitCount
            | Op::GroupNonUniformBallotFindLSB
            | Op::GroupNonUniformBallotFindMSB
            | Op::GroupNonUniformBroadcast
            | Op::GroupNonUniformBroadcastFirst
            | Op::GroupNonUniformShuffle
            | Op::GroupNonUniformShuffleXor
            | Op::GroupNonUniformShuffleUp
            | Op::GroupNonUniformShuffleDown
            | Op::GroupNonUniformRotateKHR
            | Op::GroupNonUniformQuadBroadcast
            | Op::GroupNonUniformQuadSwap
            | Op::GroupNonUniformIAdd
            | Op::GroupNonUniformFAdd
            | Op::GroupNonUniformIMul
            | Op::GroupNonUniformFMul
            | Op::GroupNonUniformSMin
            | Op::GroupNonUniformUMin
            | Op::GroupNonUniformFMin
            | Op::GroupNonUniformSMax
            | Op::GroupNonUniformUMax
            | Op::GroupNonUniformFMax
            | Op::GroupNonUniformBitwiseAnd
            | Op::GroupNonUniformBitwiseOr
            | Op::GroupNonUniformBitwiseXor
            | Op::GroupNonUniformLogicalAnd
            | Op::GroupNonUniformLogicalOr
            | Op::GroupNonUniformLogicalXor => self.group(inst, operands)?,
            Op::GroupNonUniformQuadAllKHR
            | Op::GroupNonUniformQuadAnyKHR
            | Op::GroupNonUniformPartitionEXT
            | Op::SubgroupBallotKHR
            | Op::SubgroupFirstInvocationKHR
            | Op::SubgroupAllKHR
            | Op::SubgroupAnyKHR
            | Op::SubgroupAllEqualKHR
            | Op::SubgroupReadInvocationKHR => self.subgroup(inst, operands)?,

            _ => self.arithmetic(inst, operands)?,
        };
        self.bind(inst.id, value);
        Ok(())
    }
}
