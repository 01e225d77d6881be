//! Means over large rectangles, split into rows and columns: a single kernel would recompute more around each
//! tile than storing the sums of rows costs.
//!
//! Means over rectangles of more than [`TOGETHER`] rows or columns become two kernels; variances stay one.
//! Sums of powers of two of pixels are doubled, and those that make up the size are added smallest first: the
//! order is the same everywhere, independent of strips and tiles. No expression absorbs these operations
//! (`Sliding`).

use crate::ir::graph::{Graph, Node, Op};
use crate::ops::neighbourhood::Reach;
use crate::ops::windowed::{BoxMean, Windowed, line_sum, summed};
use crate::ops::{Sliding, Whole};
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::Border;

/// Maximum rows and columns of a rectangle summed by one kernel.
pub const TOGETHER: usize = 128;

/// Splits each mean over a larger rectangle into row sums and a mean over columns of the sums.
pub fn split(graph: Graph<Op>) -> Graph<Op> {
    graph.rebuilt(|out, _, n| match n.op {
        Op::Whole(Whole::Windowed(Sliding { how: Windowed::Mean(mean), border })) if is_large(&mean) => {
            let Reach { up, down, left, right } = mean.reach;
            let of = out.node(n.inputs[0]).dtype.stored();
            let rows = BoxMean { reach: Reach { up: 0, down: 0, left, right }, count: 0 };
            let columns = BoxMean { reach: Reach { up, down, left: 0, right: 0 }, count: mean.count };
            let (shape, dtype, site) = (n.shape, n.dtype, n.site);
            let first =
                out.push(Node { op: Sliding { how: Windowed::Mean(rows), border }.into(), dtype: summed(of), ..n });
            let op =
                Op::from(Sliding { how: Windowed::Mean(columns), border: sum_of_constant(border, of, rows.width()) });
            out.push(Node { op, inputs: vec![first], shape, dtype, site })
        }
        _ => out.push(n),
    })
}

fn is_large(mean: &BoxMean) -> bool {
    let (height, width) = (mean.height(), mean.width());
    mean.count > 0 && height > 1 && width > 1 && height.max(width) > TOGETHER
}

/// The border of images of sums of `n` pixels: a constant becomes the sum of `n` constants.
fn sum_of_constant(border: Border, dtype: DType, n: usize) -> Border {
    let Border::Constant(v) = border else { return border };
    let pixel = horus_base::dispatch!(dtype, T => T::from_f64(v).to_f64());
    Border::Constant(horus_base::dispatch_float!(summed(dtype), A => line_sum(n, &|_| A::from_f64(pixel)).to_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::ValueId;
    use horus_base::shape::Shape;
    use std::panic::Location;

    #[test]
    fn only_large_rectangles_are_split_and_constants_are_summed() {
        let shape = Shape::new(9, 9, 1);
        let site = Location::caller().into();
        for (height, width, nodes) in [(TOGETHER, TOGETHER, 2), (TOGETHER + 1, 2, 3), (1, 900, 2), (900, 1, 2)] {
            let reach = Reach { up: height - 1, left: width - 1, ..Reach::NONE };
            let mut graph = Graph::default();
            let source = Op::Source(ValueId(0));
            let image = graph.push(Node { op: source, inputs: vec![], shape, dtype: DType::U8, site });
            let op = Op::from(Sliding { how: Windowed::Mean(BoxMean::over(reach)), border: Border::Constant(300.0) });
            let mean = graph.push(Node { op, inputs: vec![image], shape, dtype: DType::F32, site });
            graph.roots = vec![mean];
            let graph = split(graph);
            assert_eq!(graph.nodes.len(), nodes, "{height}x{width}");
            let last = graph.node(graph.roots[0]);
            if nodes == 3 {
                let border = Border::Constant(255.0 * width as f64);
                assert!(
                    matches!(&last.op, Op::Whole(Whole::Windowed(Sliding { how: Windowed::Mean(m), border: b })) if m.count == height * width && *b == border)
                );
                assert_eq!(graph.node(last.inputs[0]).dtype, DType::F64);
            }
        }
    }
}
