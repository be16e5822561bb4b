//! Finds the expression that naga cannot evaluate with the values of overrides: its error has no position.
//!
//! naga evaluates expressions in order and stops at the first one that fails. So the expressions after a place are
//! replaced by a literal, which never fails, and the place is searched: the error stays as long as the expression that
//! fails is before it. (naga drops expressions that nothing uses, so it may be a larger one around it.)

use naga::back::PipelineConstants;
use naga::back::pipeline_constants::{self, PipelineConstantError};
use naga::valid::ModuleInfo;
use naga::{Arena, EntryPoint, Expression, Function, Handle, Literal, ShaderStage};

use super::caught::caught;

/// Where expressions are.
#[derive(Clone, Copy)]
enum ExpressionArena {
    Global,
    Function(Handle<Function>),
    Entry(usize),
}

impl ExpressionArena {
    fn expressions(self, module: &naga::Module) -> &Arena<Expression> {
        match self {
            Self::Global => &module.global_expressions,
            Self::Function(function) => &module.functions[function].expressions,
            Self::Entry(number) => &module.entry_points[number].function.expressions,
        }
    }

    /// The module with literals in place of all expressions here but the first `kept` ones.
    fn cut(self, module: &naga::Module, kept: usize) -> naga::Module {
        let mut module = module.clone();
        let expressions = match self {
            Self::Global => &mut module.global_expressions,
            Self::Function(function) => &mut module.functions[function].expressions,
            Self::Entry(number) => &mut module.entry_points[number].function.expressions,
        };
        for (_, expression) in expressions.iter_mut().skip(kept) {
            *expression = Expression::Literal(Literal::U32(0));
        }
        module
    }
}

/// The byte offset of the expression for which [`pipeline_constants::process_overrides`] fails with a message.
pub(super) fn place(
    (module, info): (&naga::Module, &ModuleInfo),
    entry: &str,
    constants: &PipelineConstants,
    message: &str,
) -> Option<usize> {
    let only = Some((ShaderStage::Compute, entry));
    let fails = |module: &naga::Module| {
        let failed = caught("searching an error", || {
            let processed = pipeline_constants::process_overrides(module, info, only, constants);
            let Err(PipelineConstantError::ConstantEvaluatorError(error)) = processed else { return Ok(false) };
            Ok(error.to_string() == message)
        });
        failed.unwrap_or(false)
    };
    let is_asked = |point: &EntryPoint| point.stage == ShaderStage::Compute && point.name == entry;
    let functions = module.functions.iter().map(|(function, _)| ExpressionArena::Function(function));
    let entries = module.entry_points.iter().position(is_asked).map(ExpressionArena::Entry);
    let local = functions.chain(entries).find(|place| !fails(&place.cut(module, 0)));
    let found = local.and_then(|place| search(place, module, fails));
    // Naming an override does not fail, but its own value may.
    let local = found.filter(|&(place, handle)| !matches!(place.expressions(module)[handle], Expression::Override(_)));
    let (place, handle) = local.or_else(|| search(ExpressionArena::Global, module, fails)).or(found)?;
    place.expressions(module).get_span(handle).to_range().map(|range| range.start)
}

/// The first expression at a place with which the module fails.
fn search(
    place: ExpressionArena,
    module: &naga::Module,
    fails: impl Fn(&naga::Module) -> bool,
) -> Option<(ExpressionArena, Handle<Expression>)> {
    let all = place.expressions(module);
    // Too few to fail, and enough.
    let (mut low, mut high) = (0, all.len());
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fails(&place.cut(module, middle)) { high = middle } else { low = middle }
    }
    all.iter().nth(high.checked_sub(1)?).map(|(handle, _)| (place, handle))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::WgslModule;

    #[test]
    fn an_error_of_override_values_has_its_line() {
        let declared = "@id(0) override n: i32 = 7;\n@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n";
        for (text, problem, line) in [
            ("fn main() {\n var a = 3;\n var b = 10 / (n - 7);\n o[0] = u32(a + b);\n}", "Division by zero", 5),
            ("fn main() {\n let b = array<u32, 4>(1u, 2u, 3u, 4u)[n];\n o[0] = b;\n}", "at the index", 4),
            ("fn main() {\n o[0] = 1u;\n o[1] = u32(pow(f32(n), 200.0));\n}", "overflowed", 5),
            ("override m = 1 / (n - 7);\nfn f() -> i32 {\n return m;\n}\nfn main() { o[0] = u32(f()); }", "by zero", 3),
        ] {
            let text = format!("{declared}{}", text.replace("fn main", "@compute @workgroup_size(1) fn main"));
            let error = WgslModule::parse(&text).unwrap().kernel("main", &BTreeMap::new()).unwrap_err();
            assert!(error.message.contains(problem), "{error}");
            assert_eq!(error.line.as_ref().map(|at| at.line), Some(line), "{error}");
        }
    }

    #[test]
    fn the_types_of_overrides_are_named() {
        let error = WgslModule::parse("\noverride n: u64 = 1lu;").unwrap_err().to_string();
        assert!(error.starts_with("the type of the override `n` is u64: overrides are of type bool, i16,"), "{error}");
        assert!(error.ends_with("at wgsl:2:1"), "{error}");
        let text = "@id(3) override f: f32 = 1.0; @group(0) @binding(0) var<storage, read_write> o: f32;
            @compute @workgroup_size(1) fn main() { o = f; }";
        let values = BTreeMap::from([(3, f32::INFINITY.to_bits().into())]);
        let error = WgslModule::parse(text).unwrap().kernel("main", &values).unwrap_err().to_string();
        assert!(error.contains("the override `f`, specialization constant 3, cannot be inf at wgsl:1:"), "{error}");
    }
}
