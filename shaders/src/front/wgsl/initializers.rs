//! Turns initializers that depend on overrides into stores.
//!
//! naga keeps `var v = f(N)` with an override `N` as an initializer, which must be a constant in SPIR-V. If naga cannot
//! evaluate it, such as a remainder of 64-bit integers, it leaves an expression there and panics when it writes the
//! module. A store at the function's start is equivalent and accepts any expression: naga makes initializers only of
//! variables outside loops.

use naga::{Arena, Block, Expression, Function, Handle, LocalVariable, Range, Span, Statement};

/// Rewrites all functions of a module that has not been validated yet.
pub(super) fn store(module: &mut naga::Module) {
    if module.overrides.is_empty() {
        return;
    }
    let entries = module.entry_points.iter_mut().map(|entry| &mut entry.function);
    module.functions.iter_mut().map(|(_, function)| function).chain(entries).for_each(store_in);
}

fn store_in(function: &mut Function) {
    let mut stores = Block::new();
    for (variable, data) in function.local_variables.iter_mut() {
        let Some(needed) = data.init.and_then(|init| evaluated(&function.expressions, init)) else { continue };
        data.init = None;
        append_store(&mut function.expressions, &needed, variable, &mut stores);
    }
    if !stores.is_empty() {
        stores.extend_block(std::mem::take(&mut function.body));
        function.body = stores;
    }
}

/// Appends copies of the expressions, the last of which is the variable's value: the originals are evaluated after the
/// function's start.
fn append_store(
    expressions: &mut Arena<Expression>,
    needed: &[Handle<Expression>],
    variable: Handle<LocalVariable>,
    stores: &mut Block,
) {
    let span = needed.last().map_or(Span::UNDEFINED, |last| expressions.get_span(*last));
    let mut copies: Vec<(Handle<Expression>, Handle<Expression>)> = Vec::new();
    for &original in needed {
        let mut copy = expressions[original].clone();
        operands(&mut copy, &mut |operand| {
            if let Ok(at) = copies.binary_search_by_key(operand, |copied| copied.0) {
                *operand = copies[at].1;
            }
        });
        copies.push((original, expressions.append(copy, span)));
    }
    let (Some(&(_, first)), Some(&(_, value))) = (copies.first(), copies.last()) else { return };
    let pointer = expressions.append(Expression::LocalVariable(variable), span);
    stores.push(Statement::Emit(Range::new_from_bounds(first, value)), span);
    stores.push(Statement::Store { pointer, value }, span);
}

/// The expressions to evaluate for a non-constant initializer, operands first; `None` for constants, and for unknown
/// expressions, which naga rejects or handles itself.
fn evaluated(expressions: &Arena<Expression>, init: Handle<Expression>) -> Option<Vec<Handle<Expression>>> {
    let (mut waiting, mut needed, mut is_constant) = (vec![init], Vec::new(), true);
    while let Some(handle) = waiting.pop() {
        let mut expression = expressions[handle].clone();
        match expression {
            Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => continue,
            Expression::Override(_) => {
                is_constant = false;
                continue;
            }
            Expression::Compose { .. } | Expression::Splat { .. } => {}
            _ => is_constant = false,
        }
        if !operands(&mut expression, &mut |operand| waiting.push(*operand)) || needed.len() > MAX_VISITS {
            return None;
        }
        needed.push(handle);
    }
    needed.sort_unstable();
    needed.dedup();
    (!is_constant && !needed.is_empty()).then_some(needed)
}

/// Visited expressions for one initializer, at most: it may name one expression many times.
const MAX_VISITS: usize = 1 << 16;

/// Visits the operands of an expression that initializers can contain; false for others.
fn operands(expression: &mut Expression, visit: &mut dyn FnMut(&mut Handle<Expression>)) -> bool {
    match expression {
        Expression::Compose { components, .. } => components.iter_mut().for_each(visit),
        Expression::Access { base, index } => [base, index].into_iter().for_each(visit),
        Expression::AccessIndex { base: one, .. }
        | Expression::Splat { value: one, .. }
        | Expression::Swizzle { vector: one, .. }
        | Expression::Unary { expr: one, .. }
        | Expression::Relational { argument: one, .. }
        | Expression::As { expr: one, .. } => visit(one),
        Expression::Binary { left, right, .. } => [left, right].into_iter().for_each(visit),
        Expression::Select { condition, accept, reject } => [condition, accept, reject].into_iter().for_each(visit),
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            [Some(arg), arg1.as_mut(), arg2.as_mut(), arg3.as_mut()].into_iter().flatten().for_each(visit);
        }
        _ => return false,
    }
    true
}
