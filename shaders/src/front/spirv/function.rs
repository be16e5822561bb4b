//! Function calls: each call is inlined.
//!
//! Recursion is rejected, as SPIR-V requires. Pointer arguments are resolved at the call, so the kernel has no
//! pointers. Returns jump to a block after the call, which is the merge block of a construct that the call opens. If a
//! function returns in a single place, outside of all constructs, the caller continues there.

use foldhash::HashMap;
use smallvec::SmallVec;
use spirv::{Capability, Op};

use super::super::Error;
use super::body::{BasicBlock, FunctionBody, Reachability};
use super::by_reference::Mentions;
use super::composite::{Composite, expect_type};
use super::pointer::Pointer;
use super::translate::{IdDefinition, Translator};
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{Block, BlockCall, InstData, Merge};

/// Call depth, at most.
const MAX_DEPTH: usize = 64;

/// A function, its parameters, and the number of uses of its large values, if it takes such values.
type PreparedCall<'m> = (&'m FunctionBody, HashMap<Id, IdDefinition>, Option<HashMap<Id, Mentions>>);

/// A function that is being inlined.
#[derive(Debug)]
pub(super) struct InlinedCall<'m> {
    /// The function.
    pub(super) function: &'m FunctionBody,
    /// The values of its ids, as far as they are defined.
    pub(super) values: HashMap<Id, IdDefinition>,
    /// The kernel's block for each of its blocks that is reachable or named by a construct.
    pub(super) blocks: Vec<Option<Block>>,
    /// Label of the current block.
    pub(super) label: Id,
    /// Whether the block's construct is already open, because its head was split off.
    pub(super) construct_is_open: bool,
    /// The effect of a return.
    pub(super) exit: ReturnEffect,
    /// Origin variables of its pointers, if known.
    pub(super) origins: HashMap<Id, Id>,
    /// Number of uses of its large values, computed on demand.
    pub(super) mentions: Option<HashMap<Id, Mentions>>,
    /// Memory for its result, if that is returned in memory.
    pub(super) result: Option<Pointer>,
}

/// The effect of a return.
#[derive(Clone, Debug)]
pub(super) enum ReturnEffect {
    /// Ends the invocation.
    Kernel,
    /// Leaves the block open for the caller to continue in: the block and the returned value.
    GoOn(Option<(Block, Option<Composite>)>),
    /// Jumps, with the value's scalars as arguments.
    Join(Block),
}

impl<'m> InlinedCall<'m> {
    /// A frame before the first block.
    pub(super) fn new(function: &'m FunctionBody, exit: ReturnEffect) -> Self {
        let blocks = vec![None; function.blocks.len()];
        Self {
            function,
            values: HashMap::default(),
            blocks,
            label: 0,
            construct_is_open: false,
            exit,
            origins: HashMap::default(),
            mentions: None,
            result: None,
        }
    }
}

impl<'m> Translator<'m> {
    /// Translates the entry point's function into the current block.
    pub(super) fn entry(&mut self) -> Result<(), Error> {
        let function = self.frame.function;
        self.calls.push(function.id);
        let is_void = matches!(self.types.get(function.result).map(|info| info.ty.clone()), Ok(SpirvType::Void));
        if !function.params.is_empty() || !is_void {
            return Err(self.sections.error(function.word, "an entry point takes no parameters and returns nothing"));
        }
        self.body()
    }

    /// `OpFunctionCall`.
    pub(super) fn call(&mut self, inst: &Inst) -> Result<(), Error> {
        let prepared = self.prepare(inst).map_err(|message| self.error(inst, &message))?;
        let (function, values, mentions) = prepared;
        let memory = self.result_by_reference(inst).map_err(|message| self.error(inst, &message))?;
        let join = if function.single_exit.is_some() {
            None
        } else {
            let join = self.open_join(function, memory.is_some()).map_err(|message| self.error(inst, &message))?;
            Some(join)
        };
        let exit = join.map_or(ReturnEffect::GoOn(None), ReturnEffect::Join);
        let mut frame = InlinedCall::new(function, exit);
        (frame.values, frame.mentions, frame.result) = (values, mentions, memory.clone());
        let caller = std::mem::replace(&mut self.frame, frame);
        self.calls.push(function.id);
        self.builder.enter_call(inst.word);
        let result = self.body();
        self.builder.leave_call();
        self.calls.pop();
        let callee = std::mem::replace(&mut self.frame, caller);
        result?;
        self.builder.set_origin(inst.word);
        let value = match (callee.exit, join) {
            (_, Some(join)) if memory.is_some() => {
                self.builder.switch_to(join);
                None
            }
            (_, Some(join)) => self.joined(function, join),
            (ReturnEffect::GoOn(Some((block, value))), None) => {
                self.builder.switch_to(block);
                value
            }
            _ => return Err(self.error(inst, "the function does not return")),
        };
        match (memory, value) {
            (Some(memory), _) => self.define_by_reference(inst.id, memory),
            (None, Some(value)) => self.bind(inst.id, value),
            (None, None) => {}
        }
        Ok(())
    }

    /// The called function, with its parameters' values and the number of their uses.
    fn prepare(&mut self, inst: &Inst) -> InstResult<PreparedCall<'m>> {
        let operands = self.sections.words.operands(inst);
        let id = operand(operands, 0)?;
        let function = self.sections.functions.get(&id).ok_or_else(|| format!("%{id} is not a function"))?;
        let name = self.sections.describe(id);
        if self.calls.contains(&id) {
            return Err(format!("function {name} calls itself; SPIR-V forbids recursion"));
        }
        if self.calls.len() >= MAX_DEPTH {
            return Err(format!("calls nest deeper than {MAX_DEPTH}"));
        }
        if function.blocks.is_empty() {
            return Err(format!("function {name} has no body"));
        }
        expect_type(function.result, inst.ty)?;
        self.check_pointer_type(function.result)?;
        self.check_signature(function)?;
        self.inlined += 1;
        self.spend(function.blocks.len())?;
        let arguments = &operands[1..];
        if arguments.len() != function.params.len() {
            return Err(format!(
                "{} arguments for the {} parameters of {name}",
                arguments.len(),
                function.params.len()
            ));
        }
        let mut values = HashMap::default();
        let passes_large = function.params.iter().any(|&(_, ty)| self.is_large(ty));
        let mentions = passes_large.then(|| self.count_mentions(function));
        for (&(param, ty), &argument) in function.params.iter().zip(arguments) {
            let is_by_reference =
                mentions.as_ref().and_then(|all| all.get(&param)).is_some_and(|mentions| mentions.is_by_reference());
            let value = match self.by_reference(argument).filter(|_| is_by_reference).cloned() {
                Some(memory) => {
                    expect_type(ty, memory.pointee())?;
                    IdDefinition::ByReference(memory)
                }
                None => self.argument(ty, argument)?,
            };
            values.insert(param, value);
        }
        Ok((function, values, mentions))
    }

    fn check_signature(&self, function: &FunctionBody) -> InstResult<()> {
        let matches = match &self.types.get(function.ty)?.ty {
            SpirvType::Function { result, params } => {
                *result == function.result && params.iter().eq(function.params.iter().map(|(_, ty)| ty))
            }
            _ => false,
        };
        if matches { Ok(()) } else { Err("the function does not have its OpTypeFunction".into()) }
    }

    fn argument(&mut self, ty: Id, argument: Id) -> InstResult<IdDefinition> {
        if let Some(IdDefinition::Undefined(of)) = self.frame.values.get(&argument) {
            expect_type(ty, *of)?;
            return Ok(IdDefinition::Undefined(ty));
        }
        if matches!(self.types.get(ty)?.ty, SpirvType::Pointer { .. }) {
            let pointer = self.pointer(argument)?;
            pointer.expect_type(&self.types, ty)?;
            return Ok(IdDefinition::Pointer(pointer));
        }
        let value = self.value(argument)?;
        expect_type(ty, value.ty)?;
        Ok(IdDefinition::Value(value))
    }

    /// Ends the current block with a construct around the call; returns the block after it.
    fn open_join(&mut self, function: &FunctionBody, is_by_reference: bool) -> InstResult<Block> {
        let join = self.builder.create_block();
        if !is_by_reference {
            for &scalar in &*self.types.scalars(function.result)? {
                self.builder.add_param(join, scalar.ty());
            }
        }
        let inner = self.builder.create_block();
        self.builder.set_merge(Merge::Selection { merge: join });
        self.builder.push(InstData::Jump { to: BlockCall::new(inner) });
        self.builder.switch_to(inner);
        Ok(join)
    }

    fn joined(&mut self, function: &FunctionBody, join: Block) -> Option<Composite> {
        self.builder.switch_to(join);
        let params = self.builder.kernel().blocks[join].params.clone();
        let is_void = matches!(self.types.get(function.result).map(|info| info.ty.clone()), Ok(SpirvType::Void));
        (!is_void).then(|| Composite { ty: function.result, values: params.as_slice().into() })
    }

    /// Translates all blocks of the frame's function, the first into the current block.
    fn body(&mut self) -> Result<(), Error> {
        let function = self.frame.function;
        self.create_blocks(function)?;
        for (index, block) in function.blocks.iter().enumerate() {
            let Some(into) = self.frame.blocks[index] else { continue };
            self.builder.switch_to(into);
            self.builder.set_origin(block.word);
            if block.reach != Reachability::Yes {
                self.builder.push(InstData::Unreachable);
                continue;
            }
            self.frame.label = block.label;
            self.bind_phis(block, into)?;
            self.split_head(block).map_err(|message| self.error(&block.terminator, &message))?;
            let mut insts = block.body.iter();
            while let Some(inst) = insts.next() {
                let copied = self.load_and_store(inst, insts.as_slice().first());
                if copied.map_err(|message| self.error(inst, &message))? {
                    insts.next();
                } else {
                    self.instruction(inst)?;
                }
            }
            self.terminate(block)?;
        }
        Ok(())
    }

    /// A loop's back edge leads to the block that opens the loop, so a header must be one block in the kernel: if it
    /// contains a call, an image write or an access by address, the code after its phis moves to a block of its own.
    fn split_head(&mut self, block: &BasicBlock) -> InstResult<()> {
        self.frame.construct_is_open = false;
        let has_addresses = self.sections.declares(Capability::PhysicalStorageBufferAddresses);
        let spreads = |inst: &Inst| match inst.op {
            Op::FunctionCall | Op::ImageWrite => true,
            // Large copies become loops.
            Op::CopyMemory => true,
            Op::Load => has_addresses || self.is_large(inst.ty),
            Op::Store => has_addresses || self.stores_large_null(inst) || self.stores_by_reference(inst),
            Op::CopyMemorySized | Op::ExtInst => has_addresses,
            _ => false,
        };
        if block.is_loop_header() && block.body.iter().any(spreads) {
            self.open_construct(block)?;
            let rest = self.builder.create_block();
            self.builder.push(InstData::Jump { to: BlockCall::new(rest) });
            self.builder.switch_to(rest);
            self.frame.construct_is_open = true;
        }
        Ok(())
    }

    fn create_blocks(&mut self, function: &FunctionBody) -> Result<(), Error> {
        for (index, block) in function.blocks.iter().enumerate() {
            if block.reach == Reachability::No {
                continue;
            }
            let into = if index == 0 { self.builder.current() } else { self.builder.create_block() };
            self.frame.blocks[index] = Some(into);
            if block.reach == Reachability::Yes {
                for phi in &block.phis {
                    self.declare_phi(block, phi, into).map_err(|message| self.error(phi, &message))?;
                }
            }
        }
        Ok(())
    }

    fn declare_phi(&mut self, block: &BasicBlock, phi: &Inst, into: Block) -> InstResult<()> {
        let operands = self.sections.words.operands(phi);
        for parent in operands.iter().skip(1).step_by(2) {
            if !block.predecessors.contains(parent) {
                return Err(format!("%{parent} is named as a parent, but does not branch to %{}", block.label));
            }
        }
        let scalars = self.types.scalars(phi.ty)?;
        self.check_pointer_type(phi.ty)?;
        self.spend(scalars.len())?;
        for scalar in &*scalars {
            self.builder.add_param(into, scalar.ty());
        }
        Ok(())
    }

    fn bind_phis(&mut self, block: &BasicBlock, into: Block) -> Result<(), Error> {
        let params = self.builder.kernel().blocks[into].params.clone();
        let mut rest = params.as_slice();
        for phi in &block.phis {
            let count = self.types.scalars(phi.ty).map_err(|message| self.error(phi, &message))?.len();
            let (values, after) = rest.split_at(count.min(rest.len()));
            self.bind(phi.id, Composite { ty: phi.ty, values: values.into() });
            rest = after;
        }
        Ok(())
    }

    /// A branch from the current block to a block of the function, with the arguments for its phis.
    pub(super) fn edge(&mut self, label: Id) -> InstResult<BlockCall> {
        let function = self.frame.function;
        let no_block = || format!("%{label} is not a block of the function");
        let index = *function.index.get(&label).ok_or_else(no_block)?;
        let block = self.frame.blocks[index].ok_or_else(no_block)?;
        let mut args = SmallVec::new();
        let BasicBlock { phis, incoming, .. } = &function.blocks[index];
        let from = self.frame.label;
        for (position, phi) in phis.iter().enumerate() {
            let id = incoming.get(&(from, position)).copied();
            let id = id.ok_or_else(|| format!("OpPhi %{} has no value for its parent %{from}", phi.id))?;
            let value = self.value(id)?;
            expect_type(phi.ty, value.ty)?;
            self.record_origin(phi.ty, phi.id, id)?;
            self.spend(value.values.len())?;
            args.extend_from_slice(&value.values);
        }
        Ok(BlockCall { block, args })
    }
}
