//! Expressions as text, `iadd(a, umin(b, 7))`: a kernel that stores one, and the expression that a kernel stores.
//!
//! `a` to `d` are integers that nothing is known about, `x` to `z` floats, `p` to `r` bools, `id` the local
//! invocation's index. Tests of passes that rewrite expressions (`passes/**/*.expr`) are written in it.

use spelter_shaders::ir::{
    Access, BindingData, BufferSpace, Builder, BuiltIn, InstData, Kernel, Op, Place, Type, Value, ValueDef,
};

/// Names of what is unknown, by the word of the push constants that holds it; bools are words that are a NaN.
pub const UNKNOWN: [(&str, Type); 10] = [
    ("a", Type::I32),
    ("b", Type::I32),
    ("c", Type::I32),
    ("d", Type::I32),
    ("x", Type::F32),
    ("y", Type::F32),
    ("z", Type::F32),
    ("p", Type::Bool),
    ("q", Type::Bool),
    ("r", Type::Bool),
];

/// A kernel that stores what `make` builds of the unknown values.
pub fn kernel(make: impl FnOnce(&mut Builder, &[Value]) -> Vec<Value>) -> Kernel {
    let mut kernel = Kernel::new("expression", [8, 2, 1]);
    let binding = kernel.bindings.push(BindingData::storage(0, 0));
    kernel.push_bytes = 40;
    let mut builder = Builder::new(kernel);
    let zero = builder.constant(0u32);
    let unknown: Vec<Value> = UNKNOWN
        .iter()
        .zip(0u32..)
        .map(|(&(_, ty), place)| {
            let offset = builder.constant(place * 4);
            let loaded = if ty == Type::I32 { Type::I32 } else { Type::F32 };
            let value = builder.load(loaded, Place::Push { offset }, Access::default());
            // No rule looks into this.
            if ty == Type::Bool { builder.pure(Op::IsNan, &[value]) } else { value }
        })
        .collect();
    let buffer = builder.push_value(InstData::Buffer { binding, index: zero }, Type::Buffer);
    for (place, value) in (0u32..).zip(make(&mut builder, &unknown)) {
        let value = if builder.ty(value) == Type::Bool { builder.pure(Op::BoolToInt, &[value]) } else { value };
        let offset = builder.constant(place * 4);
        builder.store(Place::Buffer { space: BufferSpace::Storage, buffer, offset }, value, Access::default());
    }
    builder.push(InstData::Return);
    builder.finish()
}

/// A kernel that stores the expression.
///
/// # Errors
///
/// The text is no expression.
pub fn parse(text: &str) -> Result<Kernel, String> {
    let mut problem = None;
    let kernel = kernel(|builder, unknown| {
        let mut reader = Reader { builder, unknown, rest: text };
        match reader.expression() {
            Ok(value) if reader.rest.trim().is_empty() => vec![value],
            Ok(_) => {
                problem = Some(format!("{:?} follows the expression", reader.rest));
                Vec::new()
            }
            Err(error) => {
                problem = Some(error);
                Vec::new()
            }
        }
    });
    problem.map_or(Ok(kernel), |problem| Err(format!("{text}: {problem}")))
}

struct Reader<'a, 'b> {
    builder: &'a mut Builder,
    unknown: &'a [Value],
    rest: &'b str,
}

impl<'b> Reader<'_, 'b> {
    fn word(&mut self) -> &'b str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| "(), ".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn expression(&mut self) -> Result<Value, String> {
        let word = self.word();
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.rest = rest;
            return self.operation(word);
        }
        if let Some(place) = UNKNOWN.iter().position(|(name, _)| *name == word) {
            return Ok(self.unknown[place]);
        }
        let no_number = || format!("{word:?} is neither a value nor a number");
        Ok(match word {
            "id" => self.builder.builtin(BuiltIn::LocalInvocationIndex, 0),
            "true" => self.builder.constant(true),
            "false" => self.builder.constant(false),
            _ if word.contains('.') => self.builder.constant(word.parse::<f32>().map_err(|_| no_number())?),
            _ => self.builder.constant(word.parse::<i64>().map_err(|_| no_number())? as u32),
        })
    }

    /// What follows `name(`, to the closing parenthesis.
    fn operation(&mut self, name: &str) -> Result<Value, String> {
        let mut args = vec![self.expression()?];
        while let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            args.push(self.expression()?);
        }
        self.rest = self.rest.strip_prefix(')').ok_or_else(|| format!("`{name}(` has no `)`"))?;
        let (data, ty) = match (name, &args[..]) {
            ("select", &[condition, then, otherwise]) => {
                (InstData::Select { condition, then, otherwise }, self.builder.ty(then))
            }
            ("element", &[base, index, stride]) => {
                let stride = self.builder.kernel().constant(stride).ok_or("the stride of `element` is no constant")?;
                (InstData::Element { base, index, stride: stride as u32 }, Type::I32)
            }
            (name, _) => {
                let op = Op::from_name(name).ok_or_else(|| format!("there is no operation {name:?}"))?;
                let found: Vec<Type> = args.iter().map(|&arg| self.builder.ty(arg)).collect();
                if found != op.params() {
                    return Err(format!("{name} takes {:?}, not {found:?}", op.params()));
                }
                (InstData::Pure { op, args: args.into_iter().collect() }, op.result())
            }
        };
        Ok(self.builder.push_value(data, ty))
    }
}

/// The first expression that a kernel of one block stores.
pub fn print(kernel: &Kernel) -> String {
    let insts = &kernel.blocks[kernel.layout[0]].insts;
    let stored = insts.iter().find_map(|&inst| match kernel.insts[inst] {
        InstData::Store { value, .. } => Some(value),
        _ => None,
    });
    let text = stored.map(|stored| expression(kernel, stored)).unwrap_or_default();
    // A bool is stored as an integer.
    let inner = text.strip_prefix("bool_to_int(").and_then(|inner| inner.strip_suffix(')'));
    inner.map(str::to_owned).unwrap_or(text)
}

/// A value as text.
fn expression(kernel: &Kernel, value: Value) -> String {
    let ValueDef::Result { inst, ty, .. } = kernel.values[value] else { return value.to_string() };
    let unknown = |offset: Value| {
        let place = kernel.constant(offset).and_then(|offset| UNKNOWN.get(offset as usize / 4));
        place.map_or_else(|| format!("push[{offset}]"), |(name, _)| (*name).to_owned())
    };
    match &kernel.insts[inst] {
        InstData::Const { bits, .. } => match ty {
            Type::Bool => (*bits != 0).to_string(),
            Type::F32 => format!("{:?}", f32::from_bits(*bits as u32)),
            _ => (*bits as u32).cast_signed().to_string(),
        },
        InstData::Load { place: Place::Push { offset }, .. } => unknown(*offset),
        InstData::Pure { op: Op::IsNan, args } if is_bool_word(kernel, args[0]) => expression(kernel, args[0]),
        InstData::Pure { op, args } => {
            let args: Vec<_> = args.iter().map(|&arg| expression(kernel, arg)).collect();
            format!("{}({})", op.name(), args.join(", "))
        }
        InstData::Select { condition, then, otherwise } => {
            let args = [condition, then, otherwise].map(|&arg| expression(kernel, arg));
            format!("select({})", args.join(", "))
        }
        InstData::Element { base, index, stride } => {
            format!("element({}, {}, {stride})", expression(kernel, *base), expression(kernel, *index))
        }
        InstData::BuiltIn { .. } => "id".to_owned(),
        other => other.to_string(),
    }
}

fn is_bool_word(kernel: &Kernel, value: Value) -> bool {
    matches!(&*expression(kernel, value), "p" | "q" | "r")
}
