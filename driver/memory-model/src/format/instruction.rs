//! Parses the instructions of `.litmus` texts, and resolves the names in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Error;
use super::lex::shown;
use super::tokens::{Cursor, Token, TokenKind};
use crate::event::{Access, Action, Class, Classes, Domain, Location, Operation, Scope};
use crate::program::{
    Barrier, Binary, BranchCondition, Comparison, Expression, Instruction, InstructionKind, Operand, Place, Program,
    Register,
};

/// References by name, and control barriers by number.
#[derive(Default)]
pub(super) struct SymbolTable {
    /// Name → reference and object.
    references: BTreeMap<String, (u32, u32)>,
    barriers: BTreeMap<(i64, i64), u32>,
    /// The registers that instructions read since this list was last taken, with their places.
    pub(super) read: Vec<(Register, Place)>,
    /// The locations that instructions name and the text does not initialise, since this list was last taken.
    pub(super) implicit: Vec<(String, Place)>,
    /// The numbers of the next reference and the next object.
    next: (u32, u32),
}

impl SymbolTable {
    /// The object of a location.
    pub(super) fn object(&self, name: &str) -> Option<u32> {
        self.references.get(name).map(|known| known.1)
    }

    /// A location with an initial value.
    pub(super) fn initialise(&mut self, program: &mut Program, name: &str, value: i64) -> Result<(), String> {
        if self.references.contains_key(name) {
            return Err(format!("`{}` is already defined", shown(name)));
        }
        self.add(name);
        program.references.push(name.to_owned());
        program.locations.push((name.to_owned(), value));
        Ok(())
    }

    /// A new location: its reference and object.
    fn add(&mut self, name: &str) -> (u32, u32) {
        let (reference, object) = self.next;
        self.references.insert(name.to_owned(), (reference, object));
        self.next = (reference + 1, object + 1);
        (reference, object)
    }

    /// A second reference to the location of `of`.
    pub(super) fn alias(
        &mut self,
        program: &mut Program,
        name: (&str, Token<'_>),
        of: (&str, Token<'_>),
    ) -> Result<(), Error> {
        if self.references.contains_key(name.0) {
            return Err(name.1.error(format!("`{}` is already defined", shown(name.0))));
        }
        let known = self.object(of.0);
        let object = known.ok_or_else(|| {
            of.1.error(format!("there is no location `{}`: the text begins with {{ {0}=0; }}", shown(of.0)))
        })?;
        let reference = self.next.0;
        self.references.insert(name.0.to_owned(), (reference, object));
        self.next.0 += 1;
        program.references.push(name.0.to_owned());
        Ok(())
    }

    /// The reference and object that an instruction names.
    fn reference(&mut self, name: &str, token: Token<'_>) -> (u32, u32) {
        if let Some(known) = self.references.get(name) {
            return *known;
        }
        self.implicit.push((name.to_owned(), token.place));
        self.add(name)
    }
}

/// A parsed instruction, and the label of its branch.
pub(super) struct Read {
    pub(super) instruction: Instruction,
    pub(super) label: Option<(String, Place)>,
}

pub(super) const ARITHMETIC: [(&str, Binary); 7] = [
    ("add", Binary::Add),
    ("sub", Binary::Sub),
    ("mul", Binary::Mul),
    ("div", Binary::Div),
    ("and", Binary::And),
    ("or", Binary::Or),
    ("xor", Binary::Xor),
];

pub(super) const BRANCHES: [(&str, Comparison); 6] = [
    ("beq", Comparison::Equal),
    ("bne", Comparison::NotEqual),
    ("blt", Comparison::Less),
    ("bgt", Comparison::Greater),
    ("ble", Comparison::LessEqual),
    ("bge", Comparison::GreaterEqual),
];

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// Parses an instruction whose first word has been read.
pub(super) fn instruction<'a>(
    cursor: &mut Cursor<'a>,
    names: &mut SymbolTable,
    first: &'a str,
    token: Token<'a>,
) -> Result<Read, Error> {
    let place = token.place;
    let plain = |kind| Ok(Read { instruction: Instruction { place, kind }, label: None });
    if let Some(binary) = find(&ARITHMETIC, first) {
        let destination = register(cursor)?;
        cursor.sign(",")?;
        let left = operand(cursor, names)?;
        cursor.sign(",")?;
        let value = Expression::Binary(binary, left, operand(cursor, names)?);
        return plain(InstructionKind::Compute { destination, value });
    }
    let branch = find(&BRANCHES, first);
    if first == "goto" || branch.is_some() {
        let mut condition = None;
        if let Some(comparison) = branch {
            let left = operand(cursor, names)?;
            cursor.sign(",")?;
            let right = operand(cursor, names)?;
            cursor.sign(",")?;
            condition = Some(BranchCondition { comparison, left, right });
        }
        let (label, token) = cursor.name("a label")?;
        let kind = InstructionKind::Branch { condition, target: 0 };
        return Ok(Read { instruction: Instruction { place, kind }, label: Some((label.to_owned(), token.place)) });
    }
    let tokens = MnemonicTokens::read(cursor, first, token)?;
    match first {
        "st" | "ld" | "rmw" => plain(tokens.access(cursor, names)?),
        "membar" => plain(execute(tokens.operation(Action::Fence)?)),
        "cbar" => plain(tokens.control_barrier(cursor, names)?),
        "avdevice" => plain(execute(tokens.operation(Action::Available(Domain::Device))?)),
        "visdevice" => plain(execute(tokens.operation(Action::Visible(Domain::Device))?)),
        _ => Err(token.error(format!("`{}` is not an instruction", shown(first)))),
    }
}

fn execute(operation: Operation) -> InstructionKind {
    InstructionKind::Execute { operation, destination: None, value: None, barrier: None }
}

fn register(cursor: &mut Cursor<'_>) -> Result<Register, Error> {
    Ok(Register(Arc::from(cursor.name("a register")?.0)))
}

fn operand(cursor: &mut Cursor<'_>, names: &mut SymbolTable) -> Result<Operand, Error> {
    if let TokenKind::Name(name) = cursor.peek().kind {
        let register = Register(Arc::from(name));
        names.read.push((register.clone(), cursor.next().place));
        return Ok(Operand::Register(register));
    }
    cursor.number("a register or a number").map(Operand::Constant)
}

/// The parts of an instruction's name, which dots separate.
struct MnemonicTokens<'a> {
    kind: &'a str,
    place: Token<'a>,
    seen: Vec<(&'a str, Token<'a>)>,
}

const ACCESS: [&str; 4] = ["atom", "nonpriv", "av", "vis"];
const BARRIER: [&str; 6] = ["acq", "rel", "acq_rel", "rlx", "semav", "semvis"];

impl<'a> MnemonicTokens<'a> {
    fn read(cursor: &mut Cursor<'a>, kind: &'a str, place: Token<'a>) -> Result<Self, Error> {
        let mut tokens = Self { kind, place, seen: vec![] };
        let device = matches!(kind, "avdevice" | "visdevice");
        let access = matches!(kind, "st" | "ld" | "rmw");
        while cursor.takes(".") {
            let (name, token) = cursor.name("a part of an instruction")?;
            let is_class = |prefix: &str| class(name, prefix).is_some();
            let known = match name {
                "sg" | "wg" | "qf" | "dv" => !device,
                _ if ACCESS.contains(&name) || is_class("sc") => access,
                _ if BARRIER.contains(&name) || is_class("semsc") => !device,
                _ => kind == "rmw" && find(&ARITHMETIC, name).is_some(),
            };
            if name == "priv" && access {
                let message = "an access is private unless it is atom, av, vis or nonpriv: leave `priv` out";
                return Err(token.error(message));
            }
            if !known {
                return Err(token.error(format!("`{}` is not a part of `{kind}`", shown(name))));
            }
            if tokens.has(name) {
                return Err(token.error(format!("`{}` appears twice", shown(name))));
            }
            tokens.seen.push((name, token));
        }
        Ok(tokens)
    }

    fn has(&self, name: &str) -> bool {
        self.seen.iter().any(|token| token.0 == name)
    }

    fn one<T>(&self, what: &str, of: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Error> {
        let mut found = None;
        for (name, token) in &self.seen {
            if let Some(value) = of(name)
                && found.replace(value).is_some()
            {
                return Err(token.error(format!("an instruction has one {what}, not two")));
            }
        }
        Ok(found)
    }

    fn operation(&self, action: Action) -> Result<Operation, Error> {
        let scopes =
            [("sg", Scope::Subgroup), ("wg", Scope::Workgroup), ("qf", Scope::QueueFamily), ("dv", Scope::Device)];
        self.one("memory order", |name| ["acq", "rel", "acq_rel", "rlx"].contains(&name).then_some(()))?;
        let semantics: Classes = self.seen.iter().filter_map(|(name, _)| class(name, "semsc")).collect();
        let mut operation = Operation {
            action,
            acquire: self.has("acq") || self.has("acq_rel"),
            release: self.has("rel") || self.has("acq_rel"),
            semantics,
            scope: self.one("scope", |name| find(&scopes, name))?,
            make_available: self.has("semav"),
            make_visible: self.has("semvis"),
        };
        operation.complete();
        Ok(operation)
    }

    fn access(&self, cursor: &mut Cursor<'_>, names: &mut SymbolTable) -> Result<InstructionKind, Error> {
        let Some(class) = self.one("storage class", |name| class(name, "sc"))? else {
            return Err(self.place.error("an access has a storage class, sc0 to sc3"));
        };
        let binary = self.one("operation", |name| find(&ARITHMETIC, name))?;
        let (reads, writes) = (self.kind != "st", self.kind != "ld");
        let mut destination = None;
        let (mut name, mut token) = cursor.name("a register or a location")?;
        let mut value = None;
        match self.kind {
            "st" => {
                cursor.sign(",")?;
                value = Some(Expression::Operand(operand(cursor, names)?));
            }
            "ld" => {
                cursor.sign(",")?;
                destination = Some(Register(Arc::from(name)));
                (name, token) = cursor.name("a location")?;
            }
            _ => {
                cursor.sign(",")?;
                let second = cursor.peek();
                if cursor.tokens.get(cursor.at + 1).is_some_and(|token| token.kind == TokenKind::Sign(",")) {
                    let TokenKind::Name(location) = cursor.next().kind else {
                        return Err(token.error("a register, a location and a value are expected here"));
                    };
                    destination = Some(Register(Arc::from(name)));
                    (name, token) = (location, second);
                    cursor.sign(",")?;
                }
                value = Some(update(binary, operand(cursor, names)?));
            }
        }
        let reference = names.reference(name, token);
        self.finish(reference, class, (reads, writes), destination, value)
    }

    fn finish(
        &self,
        (reference, object): (u32, u32),
        class: Class,
        (reads, writes): (bool, bool),
        destination: Option<Register>,
        value: Option<Expression>,
    ) -> Result<InstructionKind, Error> {
        let action = Action::Access(Access {
            reads,
            writes,
            atomic: self.has("atom"),
            non_private: self.has("nonpriv"),
            available: self.has("av"),
            visible: self.has("vis"),
            class,
            reference,
            location: Location::whole(object),
        });
        Ok(InstructionKind::Execute { operation: self.operation(action)?, destination, value, barrier: None })
    }

    fn control_barrier(&self, cursor: &mut Cursor<'_>, names: &mut SymbolTable) -> Result<InstructionKind, Error> {
        let scope = self.operation(Action::Fence)?.scope.unwrap_or(Scope::Invocation);
        let operation = self.operation(Action::ControlBarrier { execution: scope })?;
        let id = cursor.number("the number of a control barrier")?;
        let (mut resource, mut quorum) = (0, None);
        if cursor.takes(",") {
            resource = cursor.number("the number of a barrier's resource")?;
            if cursor.takes(",") {
                let token = cursor.peek();
                let number = cursor.number("a quorum")?;
                let valid = u32::try_from(number).ok().filter(|quorum| (1..=1 << 16).contains(quorum));
                quorum = Some(valid.ok_or_else(|| token.error("a quorum is from 1 to 65536"))?);
            }
        }
        let next = names.barriers.len() as u32;
        let id = *names.barriers.entry((id, resource)).or_insert(next);
        let barrier = Some(Barrier::Static { id, quorum });
        Ok(InstructionKind::Execute { operation, destination: None, value: None, barrier })
    }
}

/// The value that a read-modify-write writes.
fn update(binary: Option<Binary>, operand: Operand) -> Expression {
    match binary {
        Some(binary) => Expression::Binary(binary, Operand::Read, operand),
        None => Expression::Operand(operand),
    }
}

/// The class in a name of `prefix` and a number.
fn class(name: &str, prefix: &str) -> Option<Class> {
    match name.strip_prefix(prefix)? {
        "0" => Some(Class::Uniform),
        "1" => Some(Class::Workgroup),
        "2" => Some(Class::Image),
        "3" => Some(Class::Output),
        _ => None,
    }
}
