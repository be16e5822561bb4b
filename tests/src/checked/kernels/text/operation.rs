//! The instructions of a random kernel, each with its line.

use spelter_shaders::ir::{AccessSite, AtomicOp, Scope, Semantics, Site, SiteAction};

use super::super::super::operations::Rules;
use super::super::launch::line;
use super::super::{Home, Instruction};
use super::{Writer, name};

/// Bits of semantics that only the Vulkan memory model has.
const MAKES: u32 = Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE;

const ORDERS: u32 = 0x2 | 0x4 | 0x8 | 0x10;
const CLASSES: u32 = 0x40 | 0x100 | 0x800;

/// What an access names.
struct Operand {
    home: Home,
    /// The pointer; of texels the coordinate.
    place: String,
    /// The type of the value.
    ty: &'static str,
}

impl Writer<'_> {
    /// The instruction itself.
    pub(super) fn operation(&mut self, site: Site, instruction: &Instruction, word: Option<&str>) {
        let operand = instruction.access.map(|(home, place)| {
            let element = self.element(home, place, word);
            self.operand(home, element)
        });
        let value = self.constant(instruction.value);
        let mark = format!("OpLine %file {} 1", line(site));
        match (instruction.action, operand) {
            (SiteAction::Read(access), Some(operand)) => self.read(&mark, access, &operand),
            (SiteAction::Write(access), Some(operand)) => self.write(&mark, access, &operand, &value),
            (SiteAction::Atomic { .. }, Some(operand)) => self.atomic(&mark, instruction, operand),
            (SiteAction::Barrier { execution, memory, semantics }, _) => {
                let (execution, memory) = (self.scope(execution), self.scope(memory));
                let semantics = self.semantics(semantics);
                self.line(format_args!("{mark}\nOpControlBarrier {execution} {memory} {semantics}\nOpNoLine"));
            }
            (SiteAction::Fence { scope, semantics }, _) => {
                let (scope, semantics) = (self.scope(scope), self.semantics(semantics));
                self.line(format_args!("{mark}\nOpMemoryBarrier {scope} {semantics}\nOpNoLine"));
            }
            (_, None) => {}
        }
    }

    /// An element of a memory.
    fn operand(&mut self, home: Home, element: String) -> Operand {
        let zero = self.constant(0);
        if home == Home::Texels {
            let place = if self.kernel.texel_buffer {
                element
            } else {
                let coordinate = self.name("coordinate");
                self.line(format_args!("{coordinate} = OpCompositeConstruct %u32x2 {element} {zero}"));
                coordinate
            };
            return Operand { home, place, ty: "%u32" };
        }
        let place = self.name("pointer");
        let has_elements = home == Home::Second && self.element_bytes().is_some();
        let chain = match home {
            Home::Tile | Home::Other => format!("%p_tile %{} {element}", name(home)),
            _ if has_elements => format!("%p_element %second {zero} {element}"),
            _ => format!("%p_word %{} {zero} {element}", name(home)),
        };
        self.line(format_args!("{place} = OpAccessChain {chain}"));
        Operand { home, place, ty: if has_elements { "%element" } else { "%u32" } }
    }

    fn read(&mut self, mark: &str, access: AccessSite, operand: &Operand) {
        let Operand { home, place, ty } = operand;
        let read = self.name("read");
        if *home == Home::Texels {
            let operands = self.image_operands(access, "MakeTexelVisible");
            let [image, texel] = ["image", "texel"].map(|name| self.name(name));
            self.line(format_args!("{image} = OpLoad %image %texels"));
            self.line(format_args!("{mark}\n{texel} = OpImageRead %u32x4 {image} {place}{operands}\nOpNoLine"));
            self.line(format_args!("{read} = OpCompositeExtract %u32 {texel} 0"));
        } else {
            let operands = self.memory_operands(access, "MakePointerVisible");
            self.line(format_args!("{mark}\n{read} = OpLoad {ty} {place}{operands}\nOpNoLine"));
        }
        self.add(&read, ty);
    }

    fn write(&mut self, mark: &str, access: AccessSite, operand: &Operand, value: &str) {
        let Operand { home, place, ty } = operand;
        if *home == Home::Texels {
            let operands = self.image_operands(access, "MakeTexelAvailable");
            let [image, texel] = ["image", "texel"].map(|name| self.name(name));
            self.line(format_args!("{image} = OpLoad %image %texels"));
            self.line(format_args!("{texel} = OpCompositeConstruct %u32x4 {value} {value} {value} {value}"));
            self.line(format_args!("{mark}\nOpImageWrite {image} {place} {texel}{operands}\nOpNoLine"));
            return;
        }
        let operands = self.memory_operands(access, "MakePointerAvailable");
        let value = self.converted(ty, value);
        self.line(format_args!("{mark}\nOpStore {place} {value}{operands}\nOpNoLine"));
    }

    fn atomic(&mut self, mark: &str, instruction: &Instruction, Operand { home, mut place, ty }: Operand) {
        let SiteAction::Atomic { op, scope, semantics, unequal, .. } = instruction.action else { return };
        if home == Home::Texels {
            let [pointer, sample] = [self.name("pointer"), self.constant(0)];
            self.line(format_args!("{pointer} = OpImageTexelPointer %p_texel %texels {place} {sample}"));
            place = pointer;
        }
        let value = self.constant(instruction.value);
        let value = self.converted(ty, &value);
        let (scope, semantics, unequal) = (self.scope(scope), self.semantics(semantics), self.semantics(unequal));
        if op == AtomicOp::Store {
            self.line(format_args!("{mark}\nOpAtomicStore {place} {scope} {semantics} {value}\nOpNoLine"));
            return;
        }
        let old = self.name("old");
        let operation = match op {
            AtomicOp::Load => format!("OpAtomicLoad {ty} {place} {scope} {semantics}"),
            AtomicOp::Exchange => format!("OpAtomicExchange {ty} {place} {scope} {semantics} {value}"),
            AtomicOp::CompareExchange => {
                let new = self.constant(instruction.value + 1);
                let new = self.converted(ty, &new);
                format!("OpAtomicCompareExchange {ty} {place} {scope} {semantics} {unequal} {new} {value}")
            }
            _ => format!("OpAtomicIAdd {ty} {place} {scope} {semantics} {value}"),
        };
        self.line(format_args!("{mark}\n{old} = {operation}\nOpNoLine"));
        self.add(&old, ty);
    }

    /// The memory operands of an access; `make` is its availability or visibility operation.
    fn memory_operands(&mut self, access: AccessSite, make: &str) -> String {
        self.operands(access, ["Volatile", make, "NonPrivatePointer"])
    }

    /// The same of texels.
    fn image_operands(&mut self, access: AccessSite, make: &str) -> String {
        self.operands(access, [make, "NonPrivateTexel", "VolatileTexel"])
    }

    /// Those of the names that are set: none by the rules of GLSL450.
    fn operands(&mut self, access: AccessSite, names: [&str; 3]) -> String {
        if self.kernel.rules != Rules::Vulkan {
            return String::new();
        }
        let scope = access.scope.map(|scope| self.scope(scope));
        let is_set = |name: &&str| match name.get(..3) {
            Some("Vol") => access.volatile,
            Some("Non") => access.non_private,
            _ => scope.is_some(),
        };
        let names: Vec<_> = names.into_iter().filter(is_set).collect();
        let scope = scope.as_ref().map(|scope| format!(" {scope}")).unwrap_or_default();
        if names.is_empty() { String::new() } else { format!(" {}{scope}", names.join("|")) }
    }

    /// A word as a value of a type.
    fn converted(&mut self, ty: &str, word: &str) -> String {
        if ty == "%u32" {
            return word.to_owned();
        }
        let converted = self.name("converted");
        self.line(format_args!("{converted} = OpUConvert {ty} {word}"));
        converted
    }

    /// Adds what was read to the sum.
    fn add(&mut self, value: &str, ty: &str) {
        let mut value = value.to_owned();
        if ty != "%u32" {
            let word = self.name("word");
            self.line(format_args!("{word} = OpUConvert %u32 {value}"));
            value = word;
        }
        let [old, new] = ["old", "new"].map(|name| self.name(name));
        self.line(format_args!("{old} = OpLoad %u32 %sum\n{new} = OpIAdd %u32 {old} {value}\nOpStore %sum {new}"));
    }

    fn scope(&mut self, scope: Scope) -> String {
        self.constant(match scope {
            Scope::CrossDevice => 0,
            Scope::Device => 1,
            Scope::Workgroup => 2,
            Scope::Subgroup => 3,
            Scope::Invocation => 4,
            Scope::QueueFamily => 5,
        })
    }

    /// Semantics as a valid module has them: what takes no effect is left out.
    fn semantics(&mut self, Semantics(bits): Semantics) -> String {
        let implied = if self.kernel.rules == Rules::Vulkan { 0 } else { MAKES };
        let effective = bits & ORDERS != 0 && bits & CLASSES != 0;
        self.constant(if effective { bits & !implied } else { 0 })
    }
}
