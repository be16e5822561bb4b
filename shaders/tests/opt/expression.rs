//! Expressions as text, `iadd(a, umin(b, 7))`: a kernel that stores one, and the expression that a kernel stores.
//!
//! `a` to `d` are integers that nothing is known about, `x` to `z` floats, `p` to `r` bools, `id` the local
//! invocation's index.

use spelter_shaders::ir::{
    Access, BindingData, BindingKind, BufferSpace, Builder, BuiltIn, InstData, Kernel, Op, Place, Type, Value, ValueDef,
};

/// Names of what is unknown, by the word of the push constants that holds it; bools are words that are a NaN.
pub(crate) const UNKNOWN: [(&str, Type); 10] = [
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
pub(crate) fn kernel(make: impl FnOnce(&mut Builder, &[Value]) -> Vec<Value>) -> Kernel {
    let mut kernel = Kernel::new("expression", [8, 2, 1]);
    let kind = BindingKind::StorageBuffer;
    let binding = kernel.bindings.push(BindingData {
        set: 0,
        binding: 0,
        kind,
        count: 1,
        min_bytes: 0,
        element_bytes: 0,
        read_only: false,
        image: None,
    });
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
pub(crate) fn parse(text: &str) -> Kernel {
    kernel(|builder, unknown| vec![Reader { builder, unknown, rest: text }.expression()])
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

    fn expression(&mut self) -> Value {
        let word = self.word();
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.rest = rest;
            return self.operation(word);
        }
        if let Some(place) = UNKNOWN.iter().position(|(name, _)| *name == word) {
            return self.unknown[place];
        }
        match word {
            "id" => self.builder.builtin(BuiltIn::LocalInvocationIndex, 0),
            "true" => self.builder.constant(true),
            "false" => self.builder.constant(false),
            _ if word.contains('.') => self.builder.constant(word.parse::<f32>().expect("a float")),
            _ => self.builder.constant(word.parse::<i64>().expect("a number") as u32),
        }
    }

    /// What follows `name(`, to the closing parenthesis.
    fn operation(&mut self, name: &str) -> Value {
        let mut args = vec![self.expression()];
        while let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            args.push(self.expression());
        }
        self.rest = self.rest.strip_prefix(')').expect("`)`");
        let (data, ty) = match (name, &args[..]) {
            ("select", &[condition, then, otherwise]) => {
                (InstData::Select { condition, then, otherwise }, self.builder.ty(then))
            }
            ("element", &[base, index, stride]) => {
                let stride = self.builder.kernel().constant(stride).expect("a constant") as u32;
                (InstData::Element { base, index, stride }, Type::I32)
            }
            (name, _) => {
                let op = Op::from_name(name).unwrap_or_else(|| panic!("no {name}"));
                (InstData::Pure { op, args: args.into_iter().collect() }, op.result())
            }
        };
        self.builder.push_value(data, ty)
    }
}

/// The first expression that a kernel of one block stores.
pub(crate) fn print(kernel: &Kernel) -> String {
    let insts = &kernel.blocks[kernel.layout[0]].insts;
    let stored = insts.iter().find_map(|&inst| match kernel.insts[inst] {
        InstData::Store { value, .. } => Some(value),
        _ => None,
    });
    let mut text = String::new();
    let text_of = stored.map(|stored| expression(kernel, stored));
    text += &text_of.unwrap_or_default();
    // A bool is stored as an integer.
    let inner = text.strip_prefix("bool_to_int(").and_then(|inner| inner.strip_suffix(')'));
    inner.map_or(text.clone(), str::to_owned)
}

/// A value as text.
pub(crate) fn expression(kernel: &Kernel, value: Value) -> String {
    let ValueDef::Result { inst, ty, .. } = kernel.values[value] else { return value.to_string() };
    let unknown = |offset: Value| UNKNOWN[kernel.constant(offset).expect("a constant") as usize / 4].0.to_owned();
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
