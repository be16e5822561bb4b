//! Removes block parameters that receive the same value on every incoming edge.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::ir::{Kernel, Value, ValueDef};
use crate::opt::aliases::Aliases;

/// Replaces such parameters by the value. Returns whether there were any.
pub(super) fn simplify(kernel: &mut Kernel) -> bool {
    if kernel.layout.iter().all(|&block| kernel.blocks[block].params.is_empty()) {
        return false;
    }
    let (mut aliases, any) = ParamSearch::new(kernel).run();
    if any {
        drop_replaced(kernel, &mut aliases);
        aliases.apply(kernel);
    }
    any
}

/// The arguments of one parameter.
struct ParamArgs {
    value: Value,
    args: SmallVec<[Value; 2]>,
    /// Arguments before this one are `same` or the parameter itself.
    checked: usize,
    same: Option<Value>,
    /// Numbers of the parameters to visit again when this one is replaced.
    watchers: SmallVec<[usize; 2]>,
}

/// Finds parameters with one distinct argument. Each argument is visited once: while two of them differ, only the
/// replacement of one of the two can change the result.
struct ParamSearch {
    params: Vec<ParamArgs>,
    /// Number of each parameter, plus 1.
    numbers: SecondaryMap<Value, u32>,
    aliases: Aliases,
}

impl ParamSearch {
    fn new(kernel: &Kernel) -> Self {
        let mut search = Self { params: Vec::new(), numbers: SecondaryMap::new(), aliases: Aliases::default() };
        search.numbers.resize(kernel.values.len());
        for &value in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].params) {
            let (args, watchers) = (SmallVec::new(), SmallVec::new());
            search.params.push(ParamArgs { value, args, checked: 0, same: None, watchers });
            search.numbers[value] = search.params.len() as u32;
        }
        for &block in &kernel.layout {
            let Some(last) = kernel.last_inst(block) else { continue };
            for call in kernel.insts[last].targets() {
                for (&param, &arg) in kernel.blocks[call.block].params.iter().zip(&call.args) {
                    if let Some(number) = search.index_of(param) {
                        search.params[number].args.push(arg);
                    }
                }
            }
        }
        search
    }

    fn index_of(&self, value: Value) -> Option<usize> {
        (self.numbers[value] as usize).checked_sub(1)
    }

    /// The replacements, and whether there are any.
    fn run(mut self) -> (Aliases, bool) {
        let mut any = false;
        let mut pending: Vec<usize> = (0..self.params.len()).rev().collect();
        while let Some(number) = pending.pop() {
            let param = self.params[number].value;
            if self.aliases.shorten(param) == param
                && let Some(value) = self.only_argument(number)
            {
                self.aliases.replace(param, value);
                any = true;
                pending.extend(std::mem::take(&mut self.params[number].watchers));
            }
        }
        (self.aliases, any)
    }

    fn only_argument(&mut self, number: usize) -> Option<Value> {
        let ParamSearch { params, aliases, .. } = self;
        let param = &mut params[number];
        loop {
            param.same = param.same.map(|value| aliases.shorten(value)).filter(|&value| value != param.value);
            let Some(&arg) = param.args.get(param.checked) else { return param.same };
            let arg = aliases.shorten(arg);
            match param.same {
                _ if arg == param.value => {}
                None => param.same = Some(arg),
                Some(same) if same == arg => {}
                Some(same) => {
                    for other in [same, arg] {
                        if let Some(other) = self.index_of(other) {
                            self.params[other].watchers.push(number);
                        }
                    }
                    return None;
                }
            }
            param.checked += 1;
        }
    }
}

/// Drops parameters that were replaced, and their arguments.
fn drop_replaced(kernel: &mut Kernel, aliases: &mut Aliases) {
    let Kernel { layout, blocks, insts, values, .. } = kernel;
    for &block in &*layout {
        let Some(&last) = blocks[block].insts.last() else { continue };
        for call in insts[last].targets_mut() {
            let mut params = blocks[call.block].params.iter();
            call.args.retain(|_| params.next().is_none_or(|&param| aliases.shorten(param) == param));
        }
    }
    for &block in &*layout {
        let params = &mut blocks[block].params;
        params.retain(|param| aliases.shorten(*param) == *param);
        for (position, &param) in params.iter().enumerate() {
            if let ValueDef::Param { index, .. } = &mut values[param] {
                *index = position as u32;
            }
        }
    }
}
