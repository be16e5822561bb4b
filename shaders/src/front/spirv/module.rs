//! A parsed module: its sections, and everything that does not depend on entry point and specialization.

use foldhash::{HashMap, HashSet};
use spirv::{Capability, ExecutionModel, Op, StorageClass};

use super::super::{Error, Remark};
use super::body::FunctionBody;
use super::capability;
use super::debug_names;
use super::decorations::Annotations;
use super::lines::Lines;
use super::remark;
use super::words::{Id, Inst, InstResult, Words, op_name, operand, string};
use crate::ir::MemoryModel;

/// A compute entry point.
#[derive(Debug)]
pub(super) struct EntryPoint {
    /// Its name.
    pub(super) name: String,
    /// Its function.
    pub(super) function: Id,
    /// Word of the `OpEntryPoint`.
    pub(super) word: u32,
}

/// The sections of a module.
#[derive(Debug)]
pub(super) struct Sections {
    /// The instructions.
    pub(super) words: Words,
    /// Debug lines.
    pub(super) lines: Lines,
    /// Decorations and names.
    pub(super) annotations: Annotations,
    /// Compute entry points.
    pub(super) entry_points: Vec<EntryPoint>,
    /// `OpExecutionMode` and `OpExecutionModeId`.
    pub(super) execution_modes: Vec<Inst>,
    /// Types, constants and global variables, in order.
    pub(super) declarations: Vec<Inst>,
    /// Sets of extended instructions.
    pub(super) sets: HashMap<Id, ExtendedSet>,
    /// `OpString`s.
    pub(super) strings: HashMap<Id, Inst>,
    /// Functions.
    pub(super) functions: HashMap<Id, FunctionBody>,
    /// Declared capabilities.
    capabilities: HashSet<Capability>,
    /// Whether workgroup variables are blocks with an explicit layout.
    pub(super) has_workgroup_blocks: bool,
    /// Whether pointers to workgroup memory may be variable pointers.
    pub(super) has_workgroup_pointers: bool,
    /// The memory model.
    pub(super) memory_model: MemoryModel,
    /// A rule that the module breaks, but that does not prevent its translation.
    pub(super) remark: Option<Remark>,
}

/// A set of extended instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtendedSet {
    /// `GLSL.std.450`.
    Glsl450,
    /// `NonSemantic.DebugPrintf`.
    DebugPrintf,
    /// `NonSemantic.*`: has no effect.
    NonSemantic,
}

impl Sections {
    /// Parses all sections.
    pub(super) fn parse(words: &[u32]) -> Result<Self, Error> {
        let words = Words::parse(words)?;
        let lines = Lines::collect(&words);
        let mut this = Self {
            words,
            lines,
            annotations: Annotations::default(),
            entry_points: Vec::new(),
            execution_modes: Vec::new(),
            declarations: Vec::new(),
            sets: HashMap::default(),
            strings: HashMap::default(),
            functions: HashMap::default(),
            capabilities: HashSet::default(),
            has_workgroup_blocks: false,
            has_workgroup_pointers: false,
            memory_model: MemoryModel::default(),
            remark: None,
        };
        let body = this.words.insts.iter().position(|inst| inst.op == Op::Function).unwrap_or(this.words.insts.len());
        this.globals(body)?;
        this.check_strides()?;
        this.find_workgroup_memory();
        this.read_functions(body)?;
        this.remark = remark::find(&this, body)?;
        Ok(this)
    }

    /// An error at a word, with the source line of the word.
    pub(super) fn error(&self, word: u32, message: impl Into<String>) -> Error {
        Error { message: message.into(), word: Some(word as usize), line: self.lines.at(word).cloned() }
    }

    /// An id with its name, for messages.
    pub(super) fn describe(&self, id: Id) -> String {
        match self.annotations.name(id) {
            "" => format!("%{id}"),
            name => format!("%{id} ({})", name.escape_debug()),
        }
    }

    /// Whether the memory model is `Vulkan`.
    pub(super) fn is_vulkan_memory_model(&self) -> bool {
        self.memory_model == MemoryModel::Vulkan
    }

    /// Whether the module declares a capability.
    pub(super) fn declares(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Checks that `ArrayStride` is on array and pointer types: it "must not be applied to any other type".
    fn check_strides(&self) -> Result<(), Error> {
        let strided = self.annotations.ids_with(|decorations| decorations.array_stride.is_some());
        let wrong = self.declarations.iter().find(|inst| {
            strided.binary_search(&inst.id).is_ok()
                && !matches!(inst.op, Op::TypeArray | Op::TypeRuntimeArray | Op::TypePointer)
        });
        wrong.map_or(Ok(()), |inst| {
            let what = format!("{} has an ArrayStride, but is not an array or pointer type", self.describe(inst.id));
            Err(self.error(inst.word, format!("{}: {what}", op_name(inst.op))))
        })
    }

    /// Finds the properties of workgroup memory that its declarations depend on.
    fn find_workgroup_memory(&mut self) {
        let workgroup = StorageClass::Workgroup as u32;
        let words = &self.words;
        let pointers = self.declarations.iter().filter(|inst| inst.op == Op::TypePointer);
        let pointees: HashMap<Id, Id> = pointers
            .filter_map(|inst| match *words.operands(inst) {
                [class, pointee] if class == workgroup => Some((inst.id, pointee)),
                _ => None,
            })
            .collect();
        let is_block = |ty: &Id| self.annotations.of(*ty).is_some_and(|decorations| decorations.block);
        let mut variables = self.declarations.iter().filter(|inst| inst.op == Op::Variable);
        self.has_workgroup_blocks = variables.any(|inst| pointees.get(&inst.ty).is_some_and(is_block));
        self.has_workgroup_pointers = words.insts.iter().any(|inst| {
            let makes = matches!(
                inst.op,
                Op::Select
                    | Op::Phi
                    | Op::FunctionCall
                    | Op::PtrAccessChain
                    | Op::InBoundsPtrAccessChain
                    | Op::Load
                    | Op::ConstantNull
                    | Op::Undef
            );
            makes && pointees.contains_key(&inst.ty)
                || matches!(inst.op, Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff | Op::Store) && !pointees.is_empty()
        }) && self.declares(Capability::VariablePointers);
    }

    fn globals(&mut self, end: usize) -> Result<(), Error> {
        let mut has_memory_model = false;
        for at in 0..end {
            let inst = self.words.insts[at];
            let taken = self.global(&inst, &mut has_memory_model);
            taken.map_err(|message| self.error(inst.word, message))?;
        }
        debug_names::add(&self.words, &mut self.annotations);
        if !has_memory_model {
            return Err(self.error(5, "the module has no OpMemoryModel"));
        }
        Ok(())
    }

    fn global(&mut self, inst: &Inst, has_memory_model: &mut bool) -> InstResult<()> {
        let operands = self.words.operands(inst);
        if self.annotations.take(inst, operands)? {
            return Ok(());
        }
        match inst.op {
            Op::Capability => {
                let capability = capability::check(operands)?;
                self.capabilities.insert(capability);
            }
            Op::MemoryModel => {
                self.memory_model = capability::memory_model(operands)?;
                *has_memory_model = true;
            }
            Op::ExtInstImport => {
                let set = extended_set(operands)?;
                self.sets.insert(inst.id, set);
            }
            Op::EntryPoint => {
                let entry = entry_point(inst, operands)?;
                self.entry_points.extend(entry);
            }
            Op::ExecutionMode | Op::ExecutionModeId => self.execution_modes.push(*inst),
            Op::ExtInst => self.non_semantic(operands)?,
            Op::String => _ = self.strings.insert(inst.id, *inst),
            op if is_debug(op) => {}
            op if is_declaration(op) => self.declarations.push(*inst),
            op => return Err(format!("{} is not supported outside of a function", op_name(op))),
        }
        Ok(())
    }

    /// An extended instruction outside of a function.
    fn non_semantic(&self, operands: &[u32]) -> InstResult<()> {
        match self.sets.get(&operand(operands, 0)?) {
            Some(ExtendedSet::NonSemantic | ExtendedSet::DebugPrintf) => Ok(()),
            _ => Err("OpExtInst outside of a function".into()),
        }
    }

    fn read_functions(&mut self, mut at: usize) -> Result<(), Error> {
        while at < self.words.insts.len() {
            let inst = self.words.insts[at];
            if is_debug(inst.op) {
                at += 1;
                continue;
            }
            if inst.op == Op::ExtInst {
                self.non_semantic(self.words.operands(&inst)).map_err(|message| self.error(inst.word, message))?;
                at += 1;
                continue;
            }
            let (function, end) =
                FunctionBody::parse(&self.words, at).map_err(|(word, message)| self.error(word, message))?;
            self.functions.insert(function.id, function);
            at = end;
        }
        for entry in &self.entry_points {
            if !self.functions.contains_key(&entry.function) {
                return Err(self.error(entry.word, format!("entry point {:?} names no function", entry.name)));
            }
        }
        Ok(())
    }
}

/// Whether an `OpExtInst` has no effect.
pub(super) fn is_non_semantic(words: &Words, inst: &Inst) -> bool {
    let imports = words.insts.iter().take_while(|inst| inst.op != Op::MemoryModel);
    let mut imports = imports.filter(|inst| inst.op == Op::ExtInstImport);
    let set = words.operands(inst).first().and_then(|set| imports.find(|import| import.id == *set));
    set.is_some_and(|set| extended_set(words.operands(set)) == Ok(ExtendedSet::NonSemantic))
}

fn extended_set(operands: &[u32]) -> InstResult<ExtendedSet> {
    let (name, _) = string(operands)?;
    match name.as_str() {
        "GLSL.std.450" => Ok(ExtendedSet::Glsl450),
        "NonSemantic.DebugPrintf" => Ok(ExtendedSet::DebugPrintf),
        // Older debug information has no effect on a kernel either.
        "OpenCL.DebugInfo.100" => Ok(ExtendedSet::NonSemantic),
        name if name.starts_with("NonSemantic.") => Ok(ExtendedSet::NonSemantic),
        name => Err(format!("extended instruction set {name:?} is not supported")),
    }
}

/// `OpEntryPoint`; `None` for stages other than compute.
fn entry_point(inst: &Inst, operands: &[u32]) -> InstResult<Option<EntryPoint>> {
    if operand(operands, 0)? != ExecutionModel::GLCompute as u32 {
        return Ok(None);
    }
    let function = operand(operands, 1)?;
    let (name, _) = string(&operands[2..])?;
    Ok(Some(EntryPoint { name, function, word: inst.word }))
}

/// Instructions without effect, which are allowed nearly anywhere.
pub(super) fn is_debug(op: Op) -> bool {
    matches!(
        op,
        Op::Nop
            | Op::Source
            | Op::SourceContinued
            | Op::SourceExtension
            | Op::String
            | Op::Line
            | Op::NoLine
            | Op::ModuleProcessed
            | Op::Extension
    )
}

fn is_declaration(op: Op) -> bool {
    op.is_type() || op.is_constant() || matches!(op, Op::Variable | Op::Undef)
}
