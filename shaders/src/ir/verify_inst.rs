//! Rules for single instructions: operand types and parameters.

use smallvec::SmallVec;

use super::{
    AtomicOp, BufferSpace, BuiltIn, InstData, Kernel, Place, Site, SiteAction, Type, Value, ValueDef, VariableSpace,
    Width,
};
use crate::image::ImageOp;
use crate::ssa;

type Operands = ssa::Operands<Kernel>;

/// The required types of an instruction's operands, or the rule that the instruction violates on its own.
pub(super) fn operand_types(kernel: &Kernel, data: &InstData) -> Result<Operands, String> {
    let mut operands = Operands::new();
    match *data {
        InstData::Const { ty, bits } => check_const(ty, bits)?,
        InstData::Pure { op, ref args } => {
            let params = op.params();
            if args.len() != params.len() {
                return Err(format!("{} takes {} operands, not {}", op.name(), params.len(), args.len()));
            }
            operands.extend(args.iter().copied().zip(params.iter().copied()));
        }
        InstData::Select { condition, then, otherwise } => {
            operands.push((condition, Type::Bool));
            operands.extend(kernel.values.get(then).map(|def| (otherwise, def.ty())));
        }
        InstData::BuiltIn { builtin, component } => check_component(builtin, component)?,
        InstData::Element { base, index, .. } => operands.extend([(base, Type::I32), (index, Type::I32)]),
        InstData::Buffer { binding, index } => {
            if !kernel.bindings.is_valid(binding) {
                return Err(format!("{binding} is not in the kernel"));
            }
            operands.push((index, Type::I32));
        }
        InstData::BufferSize { buffer } | InstData::BufferNumber { buffer } => operands.push((buffer, Type::Buffer)),
        InstData::BufferOf { number } => operands.push((number, Type::I32)),
        InstData::BufferAt { low, high } | InstData::BufferNear { low, high } => {
            operands.extend([(low, Type::I32), (high, Type::I32)]);
        }
        InstData::BufferOffset { buffer, low, high } => {
            operands.extend([(buffer, Type::Buffer), (low, Type::I32), (high, Type::I32)]);
        }
        InstData::Reaches { buffer, offset } => operands.extend([(buffer, Type::Buffer), (offset, Type::I32)]),
        InstData::ImageField { image, .. } => operands.push((image, Type::Buffer)),
        InstData::Image { ref op, image, sampler, ref args, .. } => {
            image_types(op, image, sampler, args, &mut operands)?;
        }
        InstData::Subgroup { op, ref args } => {
            op.check()?;
            let params: SmallVec<[Type; 2]> = op.params().into_iter().flatten().collect();
            if args.len() != params.len() {
                return Err(format!("subgroup.{} takes {} operands, not {}", op.name(), params.len(), args.len()));
            }
            operands.extend(args.iter().copied().zip(params));
        }
        InstData::Print { message, ref args } => {
            let message = kernel.messages.get(message as usize);
            let message = message.ok_or_else(|| "the message is not in the kernel".to_owned())?;
            let words: usize = message.operands.iter().map(|operand| operand.all_words()).sum();
            if args.len() != words + 3 {
                return Err(format!("the message takes {} words", words + 3));
            }
            operands.extend(args.iter().map(|&arg| (arg, Type::I32)));
        }
        InstData::HighWord { of } => {
            let is_wide = |inst| {
                matches!(kernel.insts.get(inst), Some(InstData::Atomic { wide: Some(_), .. } | InstData::Clock { .. }))
            };
            match kernel.values.get(of) {
                Some(&ValueDef::Result { inst, .. }) if is_wide(inst) => {}
                _ => return Err(format!("{of} is not what a 64-bit atomic or a clock gives")),
            }
            operands.push((of, Type::I32));
        }
        InstData::Load { ty, width, ref place, .. } => {
            in_memory(ty)?;
            wide_enough(kernel, width, ty, place)?;
            place_types(kernel, place, &mut operands)?;
        }
        InstData::Store { width, ref place, value, .. } => {
            if let Some(def) = kernel.values.get(value) {
                in_memory(def.ty())?;
                wide_enough(kernel, width, def.ty(), place)?;
            }
            writable(kernel, place)?;
            place_types(kernel, place, &mut operands)?;
        }
        InstData::Atomic { .. } => atomic_types(kernel, data, &mut operands)?,
        InstData::Check { site, ref place, .. } => {
            check_site(kernel, site, matches!(action(kernel, site), Some(SiteAction::Read(_) | SiteAction::Write(_))))?;
            shared(kernel, place)?;
            place_types(kernel, place, &mut operands)?;
        }
        InstData::CheckImage { site, ref op, image, sampler, ref args } => {
            check_site(kernel, site, matches!(action(kernel, site), Some(SiteAction::Read(_) | SiteAction::Write(_))))?;
            image_types(op, image, sampler, args, &mut operands)?;
        }
        InstData::Sync { .. } => sync_types(kernel, data, &mut operands)?,
        InstData::Branch { condition, .. } => operands.push((condition, Type::Bool)),
        InstData::Switch { selector, .. } => operands.push((selector, Type::I32)),
        InstData::Clock { .. }
        | InstData::Barrier { .. }
        | InstData::Fence { .. }
        | InstData::Jump { .. }
        | InstData::Return
        | InstData::Unreachable => {}
    }
    Ok(operands)
}

fn image_types(
    op: &ImageOp,
    image: Value,
    sampler: Option<Value>,
    args: &[Value],
    operands: &mut Operands,
) -> Result<(), String> {
    op.check()?;
    let params = op.params();
    if args.len() != params.len() || sampler.is_some() != op.has_sampler() {
        return Err(format!("image.{} has the wrong number of operands", op.name()));
    }
    operands.extend([image].into_iter().chain(sampler).map(|value| (value, Type::Buffer)));
    operands.extend(args.iter().copied().zip(params));
    Ok(())
}

fn action(kernel: &Kernel, site: Site) -> Option<SiteAction> {
    kernel.sites.get(site).map(|data| data.action)
}

fn check_site(kernel: &Kernel, site: Site, fits: bool) -> Result<(), String> {
    match kernel.sites.get(site) {
        None => Err(format!("{site} is not in the kernel")),
        Some(data) if !fits => Err(format!("{site} is `{data}`, which is another kind of instruction")),
        Some(_) => Ok(()),
    }
}

/// Only memory that others may access is checked.
fn shared(kernel: &Kernel, place: &Place) -> Result<(), String> {
    match *place {
        Place::Buffer { .. } => Ok(()),
        Place::Variable { variable, .. } => match kernel.variables.get(variable) {
            Some(data) if data.space == VariableSpace::Workgroup => Ok(()),
            _ => Err(format!("{variable} is not in workgroup memory")),
        },
        Place::Push { .. } => Err("push constants are not checked".into()),
    }
}

fn sync_types(kernel: &Kernel, data: &InstData, operands: &mut Operands) -> Result<(), String> {
    let &InstData::Sync { site, ref place, bytes, wrote } = data else { return Ok(()) };
    let action = action(kernel, site);
    let Some(place) = place else {
        let waits = matches!(action, Some(SiteAction::Fence { .. } | SiteAction::Barrier { .. }));
        return check_site(kernel, site, waits && wrote.is_none());
    };
    let exchanges = matches!(action, Some(SiteAction::Atomic { op: AtomicOp::CompareExchange, .. }));
    let is_atomic = matches!(action, Some(SiteAction::Atomic { .. }));
    check_site(kernel, site, is_atomic && wrote.is_some() == exchanges)?;
    if !matches!(bytes, 2 | 4 | 8) {
        return Err(format!("no atomic is on {bytes} bytes"));
    }
    shared(kernel, place)?;
    place_types(kernel, place, operands)?;
    operands.extend(wrote.map(|wrote| (wrote, Type::Bool)));
    Ok(())
}

fn check_const(ty: Type, bits: u64) -> Result<(), String> {
    let limit = match ty {
        Type::Bool => 1,
        Type::I32 | Type::F32 => u64::from(u32::MAX),
        Type::Buffer => return Err("constants of type buffer do not exist".into()),
    };
    if bits > limit { Err(format!("{bits:#x} is not a valid {ty}")) } else { Ok(()) }
}

fn check_component(builtin: BuiltIn, component: u8) -> Result<(), String> {
    let components = match builtin {
        BuiltIn::NumWorkgroups | BuiltIn::WorkgroupId | BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId => 3,
        BuiltIn::LocalInvocationIndex
        | BuiltIn::NumSubgroups
        | BuiltIn::SubgroupId
        | BuiltIn::SubgroupLocalInvocationId => 1,
    };
    if component < components { Ok(()) } else { Err(format!("{} has {components} components", builtin.name())) }
}

fn in_memory(ty: Type) -> Result<(), String> {
    if ty.bytes().is_some() { Ok(()) } else { Err(format!("memory holds no {ty}")) }
}

/// Sub-words are integers, and private memory has word accesses only.
fn wide_enough(kernel: &Kernel, width: Width, ty: Type, place: &Place) -> Result<(), String> {
    if width == Width::Word {
        return Ok(());
    }
    if ty != Type::I32 {
        return Err(format!("a {} is an i32, not {ty}", width.name()));
    }
    match place {
        Place::Variable { variable, .. }
            if kernel.variables.get(*variable).is_some_and(|data| data.space != VariableSpace::Workgroup) =>
        {
            Err(format!("{variable} is accessed by words only"))
        }
        _ => Ok(()),
    }
}

fn writable(kernel: &Kernel, place: &Place) -> Result<(), String> {
    match place {
        Place::Push { .. } => Err("push constants are constant".into()),
        Place::Buffer { space: BufferSpace::Uniform, .. } => Err("uniform buffers are constant".into()),
        Place::Variable { variable, .. }
            if kernel.variables.get(*variable).is_some_and(|data| data.space == VariableSpace::Constant) =>
        {
            Err(format!("{variable} is constant"))
        }
        Place::Buffer { .. } | Place::Variable { .. } => Ok(()),
    }
}

fn place_types(kernel: &Kernel, place: &Place, operands: &mut Operands) -> Result<(), String> {
    match *place {
        Place::Buffer { buffer, offset, .. } => operands.extend([(buffer, Type::Buffer), (offset, Type::I32)]),
        Place::Push { offset } => operands.push((offset, Type::I32)),
        Place::Variable { variable, offset } => {
            if !kernel.variables.is_valid(variable) {
                return Err(format!("{variable} is not in the kernel"));
            }
            operands.push((offset, Type::I32));
        }
    }
    Ok(())
}

fn atomic_types(kernel: &Kernel, data: &InstData, operands: &mut Operands) -> Result<(), String> {
    let &InstData::Atomic { op, ref place, value, comparator, wide, .. } = data else { return Ok(()) };
    writable(kernel, place)?;
    place_types(kernel, place, operands)?;
    if value.is_some() == op.is_load() {
        return Err(format!("atomic.{} has the wrong number of operands", op.name()));
    }
    if comparator.is_some() != (op == AtomicOp::CompareExchange) {
        return Err(format!("atomic.{} has the wrong number of operands", op.name()));
    }
    if wide.is_some_and(|[high, other]| high.is_some() != value.is_some() || other.is_some() != comparator.is_some()) {
        return Err(format!("atomic64.{} has the wrong number of operands", op.name()));
    }
    if wide.is_some() && (op.is_half() || op == AtomicOp::FAddHalf) {
        return Err(format!("there is no atomic64.{}", op.name()));
    }
    if wide.is_some() || op.is_float() || op.is_half() {
        // Private memory is not shared: 64-bit, 16-bit and float atomics on it are rejected.
        wide_enough(kernel, Width::Half, Type::I32, place)?;
    }
    let highs = wide.into_iter().flatten().flatten();
    operands.extend(value.into_iter().chain(comparator).chain(highs).map(|operand| (operand, Type::I32)));
    Ok(())
}
