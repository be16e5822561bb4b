//! Serialization of machine code, for another process of the same build.
//!
//! # Safety
//!
//! [`MachineCode::load`] makes bytes executable, so the bytes must come unchanged from [`MachineCode::store`] of this
//! very build. That cannot be verified here: the owner of the bytes has to authenticate them. The input is
//! nevertheless parsed with checks, so that a mistake gives `None` and not a panic.
//!
//! The code is position-independent: its constants and jumps are relative to the instruction pointer, everything else
//! is reached through its argument, the context.

use super::code_memory::CodeMemory;
use super::function::{Areas, KernelFunction, Needs};
use super::{Isa, MachineCode};
use crate::back::bytes::{Reader, Writer};
use crate::check::InlineChecks;
use crate::host::{Message, MessageOperand};
use crate::simd::Routine;

impl MachineCode {
    /// The program as bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Needs {
            descriptors,
            shared_bytes,
            private_bytes,
            frame_bytes,
            call_bytes,
            subgroup_order,
            stack_bytes,
            images,
            address_ranges,
            workgroup_loop,
            merged_workgroups,
            workgroup_size,
            isa,
        } = self.function.needs;
        let mut out = Writer::default();
        out.text(isa.name());
        let bytes = [shared_bytes, private_bytes, frame_bytes, call_bytes, stack_bytes];
        for number in [self.function.entry, descriptors, subgroup_order].into_iter().chain(bytes) {
            out.number(number);
        }
        let [x, y, z] = workgroup_size;
        [merged_workgroups, x, y, z].into_iter().for_each(|number| out.number(number as usize));
        for flag in [images, address_ranges, workgroup_loop, self.nontemporal] {
            out.number(usize::from(flag));
        }
        out.number(self.max_steps.and_then(|steps| usize::try_from(steps).ok()).unwrap_or(usize::MAX));
        out.number(self.spills.slots);
        out.number(self.spills.moves);
        out.number(self.function.routines.len());
        self.function.routines.iter().for_each(|routine| out.text(&routine.name()));
        out.number(self.function.messages.len());
        for message in &self.function.messages {
            out.text(&message.text);
            out.number(message.operands.len());
            message.operands.iter().for_each(|operand| out.text(&operand.name()));
        }
        out.bytes(self.function.memory.bytes());
        out.0
    }

    /// Loads a program from the bytes of [`Code::store`](crate::back::Code::store); `None` if they are anything else or
    /// there is no memory for code.
    ///
    /// # Safety
    ///
    /// This build of this crate made the bytes, on a machine with the same instructions.
    pub unsafe fn load(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let name = from.text()?;
        let isa = Isa::available().find(|isa| isa.name() == name)?;
        let mut numbers = [0; 19];
        for number in &mut numbers {
            *number = from.number()?;
        }
        let [entry, descriptors, subgroup_order, rest @ ..] = numbers;
        let [shared_bytes, private_bytes, frame_bytes, call_bytes, stack_bytes, rest @ ..] = rest;
        let [merged_workgroups, x, y, z, images, address_ranges, workgroup_loop, nontemporal, max_steps, slots, moves] =
            rest;
        let workgroup_size = [x, y, z].map(|size| size as u32);
        let routines = (0..from.number()?).map(|_| routine(from.text()?)).collect::<Option<_>>()?;
        let messages = (0..from.number()?).map(|_| message(&mut from)).collect::<Option<_>>()?;
        let code = from.bytes()?;
        if entry >= code.len() || !from.0.is_empty() {
            return None;
        }
        let [images, address_ranges, workgroup_loop] = [images, address_ranges, workgroup_loop].map(|flag| flag != 0);
        let needs = Needs {
            descriptors,
            shared_bytes,
            private_bytes,
            frame_bytes,
            call_bytes,
            subgroup_order,
            stack_bytes,
            images,
            address_ranges,
            workgroup_loop,
            merged_workgroups: merged_workgroups as u32,
            workgroup_size,
            isa,
        };
        let memory = CodeMemory::new(code).ok()?;
        // Kernels with checks are not stored.
        let inline = InlineChecks::default();
        let areas = Areas::new(&needs, &inline);
        Some(Self {
            function: KernelFunction { memory, entry, needs, areas, routines, messages, inline },
            nontemporal: nontemporal != 0,
            max_steps: Some(max_steps as u64).filter(|_| max_steps != usize::MAX),
            spills: super::Spills { slots, moves },
            forms: Default::default(),
            source: super::SourceMap::default(),
        })
    }
}

/// The routine with this name in the text form: group and detail.
fn routine(name: &str) -> Option<Routine> {
    let (chapter, detail) = name.split_once('.')?;
    Routine::from_name(chapter, detail)
}

/// The next message.
fn message(from: &mut Reader<'_>) -> Option<Message> {
    let text = from.text()?.to_owned();
    let operands = (0..from.number()?).map(|_| MessageOperand::from_name(from.text()?)).collect::<Option<_>>()?;
    Some(Message { text, operands })
}
