//! Checks of invariants between passes: inputs come first, results are present, and shapes and types match.

use crate::ir::graph::{Graph, Joined, Node, NodeId, Op, PixelOpOperand};
use crate::ir::kernel::{FilterSource, InstrOp, Kernel, LeafOp, MapKernel, Val};
use crate::ops::operation::{ImageExtent, ensure, same_places as fits};
use horus_base::dtype::DType;
use horus_base::shape::Shape;

/// The shapes and stored types of a program's results, which no pass may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramResults(Vec<(Shape, DType)>);

impl ProgramResults {
    /// The results of `graph`.
    pub fn of<O>(graph: &Graph<O>) -> ProgramResults {
        let known = graph.roots.iter().filter_map(|r| graph.nodes.get(r.0));
        ProgramResults(known.map(|n| (n.shape, n.dtype.stored())).collect())
    }
}

/// Checks the invariants of every graph.
fn graph<O>(graph: &Graph<O>, wanted: &ProgramResults) -> Result<(), String> {
    for (id, node) in graph.iter() {
        ensure(node.inputs.iter().all(|i| *i < id), || format!("{id} reads what comes after it"))?;
    }
    ensure(graph.roots.iter().all(|r| r.0 < graph.nodes.len()), || "a result is no node".into())?;
    ensure(ProgramResults::of(graph) == *wanted, || "the results have changed, their number, shapes or types".into())
}

/// Checks recorded operations.
///
/// # Errors
/// Describes the violated invariant.
pub fn recorded(program: &Graph<Op>, wanted: &ProgramResults) -> Result<(), String> {
    graph(program, wanted)?;
    for (id, node) in program.iter() {
        operation(program, node).map_err(|cause| format!("{id} = {}: {cause}", node.op.name()))?;
    }
    Ok(())
}

/// Checks kernels.
///
/// # Errors
/// Describes the violated invariant.
pub fn lowered(program: &Graph<Kernel>, wanted: &ProgramResults) -> Result<(), String> {
    graph(program, wanted)?;
    for (id, node) in program.iter() {
        kernel(program, node).map_err(|cause| format!("{id} = {}: {cause}", node.op.name()))?;
    }
    let mut seen = vec![false; program.nodes.len()];
    for joined in &program.joined {
        let again = joined.nodes.iter().any(|n| std::mem::replace(&mut seen[n.0], true));
        ensure(!again, || "a node is computed with others twice".into())?;
        together(program, joined).map_err(|cause| format!("{} together: {cause}", joined.op.name()))?;
    }
    Ok(())
}

/// Fails unless one launch can compute the nodes.
fn together(program: &Graph<Kernel>, joined: &Joined<Kernel>) -> Result<(), String> {
    let Kernel::Map(m) = &joined.op else { return Err("it is no expression".into()) };
    let (first, last) = joined.nodes.first().zip(joined.nodes.last()).ok_or("of nothing")?;
    let adjacent = joined.nodes.iter().enumerate().all(|(k, n)| n.0 == first.0 + k);
    ensure(adjacent && first < last, || "its nodes do not follow each other".into())?;
    let types: Vec<DType> = m.results().map(|v| m.type_of(v)).collect();
    ensure(types.len() == joined.nodes.len(), || format!("{} results of {} nodes", types.len(), joined.nodes.len()))?;
    for (n, dtype) in joined.nodes.iter().zip(types) {
        let node = program.node(*n);
        typed(dtype, node.dtype)?;
        fits(node.shape, program.node(*first).shape)?;
        ensure(matches!(&node.op, Kernel::Map(one) if one.additional_results.is_empty()), || {
            format!("{n} is no expression")
        })?;
        ensure(!node.inputs.iter().any(|i| joined.nodes.contains(i)), || format!("{n} reads another"))?;
        ensure(node.inputs.iter().all(|i| joined.inputs.contains(i)), || format!("what {n} reads is missing"))?;
    }
    let whole = Node { op: joined.op.clone(), inputs: joined.inputs.clone(), ..program.node(*first).clone() };
    kernel(program, &whole)
}

fn has_inputs<O>(node: &Node<O>, count: usize) -> Result<(), String> {
    ensure(node.inputs.len() == count, || format!("it has {} inputs instead of {count}", node.inputs.len()))
}

fn operation(program: &Graph<Op>, node: &Node<Op>) -> Result<(), String> {
    let input = |i: usize| program.node(node.inputs[i]);
    // The number of inputs, and whether they have the shape and the type of the node.
    let (count, same_shape, same_type) = match &node.op {
        Op::Source(_) | Op::Fill(_) | Op::Index(_) => (0, false, false),
        Op::Pixel(op, operands) => {
            ensure(operands.len() == op.arity(), || format!("{} operands instead of {}", operands.len(), op.arity()))?;
            let known = |o: &PixelOpOperand| {
                matches!(o, PixelOpOperand::Const(_)) || matches!(o, PixelOpOperand::Input(i) if *i < node.inputs.len())
            };
            ensure(operands.iter().all(known), || "an operand is no input".into())?;
            (node.inputs.len(), true, false)
        }
        Op::Convert(_) => (1, true, false),
        Op::Planes(_) | Op::Warp(..) => (1, false, true),
        Op::Correlate(..) | Op::Separable { .. } | Op::OrderFilter(..) | Op::Flip(_) => (1, true, true),
        Op::Whole(operation) => {
            let inputs: Vec<ImageExtent> =
                (0..node.inputs.len()).map(|i| (input(i).shape, input(i).dtype.stored())).collect();
            return operation.check(&inputs, (node.shape, node.dtype.stored()));
        }
    };
    has_inputs(node, count)?;
    let inputs = || (0..count).map(input);
    let several = inputs().chain([node]).any(|of| of.shape.samples != 1);
    ensure(node.op.knows_samples() || !several, || "it does not know interleaved samples".into())?;
    inputs().filter(|_| same_shape).try_for_each(|i| fits(i.shape, node.shape))?;
    inputs().filter(|_| same_type).try_for_each(|i| typed(i.dtype.stored(), node.dtype.stored()))
}

fn typed(is: DType, wanted: DType) -> Result<(), String> {
    ensure(is == wanted, || format!("it makes {is}, wanted is {wanted}"))
}

fn kernel(program: &Graph<Kernel>, node: &Node<Kernel>) -> Result<(), String> {
    ensure(node.op.knows_samples() || node.shape.samples == 1, || "it does not know interleaved samples".into())?;
    let of = |i: &NodeId| (program.node(*i).shape, program.node(*i).dtype);
    match &node.op {
        Kernel::Source(_) => has_inputs(node, 0),
        Kernel::Map(m) => {
            has_inputs(node, m.inputs)?;
            expression(m, program, node)?;
            let pixels = if m.woven { Shape { samples: 1, ..node.shape } } else { node.shape };
            read_in_place(m, program, node, pixels)?;
            typed(m.result_type(), node.dtype)?;
            ensure(!m.woven || m.results().count() == node.shape.samples, || "results are missing".into())?;
            ensure(!m.woven || m.results().all(|v| m.type_of(v) == node.dtype), || "samples differ in type".into())
        }
        Kernel::MapReduce(m, how) => {
            ensure(node.inputs.len() >= m.inputs, || format!("it has {} inputs", node.inputs.len()))?;
            expression(m, program, node)?;
            ensure(m.is_pointwise(), || "it reduces what it must store".into())?;
            let first = node.inputs.first().ok_or("it reads no image")?;
            let reduced = Shape { width: program.node(*first).shape.width, ..node.shape };
            let operand: Vec<ImageExtent> = node.inputs[m.inputs..].iter().map(of).collect();
            how.fits((reduced, m.result_type()), &operand, (node.shape, node.dtype))
        }
        Kernel::Repeat(r) => {
            has_inputs(node, r.body.inputs)?;
            expression(&r.body, program, node)?;
            read_in_place(&r.body, program, node, node.shape)?;
            typed(r.body.result_type(), node.dtype)?;
            ensure(r.fault().is_none(), || format!("it cannot make so many steps: {}", r.fault().unwrap_or_default()))?;
            fits(program.node(node.inputs[r.state]).shape, node.shape)
        }
        Kernel::Whole(operation) => {
            let inputs: Vec<ImageExtent> = node.inputs.iter().map(of).collect();
            operation.check(&inputs, (node.shape, node.dtype))
        }
    }
}

/// Fails unless leaves that read the same pixel, or pixels around it, read images of the result's shape.
fn read_in_place(m: &MapKernel, program: &Graph<Kernel>, node: &Node<Kernel>, shape: Shape) -> Result<(), String> {
    for leaf in &m.leaves {
        let plane = |s: Shape| (s.height, s.width);
        match (&leaf.op, m.image(leaf)) {
            (LeafOp::Warp(..), _) | (_, FilterSource::Chain(_) | FilterSource::Stage(_)) => {}
            (LeafOp::LoadPlane(_, map), FilterSource::Input(i)) => {
                let read = program.node(node.inputs[i]).shape;
                ensure(plane(read) == plane(shape), || format!("it reads planes of {read} and is {shape}"))?;
                ensure(read.samples == 1 || m.reads_samples(), || "it does not read single samples".into())?;
                map.fits(read.planes() * read.samples, shape.planes())?;
            }
            (_, FilterSource::Input(i)) => fits(program.node(node.inputs[i]).shape, shape)?,
        }
    }
    m.chains.iter().try_for_each(|c| read_in_place(c, program, node, shape))
}

/// Fails unless every value of an expression precedes its uses and has the type of its use.
fn expression(m: &MapKernel, program: &Graph<Kernel>, node: &Node<Kernel>) -> Result<(), String> {
    m.chains.iter().try_for_each(|c| expression(c, program, node))?;
    let read = |source: FilterSource| match source {
        FilterSource::Input(i) if i < m.inputs => Ok(program.node(node.inputs[i]).dtype),
        FilterSource::Chain(c) if c < m.chains.len() => Ok(m.chains[c].result_type()),
        _ => Err(format!("{source:?} does not exist")),
    };
    for stage in &m.stages {
        read(stage.source)?;
    }
    for leaf in &m.leaves {
        let is = match leaf.source() {
            FilterSource::Stage(s) => {
                read(m.stages.get(s).ok_or_else(|| format!("row pass {s} does not exist"))?.source)?
            }
            other => read(other)?,
        };
        ensure(leaf.reads_type(is), || format!("it reads {is}, wanted is {}", leaf.dtype))?;
    }
    // All references are valid at this point.
    m.chain_fault().map_or(Ok(()), |fault| Err(format!("a chain cannot be evaluated: {fault}")))?;
    for (at, instr) in m.code.iter().enumerate() {
        let of = |v: &Val| value(m, *v, at);
        let last = instr.args.last().ok_or("an instruction without operands")?;
        instr.args.iter().try_for_each(|v| of(v).map(drop))?;
        typed(of(last)?, instr.operand)?;
        if let InstrOp::Pixel(op) = instr.op {
            ensure(instr.args.len() == op.arity(), || format!("{op} of {} operands", instr.args.len()))?;
        }
    }
    value(m, m.result.ok_or("it has no result")?, m.code.len())?;
    m.additional_results.iter().try_for_each(|v| value(m, *v, m.code.len()).map(drop))
}

/// The type of a value that instruction `at` reads.
fn value(m: &MapKernel, v: Val, at: usize) -> Result<DType, String> {
    match v {
        Val::Leaf(i) => m.leaves.get(i).map(|l| l.dtype).ok_or_else(|| format!("leaf {i} does not exist")),
        Val::Instr(i) if i < at => Ok(m.code[i].result),
        Val::Instr(i) => Err(format!("instruction {at} reads the result of {i}")),
        Val::Const(c) => Ok(c.dtype()),
        Val::Index(_, dtype) => Ok(dtype),
    }
}
