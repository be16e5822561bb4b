//! Validation errors of naga in the words of the text. naga numbers expressions, types, variables and functions
//! (`Expression [12]`); a message has their names, their types and their source instead.

use std::error::Error as _;
use std::fmt;

use naga::common::wgsl::{TypeContext as _, address_space_str};
use naga::proc::{ResolveContext, ResolveError, TypeResolution};
use naga::valid::{
    CallError, ComposeError, EntryPointError, ExpressionError, FunctionError, GlobalVariableError, TypeError,
    TypeFlags, ValidationError, VaryingError,
};
use naga::{Arena, BinaryOperator, Expression, Function, Handle, Module, Span, TypeInner, UnaryOperator, WithSpan};

use super::{size, type_errors, type_place};

/// Characters of a piece of the text that a sentence quotes, at most.
const MAX_QUOTED: usize = 48;

/// The error with sentences that need no knowledge of naga.
pub(super) fn worded(error: &WithSpan<ValidationError>, module: &Module, source: &str) -> WithSpan<Worded> {
    let inner = error.as_inner();
    let names = SourceNames::new(inner, module, source);
    let mut sentences = Vec::new();
    let mut cause = inner.source();
    while let Some(problem) = cause {
        sentences.push(names.of_cause(problem));
        cause = problem.source();
    }
    // `transparent` errors say the same again.
    sentences.dedup();
    let cause = sentences.into_iter().rev().fold(None, |cause, text| Some(Box::new(Worded { text, cause })));
    let mut worded = WithSpan::new(Worded { text: names.of_error(inner), cause });
    let is_of_part = |label: &str| !label.starts_with("naga::ir::Function");
    let has_part = error.spans().any(|(_, label)| is_of_part(label));
    for (span, label) in error.spans().filter(|(_, label)| !has_part || is_of_part(label)) {
        worded = worded.with_span(head_of(*span, label, source), names.of_label(label));
    }
    if error.spans().next().is_some() {
        return worded;
    }
    match place_of(inner, module, source) {
        Some(span) => worded.with_span(span, ""),
        None => worded,
    }
}

/// The place of an error that naga reports without one.
fn place_of(error: &ValidationError, module: &Module, source: &str) -> Option<Span> {
    match error {
        ValidationError::Type { handle, .. } => type_place::place_of(*handle, module, source),
        ValidationError::EntryPoint { name, .. } => {
            let at = size::function(name, source)?;
            let whole = Span::new(u32::try_from(at).ok()?, u32::try_from(source.len()).ok()?);
            Some(head_of(whole, "naga::ir::Function", source))
        }
        _ => None,
    }
}

/// A sentence, and what explains it.
#[derive(Debug)]
pub(super) struct Worded {
    text: String,
    cause: Option<Box<Worded>>,
}

impl fmt::Display for Worded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Worded {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// Of a function, its declaration without the body.
pub(super) fn head_of(span: Span, label: &str, source: &str) -> Span {
    let range = span.to_range().filter(|_| label.starts_with("naga::ir::Function"));
    let head = range.and_then(|range| Some(range.start..range.start + source.get(range)?.find(['{', '\n'])?));
    head.map_or(span, Span::from)
}

/// What a module calls its parts.
struct SourceNames<'m> {
    module: &'m Module,
    source: &'m str,
    /// The function of the error, and the types of its expressions, as far as they have one.
    function: Option<&'m Function>,
    types: Vec<Option<TypeResolution>>,
}

impl<'m> SourceNames<'m> {
    fn new(error: &ValidationError, module: &'m Module, source: &'m str) -> Self {
        let function = match error {
            ValidationError::Function { handle, .. } => module.functions.try_get(*handle).ok(),
            ValidationError::EntryPoint { stage, name, .. } => {
                let found = module.entry_points.iter().find(|entry| (entry.stage, &entry.name) == (*stage, name));
                found.map(|entry| &entry.function)
            }
            _ => None,
        };
        let types = function.map(|function| types_of(module, function)).unwrap_or_default();
        Self { module, source, function, types }
    }

    fn of_error(&self, error: &ValidationError) -> String {
        let (kind, name) = match error {
            ValidationError::EntryPoint { name, .. } => ("entry point", name),
            ValidationError::Function { name, .. } => ("function", name),
            ValidationError::GlobalVariable { name, .. } => ("variable", name),
            ValidationError::Type { name, handle, .. } if name.is_empty() => {
                return format!("the type `{}` is invalid", type_errors::type_text(*handle, self.module));
            }
            ValidationError::Type { name, .. } => ("type", name),
            ValidationError::Constant { name, .. } => ("constant", name),
            ValidationError::Override { name, .. } => ("override", name),
            error => return self.plain(&error.to_string()),
        };
        format!("the {kind} `{name}` is invalid")
    }

    fn of_cause(&self, cause: &(dyn std::error::Error + 'static)) -> String {
        let text = || self.plain(&cause.to_string());
        if let Some(error) = cause.downcast_ref::<EntryPointError>() {
            return match error {
                EntryPointError::Function(error) => self.of_cause(error),
                EntryPointError::Result(error) => self.of_cause(error),
                EntryPointError::BindingCollision(variable) => {
                    let name = self.module.global_variables[*variable].name.as_deref().unwrap_or_default();
                    format!("the group and binding of `{name}` are those of another variable that it uses")
                }
                EntryPointError::Argument(index, _) => {
                    let argument = self.function.and_then(|function| function.arguments.get(*index as usize));
                    let name = argument.and_then(|argument| argument.name.as_deref()).unwrap_or_default();
                    format!("the parameter `{name}` is invalid")
                }
                EntryPointError::InvalidGlobalUsage(variable, how) => {
                    let name = self.module.global_variables[*variable].name.as_deref().unwrap_or_default();
                    let how = bitflags_words(&format!("{how:?}"));
                    format!("`{name}` is used in a way that its declaration does not allow: {how}")
                }
                _ => text(),
            };
        }
        if let Some(error) = cause.downcast_ref::<FunctionError>() {
            return self.of_function_error(error).unwrap_or_else(text);
        }
        if let Some(CallError::ArgumentType { index, required, seen_expression }) = cause.downcast_ref::<CallError>() {
            let (number, wanted) = (index + 1, self.module.to_ctx().type_to_string(*required));
            return format!("argument {number} is {}, where {wanted} is needed", self.passed(*seen_expression));
        }
        if let Some(error) = cause.downcast_ref::<TypeError>() {
            return type_errors::of_type(error, self.module).unwrap_or_else(text);
        }
        if let Some(error) = cause.downcast_ref::<VaryingError>() {
            return type_errors::of_passed(error, self.module).unwrap_or_else(text);
        }
        if let Some(GlobalVariableError::MissingTypeFlags { required, seen }) = cause.downcast_ref() {
            return match required.difference(*seen) {
                missing if missing.contains(TypeFlags::SIZED) => "its type has no size".to_owned(),
                missing if missing.contains(TypeFlags::HOST_SHAREABLE) => {
                    "its type has a part that buffers cannot hold, such as a bool".to_owned()
                }
                _ => "its type cannot be in this address space".to_owned(),
            };
        }
        match cause.downcast_ref::<ExpressionError>() {
            Some(error) => self.of_expression_error(error).unwrap_or_else(text),
            None => text(),
        }
    }

    fn of_function_error(&self, error: &FunctionError) -> Option<String> {
        Some(match error {
            FunctionError::Expression { handle, .. } => format!("{} is invalid", self.named(*handle)),
            FunctionError::InvalidCall { function, .. } => {
                let name = self.module.functions[*function].name.as_deref().unwrap_or_default();
                format!("the call of `{name}` is invalid")
            }
            FunctionError::InvalidReturnType { expression, expected_ty } => {
                let returned = expression.map_or_else(|| "nothing".to_owned(), |value| self.typed(value));
                let expected = expected_ty.map(|ty| self.module.to_ctx().type_to_string(ty));
                let expected = expected.unwrap_or_else(|| "nothing".to_owned());
                let when = if expression.is_none() { "at its end, or by a `return`, " } else { "" };
                format!("{when}it returns {returned}, where its declaration says {expected}")
            }
            FunctionError::InvalidIfType(condition) => {
                format!("the condition {} is no bool", self.typed(*condition))
            }
            FunctionError::InvalidSwitchType(value) => format!("the value {} is no integer", self.typed(*value)),
            FunctionError::InvalidStorePointer(to) => format!("{} cannot be written", self.named(*to)),
            FunctionError::InvalidStoreTypes { pointer, value } => {
                let held = self.pointee(*pointer).unwrap_or_else(|| "another type".to_owned());
                format!("{} is assigned to {}, which is {held}", self.typed(*value), self.named(*pointer))
            }
            FunctionError::InvalidStoreValue { actual, expected_ty, .. } => {
                let wanted = self.shown(&TypeResolution::Value(expected_ty.clone()));
                format!("the value {} is stored in an image that takes {wanted}", self.typed(*actual))
            }
            FunctionError::InvalidArgumentPointerSpace { name, .. } => {
                format!("the parameter `{name}` is a pointer of an address space that functions cannot have")
            }
            _ => return None,
        })
    }

    fn of_expression_error(&self, error: &ExpressionError) -> Option<String> {
        Some(match error {
            ExpressionError::InvalidBaseType(base) => format!("{} has no such part", self.typed(*base)),
            ExpressionError::InvalidIndexType(index) => format!("{} is no index", self.typed(*index)),
            ExpressionError::IndexOutOfBounds(base, index) => format!("index {index} is past {}", self.typed(*base)),
            ExpressionError::InvalidPointerType(value) => {
                format!("{} cannot be used as a value", self.typed(*value))
            }
            ExpressionError::InvalidUnaryOperandType(operator, operand) => {
                let operator = match operator {
                    UnaryOperator::Negate => "-",
                    UnaryOperator::LogicalNot => "!",
                    UnaryOperator::BitwiseNot => "~",
                };
                format!("there is no operator `{operator}` for {}", self.typed(*operand))
            }
            ExpressionError::InvalidBinaryOperandTypes { op, lhs_expr, lhs_type, rhs_expr, rhs_type } => {
                let typed = |value: Handle<Expression>, ty: &TypeInner| {
                    format!("{} ({})", self.named(value), self.shown(&TypeResolution::Value(ty.clone())))
                };
                let (left, right) = (typed(*lhs_expr, lhs_type), typed(*rhs_expr, rhs_type));
                format!("there is no operator `{}` for {left} and {right}", operator(*op))
            }
            ExpressionError::InvalidImageCoordinateType(_, coordinate) => {
                format!("the coordinates {} have not the dimensions of the image", self.typed(*coordinate))
            }
            ExpressionError::InvalidArgumentType(_, index, value) => {
                format!("argument {} is {}, which the function does not take", index + 1, self.typed(*value))
            }
            ExpressionError::SelectValuesTypeMismatch { accept, reject } => {
                let text = |ty: &TypeInner| type_errors::inner_text(ty, self.module);
                format!("`select` takes two values of one type, not {} and {}", text(reject), text(accept))
            }
            ExpressionError::SelectConditionNotABool { actual } => {
                let actual = type_errors::inner_text(actual, self.module);
                format!("the condition of `select` is {actual}, where bools are needed")
            }
            ExpressionError::Compose(ComposeError::ComponentType { index }) => {
                format!("value {} in the brackets is of a type that does not fit", index + 1)
            }
            _ => return None,
        })
    }

    fn of_label(&self, label: &str) -> String {
        if let Some(number) = label.strip_prefix("naga::ir::Expression ") {
            let index = number.trim_matches(['[', ']']).parse::<usize>().ok();
            let ty = index.and_then(|index| self.types.get(index)?.as_ref());
            return ty.map(|ty| self.value_of(ty)).unwrap_or_default();
        }
        if label.starts_with("naga::") {
            return String::new();
        }
        // A type in Rust's form: the note has it as WGSL does.
        let shown = label.split(" of type ").next().filter(|_| label.contains('{')).unwrap_or(label);
        self.plain(shown)
    }

    /// The text without the numbers of naga's tables.
    fn plain(&self, text: &str) -> String {
        let text = without_fields(text);
        let mut plain = String::new();
        let mut rest = &*text;
        while let Some(open) = rest.find('[') {
            let (before, after) = rest.split_at(open);
            let number = after[1..].find(']').map(|close| &after[1..=close]);
            let Some((number, index)) = number.and_then(|number| Some((number, number.parse::<usize>().ok()?))) else {
                plain.push_str(&rest[..=open]);
                rest = &rest[open + 1..];
                continue;
            };
            let named = self.numbered(before, index);
            let before = before.strip_suffix("Some(").unwrap_or(before);
            plain.push_str(before);
            plain.push_str(&named);
            rest = &after[number.len() + 2..];
            rest = rest.strip_prefix(')').filter(|_| text.contains("Some([")).unwrap_or(rest);
        }
        plain.push_str(rest);
        plain
    }

    /// What has this number in the table that the words before it mean.
    fn numbered(&self, before: &str, index: usize) -> String {
        let before = before.strip_suffix("Some(").unwrap_or(before).trim_end().to_lowercase();
        let quoted = |name: Option<&str>| name.map_or_else(|| "(no name)".to_owned(), |name| format!("`{name}`"));
        if ["type", "by", "instead of", "value of"].iter().any(|word| before.ends_with(word)) {
            let ty = self.module.types.iter().find(|(handle, _)| handle.index() == index);
            return ty.map_or_else(String::new, |(handle, _)| self.module.to_ctx().type_to_string(handle));
        }
        if ["function", "call to"].iter().any(|word| before.ends_with(word)) {
            return quoted(name_in(&self.module.functions, index, |function| function.name.as_deref()));
        }
        if ["global variable", "bindings for"].iter().any(|word| before.ends_with(word)) {
            return quoted(name_in(&self.module.global_variables, index, |variable| variable.name.as_deref()));
        }
        let expressions = self.function.map(|function| &function.expressions);
        let found = expressions.and_then(|all| all.iter().find(|(handle, _)| handle.index() == index));
        found.map_or_else(|| "of it".to_owned(), |(handle, _)| self.named(handle))
    }

    /// The variable, or the source of the expression.
    fn named(&self, value: Handle<Expression>) -> String {
        let name = self.function.and_then(|function| {
            Some(match function.expressions.try_get(value).ok()? {
                Expression::FunctionArgument(index) => function.arguments.get(*index as usize)?.name.as_deref()?,
                Expression::LocalVariable(variable) => function.local_variables[*variable].name.as_deref()?,
                Expression::GlobalVariable(variable) => self.module.global_variables[*variable].name.as_deref()?,
                Expression::Load { pointer } => return Some(self.named(*pointer)),
                _ => {
                    let text = self.source.get(function.expressions.get_span(value).to_range()?)?;
                    if text.contains('\n') || text.is_empty() || text.chars().count() > MAX_QUOTED {
                        return None;
                    }
                    text
                }
            })
            .map(|name| format!("`{name}`"))
        });
        name.unwrap_or_else(|| "the value".to_owned())
    }

    /// The expression with its type.
    fn typed(&self, value: Handle<Expression>) -> String {
        let named = self.named(value);
        match self.types.get(value.index()).and_then(Option::as_ref) {
            Some(ty) => format!("{named} ({})", self.value_of(ty)),
            None => named,
        }
    }

    /// The argument of a call with its type, also if that is a pointer.
    fn passed(&self, value: Handle<Expression>) -> String {
        let Some(ty) = self.types.get(value.index()).and_then(Option::as_ref) else { return self.named(value) };
        let Some(space) = ty.inner_with(&self.module.types).pointer_space() else { return self.typed(value) };
        let (space, access) = address_space_str(space);
        let (space, access) = (space.unwrap_or("handle"), access.map(|access| format!(", {access}")));
        let ty = format!("ptr<{space}, {}{}>", self.value_of(ty), access.unwrap_or_default());
        let expression = self.function.and_then(|function| function.expressions.try_get(value).ok());
        let named = match (self.named(value).strip_prefix('`'), expression) {
            (Some(rest), Some(expression)) if !matches!(expression, Expression::FunctionArgument(_)) => {
                format!("`&{rest}")
            }
            _ => self.named(value),
        };
        format!("{named} ({ty})")
    }

    /// The type of what a pointer is for.
    fn pointee(&self, pointer: Handle<Expression>) -> Option<String> {
        self.types.get(pointer.index())?.as_ref().map(|ty| self.value_of(ty))
    }

    /// A type as WGSL writes it; of a pointer, what it is for.
    fn value_of(&self, ty: &TypeResolution) -> String {
        match *ty.inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => self.module.to_ctx().type_to_string(base),
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                self.shown(&TypeResolution::Value(TypeInner::Vector { size, scalar }))
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => {
                self.shown(&TypeResolution::Value(TypeInner::Scalar(scalar)))
            }
            _ => self.shown(ty),
        }
    }

    fn shown(&self, ty: &TypeResolution) -> String {
        self.module.to_ctx().type_resolution_to_string(ty)
    }
}

fn name_in<T>(all: &Arena<T>, index: usize, name: impl Fn(&T) -> Option<&str>) -> Option<&str> {
    all.iter().find(|(handle, _)| handle.index() == index).and_then(|(_, found)| name(found))
}

/// The types of all expressions that have one.
pub(super) fn types_of(module: &Module, function: &Function) -> Vec<Option<TypeResolution>> {
    let mut types: Vec<Option<TypeResolution>> = Vec::with_capacity(function.expressions.len());
    for (handle, expression) in function.expressions.iter() {
        let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
        let of = |other: Handle<Expression>| {
            let unknown = ResolveError::InvalidAccess { expr: handle, indexed: false };
            types.get(other.index()).and_then(Option::as_ref).ok_or(unknown)
        };
        let ty = context.resolve(expression, of).ok();
        types.push(ty);
    }
    types
}

fn operator(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::Equal => "==",
        BinaryOperator::NotEqual => "!=",
        BinaryOperator::Less => "<",
        BinaryOperator::LessEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterEqual => ">=",
        BinaryOperator::And => "&",
        BinaryOperator::ExclusiveOr => "^",
        BinaryOperator::InclusiveOr => "|",
        BinaryOperator::LogicalAnd => "&&",
        BinaryOperator::LogicalOr => "||",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
    }
}

/// `GlobalUse(READ | WRITE)` as words.
fn bitflags_words(shown: &str) -> String {
    let flags = shown.split_once('(').map_or(shown, |(_, flags)| flags.trim_end_matches(')'));
    flags.to_lowercase().replace(" | ", ", ")
}

/// The text without the fields of Rust's values, as in `Position { invariant: false }`.
fn without_fields(text: &str) -> String {
    let mut depth = 0;
    let kept = text.replace(" {", "{");
    kept.chars()
        .filter(|c| {
            depth += i32::from(*c == '{');
            let is_kept = depth == 0;
            depth -= i32::from(*c == '}');
            is_kept
        })
        .collect()
}
