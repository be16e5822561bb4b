//! Types after specialization: the scalars that values explode into, and sizes.

use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use spirv::{Op, StorageClass};

use super::arithmetic::ArithmeticType;
use super::decorations::Annotations;
use super::image::ImageType;
use super::layout::MatrixLayout;
use super::scalar::Scalar;
use super::words::{Id, Inst, InstResult, op_name, operand};

/// Nesting of types, at most (SPIR-V's universal limit for structures).
const MAX_DEPTH: u32 = 255;

/// Scalars of one value, at most.
const MAX_SCALARS: u32 = 1 << 16;

/// Scalars of all types whose lists are kept, at most.
const MAX_FLAT: usize = 1 << 24;

/// Types that one type contains, at most, counted with multiplicity.
const MAX_NODES: u32 = 1 << 16;

/// The scalars of a pointer value; none if its class has no pointer values.
fn words_of_pointer(class: StorageClass) -> &'static [Scalar] {
    match class {
        // The buffer, and the offset in units of the pointee's alignment (ADR 7).
        StorageClass::StorageBuffer => &[Scalar::Buffer, Scalar::I32],
        StorageClass::Workgroup => &[Scalar::I32],
        StorageClass::PhysicalStorageBuffer => &[Scalar::I64; 2],
        _ => &[],
    }
}

/// A type.
#[derive(Clone, Debug)]
pub(super) enum SpirvType {
    Void,
    Scalar(Scalar),
    Vector { element: Id, scalar: Scalar, count: u32 },
    Matrix { column: Id, scalar: Scalar, columns: u32, rows: u32 },
    Array { element: Id, count: u32, stride: Option<u32> },
    RuntimeArray { element: Id, stride: Option<u32> },
    Struct { members: Vec<Member> },
    Pointer { class: StorageClass, pointee: Id },
    Image(ImageType),
    Sampler,
    SampledImage { image: Id },
    Function { result: Id, params: Vec<Id> },
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its type.
    pub(super) ty: Id,
    /// `Offset`, for memory with an explicit layout.
    pub(super) offset: Option<u32>,
    /// The layout of matrices in it.
    pub(super) matrix: MatrixLayout,
    /// Number of scalars of the members before it.
    pub(super) first: u32,
}

/// A type with its derived properties.
#[derive(Clone, Debug)]
pub(super) struct Info {
    /// The type.
    pub(super) ty: SpirvType,
    /// Number of scalars, clamped; 0 for types without values and runtime arrays.
    pub(super) scalars: u32,
    /// Nesting depth.
    depth: u32,
    /// Alignment in a block, as far as it matters: 1, 2 or 4.
    pub(super) align: u32,
    /// Number of types in it, counted with multiplicity.
    nodes: u32,
    /// Number of empty structures in a value, clamped.
    empties: u32,
    /// Whether it is, or ends with, a runtime array.
    pub(super) unsized_tail: bool,
    /// Whether it is or contains a matrix.
    pub(super) has_matrix: bool,
    /// Whether it is or contains a pointer without a run-time value.
    pub(super) has_logical_pointer: bool,
}

/// The types of a module, by id.
#[derive(Debug, Default)]
pub(super) struct Types {
    infos: HashMap<Id, Rc<Info>>,
    flat: HashMap<Id, Rc<[Scalar]>>,
    flat_len: usize,
    /// Integer types declared as unsigned: most instructions ignore that.
    unsigned: HashSet<Id>,
}

impl Types {
    /// The type of an id.
    pub(super) fn get(&self, id: Id) -> InstResult<Rc<Info>> {
        self.infos.get(&id).cloned().ok_or_else(|| format!("%{id} is not a type"))
    }

    /// Whether it is an unsigned integer type.
    pub(super) fn is_unsigned(&self, id: Id) -> bool {
        self.unsigned.contains(&id)
    }

    /// The scalars of a value of this type, in order; two-word scalars are listed twice.
    pub(super) fn scalars(&mut self, id: Id) -> InstResult<Rc<[Scalar]>> {
        if let Some(flat) = self.flat.get(&id) {
            return Ok(flat.clone());
        }
        let info = self.get(id)?;
        if let SpirvType::Pointer { class, .. } = info.ty
            && words_of_pointer(class).is_empty()
        {
            return Err(format!("a pointer to storage class {class:?} cannot be a value, or select between objects"));
        }
        if info.unsized_tail || matches!(info.ty, SpirvType::Function { .. }) {
            return Err(format!("%{id} is not the type of a value"));
        }
        if info.scalars > MAX_SCALARS {
            return Err(format!("a value of type %{id} has {} scalars, more than {MAX_SCALARS}", info.scalars));
        }
        self.flat_len += info.scalars as usize;
        if self.flat_len > MAX_FLAT {
            return Err("the module has too many large types".into());
        }
        let mut list = Vec::with_capacity(info.scalars as usize);
        self.flatten(&info, &mut list)?;
        let flat: Rc<[Scalar]> = list.into();
        self.flat.insert(id, flat.clone());
        Ok(flat)
    }

    fn flatten(&self, info: &Info, into: &mut Vec<Scalar>) -> InstResult<()> {
        match &info.ty {
            SpirvType::Scalar(scalar) | SpirvType::Vector { scalar, .. } | SpirvType::Matrix { scalar, .. } => {
                into.extend(std::iter::repeat_n(*scalar, info.scalars as usize));
            }
            SpirvType::Image(_) | SpirvType::Sampler => into.push(Scalar::Handle),
            SpirvType::SampledImage { .. } => into.extend([Scalar::Handle; 2]),
            SpirvType::Array { element, count, .. } => {
                let from = into.len();
                self.flatten(&*self.get(*element)?, into)?;
                let one = into[from..].to_vec();
                if !one.is_empty() {
                    (1..*count).for_each(|_| into.extend_from_slice(&one));
                }
            }
            SpirvType::Struct { members } => {
                for member in members {
                    self.flatten(&*self.get(member.ty)?, into)?;
                }
            }
            SpirvType::Pointer { class, .. } => into.extend_from_slice(words_of_pointer(*class)),
            SpirvType::Void | SpirvType::RuntimeArray { .. } | SpirvType::Function { .. } => {}
        }
        Ok(())
    }

    /// The shape for arithmetic; `None` for arrays and structures.
    pub(super) fn shape(&self, id: Id) -> InstResult<Option<ArithmeticType>> {
        Ok(match self.get(id)?.ty {
            SpirvType::Scalar(scalar) => Some(ArithmeticType::Scalar(scalar)),
            SpirvType::Vector { scalar, count, .. } => Some(ArithmeticType::Vector(scalar, count)),
            SpirvType::Matrix { scalar, columns, rows, .. } => {
                Some(ArithmeticType::Matrix { element: scalar, columns, rows })
            }
            _ => None,
        })
    }

    /// Type of component `index` of a composite, and the index of its first scalar.
    pub(super) fn component(&self, id: Id, index: u32) -> InstResult<(Id, u32)> {
        let info = self.get(id)?;
        let (element, count) = match &info.ty {
            SpirvType::Vector { element, count, .. } => (*element, *count),
            SpirvType::Matrix { column, columns, .. } => (*column, *columns),
            SpirvType::Array { element, count, .. } => (*element, *count),
            SpirvType::Struct { members } => {
                let member = members.get(index as usize);
                return member.map(|m| (m.ty, m.first)).ok_or_else(|| format!("%{id} has no member {index}"));
            }
            _ => return Err(format!("%{id} has no parts")),
        };
        if index >= count {
            return Err(format!("index {index} is out of range of the {count} components of %{id}"));
        }
        Ok((element, index.saturating_mul(self.get(element)?.scalars)))
    }

    /// Number of components of a composite.
    pub(super) fn component_count(&self, id: Id) -> InstResult<u32> {
        match &self.get(id)?.ty {
            SpirvType::Vector { count, .. } | SpirvType::Array { count, .. } => Ok(*count),
            SpirvType::Matrix { columns, .. } => Ok(*columns),
            SpirvType::Struct { members } => Ok(members.len() as u32),
            _ => Err(format!("%{id} is not a composite type")),
        }
    }

    /// Declares an `OpType…`; `count` gives an array's length by the constant's id.
    pub(super) fn declare(
        &mut self,
        inst: &Inst,
        operands: &[u32],
        annotations: &Annotations,
        count: impl Fn(&Self, Id) -> InstResult<u32>,
    ) -> InstResult<()> {
        let id = inst.id;
        let stride = annotations.of(id).and_then(|d| d.array_stride);
        let at = |index| operand(operands, index);
        let ty = match inst.op {
            Op::TypeVoid => SpirvType::Void,
            Op::TypeBool => SpirvType::Scalar(Scalar::Bool),
            Op::TypeInt => {
                if at(1)? == 0 {
                    self.unsigned.insert(id);
                }
                match at(0)? {
                    8 => SpirvType::Scalar(Scalar::I8),
                    16 => SpirvType::Scalar(Scalar::I16),
                    32 => SpirvType::Scalar(Scalar::I32),
                    64 => SpirvType::Scalar(Scalar::I64),
                    width => return Err(format!("{width}-bit integers are not supported")),
                }
            }
            Op::TypeFloat => match (at(0)?, operands.get(1)) {
                (16, None) => SpirvType::Scalar(Scalar::F16),
                (32, None) => SpirvType::Scalar(Scalar::F32),
                (64, None) => SpirvType::Scalar(Scalar::F64),
                (width, None) => return Err(format!("{width}-bit floats are not supported")),
                (_, Some(_)) => return Err("floats with an encoding are not supported".into()),
            },
            Op::TypeVector => self.vector(at(0)?, at(1)?)?,
            Op::TypeMatrix => self.matrix(at(0)?, at(1)?)?,
            Op::TypeArray => {
                self.element(at(0)?)?;
                match count(self, at(1)?)? {
                    0 => return Err("an array has 0 elements".into()),
                    count => SpirvType::Array { element: at(0)?, count, stride },
                }
            }
            Op::TypeRuntimeArray => {
                self.element(at(0)?)?;
                SpirvType::RuntimeArray { element: at(0)?, stride }
            }
            Op::TypeStruct => self.structure(id, operands, annotations)?,
            Op::TypePointer => {
                let class = StorageClass::from_u32(at(0)?).ok_or("unknown storage class")?;
                self.get(at(1)?)?;
                self.check_forward(id, class)?;
                SpirvType::Pointer { class, pointee: at(1)? }
            }
            Op::TypeImage => SpirvType::Image(ImageType::parse(self, operands)?),
            Op::TypeSampler => SpirvType::Sampler,
            Op::TypeSampledImage => match self.get(at(0)?)?.ty {
                SpirvType::Image(ImageType { storage: false, .. }) => SpirvType::SampledImage { image: at(0)? },
                _ => return Err(format!("%{} is not an image for samplers", at(0)?)),
            },
            Op::TypeFunction => {
                operands.iter().try_for_each(|&ty| self.get(ty).map(|_| ()))?;
                SpirvType::Function { result: at(0)?, params: operands[1..].to_vec() }
            }
            op => return Err(format!("{} is not supported", op_name(op))),
        };
        let info = self.measure(ty)?;
        self.infos.insert(id, Rc::new(info));
        Ok(())
    }

    /// `OpTypeForwardPointer`: a pointer to a type that is declared later.
    pub(super) fn declare_forward(&mut self, operands: &[u32]) -> InstResult<()> {
        let class = StorageClass::from_u32(operand(operands, 1)?).ok_or("unknown storage class")?;
        if class != StorageClass::PhysicalStorageBuffer {
            return Err(format!("a forward pointer of storage class {class:?}"));
        }
        let info = self.measure(SpirvType::Pointer { class, pointee: 0 })?;
        self.infos.insert(operand(operands, 0)?, Rc::new(info));
        Ok(())
    }

    /// Checks that a pointer type matches its forward declaration.
    fn check_forward(&self, id: Id, class: StorageClass) -> InstResult<()> {
        match self.infos.get(&id).map(|info| &info.ty) {
            Some(SpirvType::Pointer { class: before, .. }) if *before != class => {
                Err(format!("%{id} was declared as a pointer to storage class {before:?}"))
            }
            _ => Ok(()),
        }
    }

    fn vector(&self, element: Id, count: u32) -> InstResult<SpirvType> {
        match self.get(element)?.ty {
            SpirvType::Scalar(scalar) if (2..=4).contains(&count) => Ok(SpirvType::Vector { element, scalar, count }),
            SpirvType::Scalar(_) => Err(format!("a vector of {count} components")),
            _ => Err(format!("a vector of %{element}, which is not a scalar")),
        }
    }

    fn matrix(&self, column: Id, columns: u32) -> InstResult<SpirvType> {
        match self.get(column)?.ty {
            SpirvType::Vector { scalar, count, .. } if (2..=4).contains(&columns) && scalar.is_float() => {
                Ok(SpirvType::Matrix { column, scalar, columns, rows: count })
            }
            _ => Err(format!("a matrix of {columns} columns of %{column}")),
        }
    }

    /// The element type of an array or structure.
    fn element(&self, id: Id) -> InstResult<Rc<Info>> {
        let info = self.get(id)?;
        match info.ty {
            SpirvType::Void | SpirvType::Function { .. } => {
                Err(format!("%{id} cannot be part of an array or structure"))
            }
            SpirvType::Pointer { class, .. } if words_of_pointer(class).is_empty() => {
                Err(format!("%{id} cannot be part of an array or structure"))
            }
            _ => Ok(info),
        }
    }

    fn structure(&self, id: Id, types: &[Id], annotations: &Annotations) -> InstResult<SpirvType> {
        let mut members = Vec::with_capacity(types.len());
        let mut first = 0u32;
        for (index, &ty) in (0u32..).zip(types) {
            let info = self.element(ty)?;
            if matches!(info.ty, SpirvType::Image(_) | SpirvType::Sampler | SpirvType::SampledImage { .. }) {
                return Err(format!("member {index} is an image or sampler"));
            }
            if info.unsized_tail && index as usize + 1 != types.len() {
                return Err(format!("member {index} is a runtime array, but not the last member"));
            }
            let decorations = annotations.of_member(id, index).cloned().unwrap_or_default();
            let matrix = MatrixLayout {
                stride: decorations.matrix_stride,
                row_major: decorations.row_major,
                memory: decorations.memory,
            };
            members.push(Member { ty, offset: decorations.offset, matrix, first });
            first = first.saturating_add(info.scalars);
        }
        Ok(SpirvType::Struct { members })
    }

    fn measure(&self, ty: SpirvType) -> InstResult<Info> {
        let (mut scalars, mut depth, mut nodes, mut unsized_tail, mut align) = (0u32, 0, 1u32, false, 1);
        let mut empties = 0u32;
        let mut has_matrix = matches!(ty, SpirvType::Matrix { .. });
        let logical = |class| class != StorageClass::PhysicalStorageBuffer;
        let mut has_logical_pointer = matches!(ty, SpirvType::Pointer { class, .. } if logical(class));
        let mut part = |id: Id, times: u32| {
            let info = self.get(id)?;
            scalars = scalars.saturating_add(info.scalars.saturating_mul(times));
            depth = depth.max(info.depth);
            nodes = nodes.saturating_add(info.nodes);
            empties = empties.saturating_add(info.empties.saturating_mul(times));
            unsized_tail |= info.unsized_tail;
            align = align.max(info.align);
            has_matrix |= info.has_matrix;
            has_logical_pointer |= info.has_logical_pointer;
            InstResult::Ok(())
        };
        match &ty {
            SpirvType::Scalar(scalar) => (scalars, align) = (scalar.words(), scalar.bytes().min(4)),
            SpirvType::Image(_) | SpirvType::Sampler => scalars = 1,
            SpirvType::SampledImage { .. } => scalars = 2,
            SpirvType::Vector { element, count, .. } => part(*element, *count)?,
            SpirvType::Matrix { column, columns, .. } => part(*column, *columns)?,
            SpirvType::Array { element, count, .. } => part(*element, *count)?,
            SpirvType::RuntimeArray { element, .. } => {
                part(*element, 0)?;
                if matches!(self.get(*element)?.ty, SpirvType::RuntimeArray { .. }) {
                    return Err("a runtime array of runtime arrays".into());
                }
                unsized_tail = true;
            }
            SpirvType::Struct { members } if members.is_empty() => empties = 1,
            SpirvType::Struct { members } => members.iter().try_for_each(|member| part(member.ty, 1))?,
            SpirvType::Pointer { class, .. } => (scalars, align) = (words_of_pointer(*class).len() as u32, 4),
            SpirvType::Void | SpirvType::Function { .. } => {}
        }
        if depth >= MAX_DEPTH {
            return Err(format!("types nest deeper than {MAX_DEPTH}"));
        }
        if nodes > MAX_NODES {
            return Err(format!("a type contains more than {MAX_NODES} others"));
        }
        // Empty structures take no memory, but compile time.
        if empties > MAX_SCALARS {
            return Err(format!("a type has more than {MAX_SCALARS} empty structures in it"));
        }
        Ok(Info { ty, scalars, depth: depth + 1, align, nodes, empties, unsized_tail, has_matrix, has_logical_pointer })
    }
}
