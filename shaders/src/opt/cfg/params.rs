//! Parameters that are one value on every way in.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use super::terminator;
use crate::ir::{Kernel, Value, ValueDef};
use crate::opt::aliases::Aliases;

/// Replaces such parameters. Says whether there were any.
pub(super) fn simplify(kernel: &mut Kernel) -> bool {
    if kernel.layout.iter().all(|&block| kernel.blocks[block].params.is_empty()) {
        return false;
    }
    let (mut aliases, any) = Search::new(kernel).run();
    if any {
        drop_replaced(kernel, &mut aliases);
        aliases.apply(kernel);
    }
    any
}

/// What is passed for one parameter.
#[derive(Clone, Default)]
struct Incoming {
    args: SmallVec<[Value; 2]>,
    /// Arguments before this one are `same` or the parameter itself.
    checked: usize,
    same: Option<Value>,
}

/// Looks for parameters with one argument. Each looks at its arguments once: while two of them differ, only news about
/// these two can matter.
struct Search {
    incoming: SecondaryMap<Value, Incoming>,
    watchers: SecondaryMap<Value, SmallVec<[Value; 2]>>,
    pending: Vec<Value>,
    aliases: Aliases,
}

impl Search {
    fn new(kernel: &Kernel) -> Self {
        let mut incoming: SecondaryMap<Value, Incoming> = SecondaryMap::new();
        let mut pending = Vec::new();
        for &block in &kernel.layout {
            pending.extend(&kernel.blocks[block].params);
            let Some(last) = terminator(kernel, block) else { continue };
            for call in kernel.insts[last].targets() {
                for (&param, &arg) in kernel.blocks[call.block].params.iter().zip(&call.args) {
                    incoming[param].args.push(arg);
                }
            }
        }
        pending.reverse();
        Self { incoming, watchers: SecondaryMap::new(), pending, aliases: Aliases::default() }
    }

    /// Says too whether there were any.
    fn run(mut self) -> (Aliases, bool) {
        let mut any = false;
        while let Some(param) = self.pending.pop() {
            if self.aliases.shorten(param) == param
                && let Some(value) = self.only_argument(param)
            {
                self.aliases.replace(param, value);
                any = true;
                self.pending.extend(std::mem::take(&mut self.watchers[param]));
            }
        }
        (self.aliases, any)
    }

    fn only_argument(&mut self, param: Value) -> Option<Value> {
        let incoming = &mut self.incoming[param];
        loop {
            incoming.same = incoming.same.map(|value| self.aliases.shorten(value)).filter(|&value| value != param);
            let Some(&arg) = incoming.args.get(incoming.checked) else { return incoming.same };
            let arg = self.aliases.shorten(arg);
            match incoming.same {
                _ if arg == param => {}
                None => incoming.same = Some(arg),
                Some(same) if same == arg => {}
                Some(same) => {
                    self.watchers[same].push(param);
                    self.watchers[arg].push(param);
                    return None;
                }
            }
            incoming.checked += 1;
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
        for (place, &param) in params.iter().enumerate() {
            if let ValueDef::Param { index, .. } = &mut values[param] {
                *index = place as u32;
            }
        }
    }
}
