//! State of a translation: the values of ids, limits of work, errors with their position.

use std::rc::Rc;

use foldhash::HashMap;
use smallvec::SmallVec;
use spirv::{GlslStd450Op, Op};

use super::super::Error;
use super::arithmetic::{self, ArithmeticType, OperandValues};
use super::composite::Composite;
use super::constants::Constants;
use super::function::InlinedCall;
use super::glsl450;
use super::module::{ExtendedSet, Sections};
use super::pointer::Pointer;
use super::scalar::Scalar;
use super::types::{SpirvType, Types};
use super::variables::Variables;
use super::words::{Id, Inst, InstResult, op_name, operand};
use crate::front::room::Growth;
use crate::host::Message;
use crate::ir::{Access, Builder, Value};

/// Instructions of a kernel, at most.
const MAX_INSTS: usize = 1 << 20;

/// Instructions parsed and scalars moved, at most, counted anew for each inlined call: bounds call trees that grow
/// without emitting instructions.
const MAX_WORK: usize = 1 << 22;

/// The meaning of an id in a function.
#[derive(Clone, Debug)]
pub(super) enum IdDefinition {
    Value(Composite),
    Pointer(Pointer),
    /// A large composite in memory that is not written while the id is in use.
    ByReference(Pointer),
    /// `OpUndef` of a type without run-time values: it may be named and passed, but not used.
    Undefined(Id),
}

/// Translation of one entry point to a kernel.
pub(super) struct Translator<'m> {
    /// The module.
    pub(super) sections: &'m Sections,
    /// Its types.
    pub(super) types: Types,
    /// Its constants.
    pub(super) constants: Constants,
    /// Builds the kernel.
    pub(super) builder: Builder,
    /// Memory declared so far.
    pub(super) variables: Variables,
    /// The function that is being inlined.
    pub(super) frame: InlinedCall<'m>,
    /// Functions being inlined, the entry point first.
    pub(super) calls: Vec<Id>,
    /// Number of inlined calls.
    pub(super) inlined: usize,
    /// The number of each message of the kernel.
    pub(super) messages: HashMap<Message, u32>,
    materialised: HashMap<Id, Composite>,
    work: usize,
    growth: Growth<'m>,
}

impl<'m> Translator<'m> {
    /// Starts at an entry point's function.
    pub(super) fn new(
        sections: &'m Sections,
        types: Types,
        constants: Constants,
        builder: Builder,
        frame: InlinedCall<'m>,
        growth: Growth<'m>,
    ) -> Self {
        Self {
            sections,
            types,
            constants,
            builder,
            variables: Variables::default(),
            frame,
            calls: Vec::new(),
            inlined: 0,
            messages: HashMap::default(),
            materialised: HashMap::default(),
            work: 0,
            growth,
        }
    }

    /// Counts work, to bound the time for any module.
    pub(super) fn spend(&mut self, scalars: usize) -> InstResult<()> {
        self.work += 1 + scalars;
        if self.work > MAX_WORK {
            let why = self.inlining_note();
            return Err(format!("the kernel is too large{why}: reading it takes more than {MAX_WORK} steps"));
        }
        let instructions = self.builder.kernel().insts.len();
        if instructions > MAX_INSTS {
            return Err(format!("the kernel has more than {MAX_INSTS} instructions{}", self.inlining_note()));
        }
        self.growth.reach(instructions)
    }

    /// A note for messages that the size comes from inlining, if the module has calls.
    fn inlining_note(&self) -> &'static str {
        if self.inlined > 0 { " when all calls are inlined" } else { "" }
    }

    /// The value of an id.
    pub(super) fn value(&mut self, id: Id) -> InstResult<Composite> {
        match self.frame.values.get(&id) {
            Some(IdDefinition::Value(value)) => Ok(value.clone()),
            Some(IdDefinition::Pointer(pointer)) => {
                let pointer = pointer.clone();
                self.value_of(&pointer).map_err(|message| self.about(id, &message))
            }
            Some(IdDefinition::ByReference(place)) => {
                let place = place.clone();
                self.load(&place, Access::default())
            }
            Some(IdDefinition::Undefined(_)) => Err(self.about(id, "an undefined value of this type cannot be used")),
            None if self.variables.is_global(id) => {
                let pointer = self.global(id)?;
                self.value_of(&pointer).map_err(|message| self.about(id, &message))
            }
            None => self.constant(id),
        }
    }

    /// A message about an id.
    fn about(&self, id: Id, message: &str) -> String {
        format!("{}: {message}", self.sections.describe(id))
    }

    fn constant(&mut self, id: Id) -> InstResult<Composite> {
        if let Some(value) = self.materialised.get(&id) {
            return Ok(value.clone());
        }
        let Some(constant) = self.constants.get(id) else {
            return Err(format!("{} is not a value that is defined here", self.sections.describe(id)));
        };
        let ty = constant.ty;
        if matches!(self.types.get(ty)?.ty, SpirvType::Pointer { .. }) {
            let value = self.null_pointer(ty)?;
            self.materialised.insert(id, value.clone());
            return Ok(value);
        }
        let bits = self.constants.bits(&mut self.types, id)?;
        let scalars = self.constant_scalars(ty)?;
        let values = scalars.iter().zip(&*bits).map(|(s, &bits)| self.builder.constant_bits(s.ty(), bits)).collect();
        let value = Composite { ty, values };
        self.materialised.insert(id, value.clone());
        Ok(value)
    }

    /// The value of an id that must be a 32-bit integer.
    pub(super) fn integer(&mut self, id: Id) -> InstResult<Value> {
        self.scalar(id, Scalar::I32)
    }

    /// The value of an id that must be an integer of any width, as an index: values that do not fit 32 bits are out of
    /// bounds.
    pub(super) fn index(&mut self, id: Id) -> InstResult<Value> {
        let value = self.value(id)?;
        match (&self.types.get(value.ty)?.ty, &*value.values) {
            (SpirvType::Scalar(scalar), &[low]) if scalar.is_int() => Ok(low),
            (SpirvType::Scalar(Scalar::I64), &[low, high]) => {
                let (zero, max) = (self.builder.constant(0u32), self.builder.constant(u32::MAX));
                let fits = self.builder.pure(crate::ir::Op::IEq, &[high, zero]);
                Ok(self.builder.select(fits, low, max))
            }
            _ => Err(format!("{} is not an integer", self.sections.describe(id))),
        }
    }

    /// Words, converted to integers of the result's width.
    pub(super) fn integer_result(&mut self, ty: Id, words: &[Value]) -> InstResult<Vec<Value>> {
        let scalars = self.types.scalars(ty)?;
        let scalar = scalars.first().copied().filter(|scalar| scalar.is_int());
        let Some(scalar) = scalar.filter(|scalar| scalars.len() == words.len() * scalar.words() as usize) else {
            return Err(format!("the result is not {} integers", words.len()));
        };
        let zero = self.builder.constant(0u32);
        let mask = self.builder.constant(u32::MAX >> (32 - scalar.bits().min(32)));
        let mut values = Vec::with_capacity(scalars.len());
        for &word in words {
            match scalar {
                Scalar::I64 => values.extend([word, zero]),
                Scalar::I32 => values.push(word),
                _ => values.push(self.builder.pure(crate::ir::Op::And, &[word, mask])),
            }
        }
        Ok(values)
    }

    /// The value of an id that must be a scalar of this type.
    pub(super) fn scalar(&mut self, id: Id, wanted: Scalar) -> InstResult<Value> {
        let value = self.value(id)?;
        match self.types.get(value.ty)?.ty {
            SpirvType::Scalar(scalar) if scalar == wanted => Ok(value.values[0]),
            _ => Err(format!("{} is not a scalar of type {wanted}", self.sections.describe(id))),
        }
    }

    /// Defines an id as a value.
    pub(super) fn bind(&mut self, id: Id, value: Composite) {
        self.frame.values.insert(id, IdDefinition::Value(value));
    }

    /// Defines an id as a pointer.
    pub(super) fn bind_pointer(&mut self, id: Id, pointer: Pointer) {
        self.frame.values.insert(id, IdDefinition::Pointer(pointer));
    }

    /// Translates an instruction that is neither `OpPhi` nor merge or terminator.
    pub(super) fn instruction(&mut self, inst: &Inst) -> Result<(), Error> {
        self.builder.set_origin(inst.word);
        let decorations = self.sections.annotations.of(inst.id);
        self.builder.set_no_contraction(decorations.is_some_and(|decorations| decorations.no_contraction));
        if inst.op == Op::FunctionCall {
            return self.call(inst);
        }
        self.spend(0).and_then(|()| self.dispatch(inst)).map_err(|message| self.error(inst, &message))
    }

    /// An error at an instruction, which the message names; errors of a variable are reported at its declaration.
    pub(super) fn error(&self, inst: &Inst, message: &str) -> Error {
        if let Some(declaration) = &self.variables.refused {
            let error = self.sections.error(declaration.word, format!("OpVariable: {message}"));
            return Error { line: error.line.or_else(|| self.sections.lines.at(inst.word).cloned()), ..error };
        }
        let name = op_name(inst.op);
        // Chapters with several callers name the instruction themselves.
        let message = if message.starts_with(&name) { message.to_owned() } else { format!("{name}: {message}") };
        self.sections.error(inst.word, message)
    }

    /// An instruction that computes scalars, vectors or matrices; otherwise it is unsupported.
    pub(super) fn arithmetic(&mut self, inst: &Inst, operands: &[Id]) -> InstResult<Composite> {
        if inst.id == 0 || inst.ty == 0 {
            return Err("the instruction is not supported".into());
        }
        let shape = self.result_shape(inst.ty)?;
        let operands = without_format(inst.op, operands)?;
        let operands = match self.operands(operands) {
            Ok(operands) => operands,
            // Operands of unsupported instructions may be anything: the instruction is the error to report.
            Err(message) => match arithmetic::translate(&mut self.builder, inst.op, &shape, &[]) {
                None => return Err("the instruction is not supported".into()),
                Some(_) => return Err(message),
            },
        };
        let views: SmallVec<[OperandValues<'_>; 4]> = views(&operands);
        let decorations = self.sections.annotations.of(inst.id);
        let values = if inst.op == Op::FConvert && decorations.is_some_and(|decorations| decorations.towards_zero) {
            arithmetic::halves_towards_zero(&mut self.builder, &shape, &views)?
        } else {
            arithmetic::translate(&mut self.builder, inst.op, &shape, &views)
                .ok_or("the instruction is not supported")??
        };
        self.typed(inst.ty, &values)
    }

    /// The shape of a result; for a structure of two members, that of the first.
    pub(super) fn result_shape(&self, ty: Id) -> InstResult<ArithmeticType> {
        let info = self.types.get(ty)?;
        let first = match &info.ty {
            SpirvType::Struct { members } if members.len() == 2 => members[0].ty,
            _ => ty,
        };
        self.types.shape(first)?.ok_or_else(|| format!("%{ty} is not the type of a scalar, vector or matrix"))
    }

    pub(super) fn operands(&mut self, ids: &[Id]) -> InstResult<SmallVec<[(Composite, ArithmeticType); 4]>> {
        ids.iter()
            .map(|&id| {
                let value = self.value(id)?;
                let shape = self.types.shape(value.ty)?;
                let describe = || format!("{} is not a scalar, vector or matrix", self.sections.describe(id));
                Ok((value, shape.ok_or_else(describe)?))
            })
            .collect()
    }

    /// A value of a type from its scalars, which must match.
    pub(super) fn typed(&mut self, ty: Id, values: &[Value]) -> InstResult<Composite> {
        let scalars = self.types.scalars(ty)?;
        let fits = scalars.len() == values.len()
            && scalars.iter().zip(values).all(|(scalar, &value)| scalar.ty() == self.builder.ty(value));
        if fits { Ok(Composite { ty, values: values.into() }) } else { Err("the result has the wrong type".into()) }
    }

    pub(super) fn extended(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let set = operand(operands, 0)?;
        match self.sections.sets.get(&set) {
            Some(ExtendedSet::NonSemantic) => return Ok(()),
            Some(ExtendedSet::DebugPrintf) => return self.debug_printf(operands),
            Some(ExtendedSet::Glsl450) => {}
            None => return Err(format!("%{set} is not a set of extended instructions")),
        }
        let number = operand(operands, 1)?;
        let op = GlslStd450Op::from_u32(number).ok_or_else(|| format!("GLSL.std.450 has no instruction {number}"))?;
        let arguments = &operands[2..];
        self.glsl450(inst, op, arguments).map_err(|message| format!("{op:?}: {message}"))
    }

    fn glsl450(&mut self, inst: &Inst, op: GlslStd450Op, arguments: &[Id]) -> InstResult<()> {
        // The second result is stored through the last operand.
        let (arguments, second) = match (op, arguments.split_last()) {
            (GlslStd450Op::Modf | GlslStd450Op::Frexp, Some((&pointer, rest))) => (rest, Some(self.pointer(pointer)?)),
            _ => (arguments, None),
        };
        let shape = self.result_shape(inst.ty)?;
        let operands = self.operands(arguments)?;
        let values = glsl450::extended(&mut self.builder, op, &shape, &views(&operands))?;
        let first = match second {
            None => self.typed(inst.ty, &values)?,
            Some(pointer) => {
                let (first, second) = values.split_at(shape.len().min(values.len()));
                let second = self.typed(pointer.pointee(), second)?;
                self.store(&pointer, &second, Default::default())?;
                self.typed(inst.ty, first)?
            }
        };
        self.bind(inst.id, first);
        Ok(())
    }
}

/// The operands of a dot product without the packed vector format, of which there is only one.
fn without_format(op: Op, operands: &[u32]) -> InstResult<&[u32]> {
    let count = match op {
        Op::SDot | Op::UDot | Op::SUDot => 2,
        Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => 3,
        _ => return Ok(operands),
    };
    match operands.get(count..) {
        None | Some([] | [0]) => Ok(&operands[..operands.len().min(count)]),
        Some(_) => Err("an unknown format of packed vectors".into()),
    }
}

fn views(operands: &[(Composite, ArithmeticType)]) -> SmallVec<[OperandValues<'_>; 4]> {
    operands.iter().map(|(value, shape)| OperandValues { values: &value.values, shape: *shape }).collect()
}

/// Scalars as a shared list.
pub(super) fn shared(values: impl IntoIterator<Item = Value>) -> Rc<[Value]> {
    values.into_iter().collect()
}
