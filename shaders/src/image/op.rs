//! Image instructions whose format or filter is known only when the kernel runs: variants and operands.

use smallvec::SmallVec;

use super::format::Class;

/// An image instruction. Operands in this order: the image, the sampler (of samples and gathers), then
/// [`ImageOp::params`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageOp {
    /// The operation.
    pub kind: Kind,
    /// Dimensionality of the image.
    pub dim: Dim,
    /// Whether the last coordinate is an array layer.
    pub arrayed: bool,
    /// Type of the texels in the shader.
    pub class: Class,
    /// Whether texels are compared with a reference.
    pub dref: bool,
    /// Form of the level-of-detail operand.
    pub lod: LodOperand,
    /// Texel offsets.
    pub offsets: Offsets,
    /// Whether there is a minimum level of detail.
    pub min_lod: bool,
    /// Component of the texel that is the result: 0 to 3.
    pub component: u8,
}

/// Operation of an image instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads one texel by integer coordinates: `OpImageFetch`, and `OpImageRead` without a format.
    Read,
    /// Stores a texel: `OpImageWrite` without a format.
    Write,
    /// `OpImageSample…ExplicitLod`.
    Sample,
    /// `OpImageGather`, `OpImageDrefGather`: one component of four texels.
    Gather,
}

/// Dimensionality of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// 1D.
    D1,
    /// 2D.
    D2,
    /// 3D.
    D3,
    /// Six faces of a cube.
    Cube,
    /// A texel buffer.
    Buffer,
}

/// Form of the level-of-detail operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LodOperand {
    /// Level 0.
    None,
    /// Explicit level.
    Lod,
    /// Derivatives of the coordinates.
    Grad,
}

/// Texel offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offsets {
    /// None.
    None,
    /// One offset for all texels.
    One,
    /// One offset for each texel of a gather.
    Four,
}

impl Dim {
    /// Number of coordinates without the layer; of a cube, components of the direction.
    pub fn coordinates(self) -> usize {
        match self {
            Self::D1 | Self::Buffer => 1,
            Self::D2 => 2,
            Self::D3 | Self::Cube => 3,
        }
    }

    /// All dimensionalities.
    pub(super) const ALL: [Self; 5] = [Self::D1, Self::D2, Self::D3, Self::Cube, Self::Buffer];

    /// Parses [`Dim::name`].
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dim| dim.name() == name)
    }

    /// The name in the text forms.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::D1 => "1d",
            Self::D2 => "2d",
            Self::D3 => "3d",
            Self::Cube => "cube",
            Self::Buffer => "buffer",
        }
    }
}

impl ImageOp {
    /// Operand rows before those of `params` in a call: active lanes, images, samplers.
    pub(crate) const FIRST_ARG: u32 = 3;

    /// An instruction without any of the optional operands.
    pub fn new(kind: Kind, dim: Dim, arrayed: bool, class: Class) -> Self {
        let (lod, offsets) = (LodOperand::None, Offsets::None);
        Self { kind, dim, arrayed, class, dref: false, lod, offsets, min_lod: false, component: 0 }
    }

    /// Whether the second operand is a sampler.
    pub fn has_sampler(&self) -> bool {
        matches!(self.kind, Kind::Sample | Kind::Gather)
    }

    /// Classes of the operands after image and sampler: coordinates, layer, reference, gathered component, level of
    /// detail or derivatives (all along x first), offsets, minimum level, texel.
    pub(crate) fn operands(&self) -> SmallVec<[Class; 16]> {
        let coordinate = if self.has_sampler() { Class::Float } else { Class::Sint };
        let dims = self.dim.coordinates();
        let mut operands = SmallVec::new();
        let mut add = |class: Class, count: usize| operands.extend(std::iter::repeat_n(class, count));
        add(coordinate, dims + usize::from(self.arrayed));
        add(Class::Float, usize::from(self.dref));
        add(Class::Sint, usize::from(self.kind == Kind::Gather && !self.dref));
        match self.lod {
            LodOperand::None => {}
            LodOperand::Lod => add(coordinate, 1),
            LodOperand::Grad => add(Class::Float, 2 * dims),
        }
        match self.offsets {
            Offsets::None => {}
            Offsets::One => add(Class::Sint, dims),
            Offsets::Four => add(Class::Sint, 8),
        }
        add(Class::Float, usize::from(self.min_lod));
        if self.kind == Kind::Write {
            add(self.class, 4);
        }
        operands
    }

    /// Checks the combination of variants.
    pub fn check(&self) -> Result<(), &'static str> {
        let sampled = self.has_sampler();
        if self.component > 3 {
            return Err("texels have four components");
        }
        if self.dim == Dim::Buffer && (sampled || self.arrayed || self.lod != LodOperand::None) {
            return Err("texel buffers have neither samplers nor layers nor levels");
        }
        if self.dim == Dim::D3 && self.arrayed {
            return Err("3D images have no layers");
        }
        if self.dim == Dim::Cube && (!sampled || self.offsets != Offsets::None) {
            return Err("cubes are sampled, without offsets");
        }
        if self.kind == Kind::Gather && !matches!(self.dim, Dim::D2 | Dim::Cube) {
            return Err("gathers are from 2D images and cubes");
        }
        if self.dref && (!sampled || self.class != Class::Float) {
            return Err("comparisons are made by samplers of floats");
        }
        if !sampled && self.lod == LodOperand::Grad || self.kind != Kind::Sample && self.min_lod {
            return Err("levels by derivatives are for samples");
        }
        if matches!(self.kind, Kind::Gather | Kind::Write) && self.lod != LodOperand::None {
            return Err("gathers and writes have no level");
        }
        if self.offsets == Offsets::Four && self.kind != Kind::Gather {
            return Err("four offsets are for gathers");
        }
        Ok(())
    }

    /// The name in the text forms, after `image.`: `sample.2d_array.float.dref.lod.offset.0`.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Sample => "sample",
            Kind::Gather => "gather",
        };
        let array = if self.arrayed { "_array" } else { "" };
        let mut name = format!("{kind}.{}{array}.{}", self.dim.name(), self.class.name());
        for flag in FLAGS.iter().filter(|(_, has, _)| has(self)) {
            name.push('.');
            name.push_str(flag.0);
        }
        if self.kind != Kind::Write {
            name.push_str(&format!(".{}", self.component));
        }
        name
    }

    /// Parses [`ImageOp::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        let kind = match parts.next()? {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "sample" => Kind::Sample,
            "gather" => Kind::Gather,
            _ => return None,
        };
        let dim = parts.next()?;
        let (dim, arrayed) = dim.strip_suffix("_array").map_or((dim, false), |dim| (dim, true));
        let (dim, class) = (Dim::from_name(dim)?, Class::from_name(parts.next()?)?);
        let mut op = Self::new(kind, dim, arrayed, class);
        for part in parts {
            match FLAGS.iter().find(|flag| flag.0 == part) {
                Some((_, _, set)) => set(&mut op),
                None => op.component = part.parse().ok()?,
            }
        }
        (op.name() == name).then_some(op)
    }
}

type Flag = (&'static str, fn(&ImageOp) -> bool, fn(&mut ImageOp));

const FLAGS: [Flag; 6] = [
    ("dref", |op| op.dref, |op| op.dref = true),
    ("lod", |op| op.lod == LodOperand::Lod, |op| op.lod = LodOperand::Lod),
    ("grad", |op| op.lod == LodOperand::Grad, |op| op.lod = LodOperand::Grad),
    ("offset", |op| op.offsets == Offsets::One, |op| op.offsets = Offsets::One),
    ("offsets", |op| op.offsets == Offsets::Four, |op| op.offsets = Offsets::Four),
    ("min_lod", |op| op.min_lod, |op| op.min_lod = true),
];
