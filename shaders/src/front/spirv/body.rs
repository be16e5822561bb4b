//! Function bodies: parameters, blocks and their edges, checked for structure before anything is translated.

use std::ops::Range;

use foldhash::{HashMap, HashSet};
use spirv::Op;

use super::lines::is_terminator;
use super::module::{is_debug, is_non_semantic};
use super::universal;
use super::words::{Id, Inst, Words, op_name};

/// A function.
#[derive(Debug)]
pub(super) struct FunctionBody {
    /// Its id.
    pub(super) id: Id,
    /// Word of `OpFunction`.
    pub(super) word: u32,
    /// Result type.
    pub(super) result: Id,
    /// `OpTypeFunction`.
    pub(super) ty: Id,
    /// Ids of the parameters with their types.
    pub(super) params: Vec<(Id, Id)>,
    /// Blocks in the module's order, the entry first.
    pub(super) blocks: Vec<BasicBlock>,
    /// Label → index in `blocks`.
    pub(super) index: HashMap<Id, usize>,
    /// Index of the only block that returns, if it is outside of all constructs: code after the call can then continue
    /// there.
    pub(super) single_exit: Option<usize>,
}

/// A basic block.
#[derive(Debug)]
pub(super) struct BasicBlock {
    /// Its label.
    pub(super) label: Id,
    /// Word of the label.
    pub(super) word: u32,
    /// Its `OpPhi`s.
    pub(super) phis: Vec<Inst>,
    /// By the index of an `OpPhi` and the predecessor's label: the incoming value.
    pub(super) incoming: HashMap<(Id, usize), Id>,
    /// Instructions between these, without debug lines.
    pub(super) body: Vec<Inst>,
    /// `OpSelectionMerge` or `OpLoopMerge`.
    pub(super) merge: Option<Inst>,
    /// The last instruction.
    pub(super) terminator: Inst,
    /// Labels that the terminator names, in order.
    pub(super) targets: Vec<Id>,
    /// Merge block and continue target.
    pub(super) merge_targets: Vec<Id>,
    /// Labels of the blocks that branch here.
    pub(super) predecessors: HashSet<Id>,
    /// Whether and how the block is reachable.
    pub(super) reach: Reachability,
}

/// Reachability of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    /// Unreachable, and not named by any construct.
    No,
    /// Unreachable, but a construct names it as its merge or continue block.
    Structure,
    /// Reachable from the function's entry.
    Yes,
}

type Located<T> = Result<T, (u32, String)>;

impl FunctionBody {
    /// Parses the function that starts at instruction `at`; also returns the index of the instruction after its end.
    pub(super) fn parse(words: &Words, at: usize) -> Located<(Self, usize)> {
        let head = words.insts[at];
        if head.op != Op::Function {
            return Err((head.word, format!("{} is not supported outside of a function", op_name(head.op))));
        }
        let Some(length) = words.insts[at..].iter().position(|inst| inst.op == Op::FunctionEnd) else {
            return Err((head.word, "the function has no OpFunctionEnd".into()));
        };
        let insts: Vec<Inst> =
            words.insts[at + 1..at + length].iter().copied().filter(|inst| !is_debug(inst.op)).collect();
        let params: Vec<(Id, Id)> =
            insts.iter().take_while(|inst| inst.op == Op::FunctionParameter).map(|inst| (inst.id, inst.ty)).collect();
        let blocks = read_blocks(words, &insts[params.len()..])?;
        let ty = words.operands(&head).get(1).copied().unwrap_or(0);
        let index = blocks.iter().enumerate().map(|(index, block)| (block.label, index)).collect();
        let (id, word, result) = (head.id, head.word, head.ty);
        let mut function = Self { id, word, result, ty, params, blocks, index, single_exit: None };
        function.connect()?;
        function.check_structure()?;
        universal::check_nesting(&function)?;
        function.single_exit = function.find_single_exit();
        Ok((function, at + length + 1))
    }

    /// Computes edges and reachability; checks that all named labels exist.
    fn connect(&mut self) -> Located<()> {
        for at in 0..self.blocks.len() {
            let block = &self.blocks[at];
            let label = block.label;
            for target in block.targets.iter().chain(&block.merge_targets) {
                match self.index.get(target) {
                    Some(0) => return Err((block.terminator.word, "a branch to the function's first block".into())),
                    Some(_) => {}
                    None => return Err((block.terminator.word, format!("%{target} is not a block of the function"))),
                }
            }
            for target in block.targets.clone() {
                let target = self.index[&target];
                self.blocks[target].predecessors.insert(label);
            }
        }
        self.mark_reachable();
        Ok(())
    }

    fn mark_reachable(&mut self) {
        let mut stack: Vec<usize> = if self.blocks.is_empty() { Vec::new() } else { vec![0] };
        while let Some(at) = stack.pop() {
            if self.blocks[at].reach != Reachability::Yes {
                self.blocks[at].reach = Reachability::Yes;
                stack.extend(self.blocks[at].targets.iter().map(|target| self.index[target]));
            }
        }
        for at in 0..self.blocks.len() {
            if self.blocks[at].reach == Reachability::Yes {
                for target in self.blocks[at].merge_targets.clone() {
                    let target = &mut self.blocks[self.index[&target]];
                    if target.reach == Reachability::No {
                        target.reach = Reachability::Structure;
                    }
                }
            }
        }
    }

    /// Checks the structured control flow rules that the translator relies on, and those that are likely broken by
    /// mistake.
    fn check_structure(&self) -> Located<()> {
        let mut exits: HashSet<Id> = HashSet::default();
        let mut merges: HashSet<Id> = HashSet::default();
        for block in &self.blocks {
            for (position, &target) in block.merge_targets.iter().enumerate() {
                exits.insert(target);
                if position == 0 && !merges.insert(target) {
                    return Err((block.terminator.word, format!("%{target} is the merge block of two constructs")));
                }
            }
            if block.is_loop_header() {
                exits.insert(block.label);
            }
            if block.terminator.op == Op::Switch {
                exits.extend(&block.targets);
            }
        }
        for block in self.blocks.iter().filter(|block| block.reach == Reachability::Yes) {
            block.check_structure(&exits)?;
        }
        self.check_back_edges()
    }

    /// Checks that every cycle contains a loop header.
    fn check_back_edges(&self) -> Located<()> {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            New,
            Open,
            Done,
        }
        let mut states = vec![VisitState::New; self.blocks.len()];
        let mut stack: Vec<(usize, usize)> = Vec::new();
        if !self.blocks.is_empty() {
            states[0] = VisitState::Open;
            stack.push((0, 0));
        }
        while let Some((at, next)) = stack.pop() {
            let block = &self.blocks[at];
            let Some(target) = block.targets.get(next) else {
                states[at] = VisitState::Done;
                continue;
            };
            stack.push((at, next + 1));
            let target = self.index[target];
            match states[target] {
                VisitState::New => {
                    states[target] = VisitState::Open;
                    stack.push((target, 0));
                }
                VisitState::Open if !self.blocks[target].is_loop_header() => {
                    let message = format!("branches back to %{}, which has no OpLoopMerge", self.blocks[target].label);
                    return Err((block.terminator.word, message));
                }
                VisitState::Open | VisitState::Done => {}
            }
        }
        Ok(())
    }

    /// The only block that returns, if nothing encloses it.
    fn find_single_exit(&self) -> Option<usize> {
        let returns = |block: &&BasicBlock| matches!(block.terminator.op, Op::Return | Op::ReturnValue);
        if self.blocks.iter().filter(|block| block.reach == Reachability::Yes).filter(returns).count() != 1 {
            return None;
        }
        let mut at = 0;
        // Follows the outermost constructs from each to its merge block; bounded, since invalid merges may form a
        // cycle.
        for _ in 0..self.blocks.len() {
            let block = &self.blocks[at];
            if block.reach != Reachability::Yes {
                return None;
            }
            at = match (block.merge_targets.first(), block.terminator.op) {
                (Some(merge), _) => self.index[merge],
                (None, Op::Branch) => self.index[&block.targets[0]],
                (None, Op::Return | Op::ReturnValue) => return Some(at),
                _ => return None,
            };
        }
        None
    }
}

impl BasicBlock {
    /// Whether the block is a loop header.
    pub(super) fn is_loop_header(&self) -> bool {
        self.merge.is_some_and(|merge| merge.op == Op::LoopMerge)
    }

    fn check_structure(&self, exits: &HashSet<Id>) -> Located<()> {
        let word = self.terminator.word;
        match (self.terminator.op, self.merge.map(|merge| merge.op)) {
            (Op::Switch, Some(Op::SelectionMerge))
            | (Op::BranchConditional, Some(_))
            | (Op::Branch, Some(Op::LoopMerge))
            | (_, None) => {}
            (op, Some(merge)) => return Err((word, format!("{} before {}", op_name(merge), op_name(op)))),
        }
        match (self.terminator.op, self.merge) {
            (Op::Switch, None) => Err((word, "OpSwitch without OpSelectionMerge".into())),
            // Before SPIR-V 1.6 both labels may be equal, which needs no construct.
            (Op::BranchConditional, None) if self.targets.iter().all(|target| *target == self.targets[0]) => Ok(()),
            (Op::BranchConditional, None) if !self.targets.iter().any(|target| exits.contains(target)) => {
                Err((word, "OpBranchConditional without OpSelectionMerge or OpLoopMerge".into()))
            }
            _ => Ok(()),
        }
    }
}

fn read_blocks(words: &Words, insts: &[Inst]) -> Located<Vec<BasicBlock>> {
    let mut blocks = Vec::new();
    let mut rest = insts;
    while let Some((label, after)) = rest.split_first() {
        // Debug information may follow a terminator.
        if label.op == Op::ExtInst && is_non_semantic(words, label) {
            rest = after;
            continue;
        }
        if label.op != Op::Label {
            return Err((label.word, format!("{} is outside of a block", op_name(label.op))));
        }
        let Some(length) = after.iter().position(|inst| is_terminator(inst.op) || inst.op == Op::Label) else {
            return Err((label.word, format!("block %{} has no terminator", label.id)));
        };
        if after[length].op == Op::Label {
            return Err((after[length].word, format!("block %{} has no terminator", label.id)));
        }
        blocks.push(read_block(words, label, &after[..length], after[length])?);
        rest = &after[length + 1..];
    }
    Ok(blocks)
}

fn read_block(words: &Words, label: &Inst, insts: &[Inst], terminator: Inst) -> Located<BasicBlock> {
    let phis: Vec<Inst> = insts.iter().copied().take_while(|inst| inst.op == Op::Phi).collect();
    let mut incoming = HashMap::default();
    for (position, phi) in phis.iter().enumerate() {
        for pair in words.operands(phi).chunks_exact(2) {
            incoming.entry((pair[1], position)).or_insert(pair[0]);
        }
    }
    let is_merge = |inst: &Inst| matches!(inst.op, Op::SelectionMerge | Op::LoopMerge);
    let merge = insts.last().copied().filter(is_merge);
    let body = &insts[phis.len()..insts.len() - usize::from(merge.is_some())];
    if let Some(inst) = body.iter().find(|inst| is_merge(inst) || inst.op == Op::Phi) {
        return Err((inst.word, format!("{} is in the wrong place of its block", op_name(inst.op))));
    }
    let merge_targets = merge.map_or_else(Vec::new, |merge| {
        let count = if merge.op == Op::LoopMerge { 2 } else { 1 };
        words.operands(&merge).iter().copied().take(count).collect()
    });
    Ok(BasicBlock {
        label: label.id,
        word: label.word,
        phis,
        incoming,
        body: body.to_vec(),
        merge,
        terminator,
        targets: targets(words, &terminator),
        merge_targets,
        predecessors: HashSet::default(),
        reach: Reachability::No,
    })
}

/// Labels that a terminator names; the grammar has been checked.
fn targets(words: &Words, terminator: &Inst) -> Vec<Id> {
    let operands = words.operands(terminator);
    let take = |range: Range<usize>| operands.get(range).unwrap_or_default().to_vec();
    match terminator.op {
        Op::Branch => take(0..1),
        Op::BranchConditional => take(1..3),
        Op::Switch => {
            let words = operands.first().map_or(1, |&selector| words.literal_words(selector));
            operands.iter().skip(1).step_by(words + 1).copied().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::front::spirv::SpirvModule;
    use crate::front::spvasm::assemble;

    fn kernel(after_return: &str) -> Result<(), String> {
        let text = format!(
            "OpCapability Shader
             %debug = OpExtInstImport \"NonSemantic.Shader.DebugInfo.100\"
             %glsl = OpExtInstImport \"GLSL.std.450\"
             OpMemoryModel Logical GLSL450
             OpEntryPoint GLCompute %main \"main\"
             OpExecutionMode %main LocalSize 1 1 1
             %void = OpTypeVoid
             %float = OpTypeFloat 32
             %one = OpConstant %float 1
             %type = OpTypeFunction %void
             %main = OpFunction %void None %type
             %entry = OpLabel
             OpReturn
             {after_return}
             OpFunctionEnd"
        );
        let module = SpirvModule::parse(&assemble(&text).expect("it is valid")).map_err(|error| error.to_string())?;
        module.kernel("main", &Default::default()).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn debug_information_may_follow_a_terminator() {
        assert_eq!(kernel("%scope = OpExtInst %void %debug DebugNoScope"), Ok(()));
        let error = kernel("%sine = OpExtInst %float %glsl Sin %one").unwrap_err();
        assert!(error.starts_with("OpExtInst is outside of a block"), "{error}");
    }
}
