//! Programs as Rust, in the words of the harness: what `found.rs` keeps.

use horus_core::dispatch;
use horus_core::dtype::{Pixel, Scalar};
use horus_core::ir::graph::{Op, PixelOpOperand};
use horus_core::ops::components::{ComponentValue, Connectivity};
use horus_core::ops::distance::{Metric, NearestOnLine, NearestPixel};
use horus_core::ops::edge::WarpEdge;
use horus_core::ops::fourier::Across;
use horus_core::ops::neighbourhood::{Filter, FilterLayout, Generalized, OrderFilter, TapLevels, Truncated};
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::windowed::{Ranked, Windowed};
use horus_core::ops::{Components, LabelReduce, Reconstruction, Remap, Resize, Sliding, Tiled, Whole};
use horus_core::shape::{Border, Shape};
use horus_testing::reference::ReferenceImage;

use super::{ConformanceProgram, image};

/// Seeds of images that are printed as such; others are printed pixel by pixel.
pub(crate) const SEEDS: std::ops::Range<u64> = 0..8;

/// The body of a function that returns the program.
pub(crate) fn printed(program: &ConformanceProgram) -> String {
    let mut text = String::from("let mut p = ConformanceProgram::default();\n");
    for (id, node) in program.graph.iter() {
        let made = match &node.op {
            Op::Source(v) => format!("p.source({})", pixels(&program.sources[v.0 as usize])),
            op => {
                let inputs = list(&node.inputs, |i| format!("v{}", i.0));
                format!("p.op({}, &[{inputs}], {}, DType::{:?})", operation(op), shape(node.shape), node.dtype)
            }
        };
        text += &format!("let v{} = {made};\n", id.0);
    }
    text + &format!("p.wanted(&[{}])\n", list(&program.graph.roots, |r| format!("v{}", r.0)))
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn pixels(given: &ReferenceImage) -> String {
    let (of, dtype) = (given.shape, given.dtype());
    match SEEDS.clone().find(|seed| image(of, dtype, *seed) == *given) {
        Some(seed) => format!("image({}, DType::{dtype:?}, {seed})", shape(of)),
        None => dispatch!(dtype, T => {
            let all = list(given.as_slice::<T>(), |v| number(&format!("{v:?}"), std::any::type_name::<T>()));
            format!("ReferenceImage::new::<{}>({}, vec![{all}])", std::any::type_name::<T>(), shape(of))
        }),
    }
}

/// A number, of type `of` if it is not finite.
fn number(text: &str, of: &str) -> String {
    match text {
        "NaN" => format!("{of}::NAN"),
        "inf" => format!("{of}::INFINITY"),
        "-inf" => format!("-{of}::INFINITY"),
        finite => finite.into(),
    }
}

fn double(v: f64) -> String {
    number(&format!("{v:?}"), "f64")
}

fn shape(of: Shape) -> String {
    let Shape { depth, height, width, channels, .. } = of;
    match depth {
        1 => format!("Shape::new({height}, {width}, {channels})"),
        _ => format!("Shape::volume({depth}, {height}, {width}, {channels})"),
    }
}

fn border(of: Border) -> String {
    match of {
        Border::Constant(v) => format!("Border::Constant({})", double(v)),
        mode => format!("Border::{mode:?}"),
    }
}

fn scalar(of: Scalar) -> String {
    dispatch!(of.dtype(), T => {
        let name = std::any::type_name::<T>();
        format!("Scalar::{}({})", name.to_uppercase(), number(&format!("{:?}", T::from_scalar(of)), name))
    })
}

fn filter(of: &Filter) -> String {
    let taps = list(of.taps(), |t| double(*t));
    match of.layout() {
        &FilterLayout::Dense { height, width, anchor_y, anchor_x }
            if (anchor_y, anchor_x) == (height / 2, width / 2) =>
        {
            format!("Filter::dense({height}, {width}, vec![{taps}])")
        }
        _ => format!("Filter::sparse(vec!{:?}, vec![{taps}])", of.offsets()),
    }
}

fn neighbours(of: Connectivity) -> String {
    let named = [("FACES", Connectivity::FACES), ("EDGES", Connectivity::EDGES), ("CORNERS", Connectivity::CORNERS)];
    match named.iter().find(|(_, known)| *known == of) {
        Some((name, _)) => format!("Connectivity::{name}"),
        None => {
            let mut structure = [[[false; 3]; 3]; 3];
            let at = |d: isize| (d + 1).cast_unsigned();
            of.before().for_each(|[z, y, x]| structure[at(z)][at(y)][at(x)] = true);
            format!("Connectivity::new({structure:?})")
        }
    }
}

fn operation(of: &Op) -> String {
    match of {
        Op::Source(_) => "a source".into(),
        Op::Fill(v) => format!("Op::Fill({})", scalar(*v)),
        Op::Index(axis) => format!("Op::Index(Axis::{axis:?})"),
        Op::Pixel(op, operands) => {
            let operands = list(operands, |o| match o {
                PixelOpOperand::Input(i) => format!("PixelOpOperand::Input({i})"),
                PixelOpOperand::Const(c) => format!("PixelOpOperand::Const({})", scalar(*c)),
            });
            format!("Op::Pixel(PixelOp::{op:?}, vec![{operands}])")
        }
        Op::Convert(rule) => format!("Op::Convert(Conversion::{rule:?})"),
        Op::Planes(map) => {
            let PlaneMap { channels, depth, stride, channel, step, offset, border: edge } = map;
            let levels = format!("channel: {channel:?}, step: {step}, offset: {offset}, border: {}", border(*edge));
            format!("Op::Planes(PlaneMap {{ channels: {channels}, depth: {depth}, stride: {stride}, {levels} }})")
        }
        Op::Correlate(taps, edge) => format!("Op::Correlate({}, {})", filter(taps), border(*edge)),
        Op::Separable { row, column, border: edge } => {
            let (row, column) = (filter(row), filter(column));
            format!("Op::Separable {{ row: {row}, column: {column}, border: {} }}", border(*edge))
        }
        Op::OrderFilter(OrderFilter::Median(size), edge) => {
            format!("Op::OrderFilter(MedianSize::{size:?}.into(), {})", border(*edge))
        }
        Op::OrderFilter(OrderFilter::Fold(Generalized { window, combine, reduce }), edge) => {
            let how = format!("combine: Combine::{combine:?}, reduce: Reduce::{reduce:?}");
            format!("Op::OrderFilter(Generalized {{ window: {}, {how} }}.into(), {})", filter(window), border(*edge))
        }
        Op::OrderFilter(OrderFilter::Truncated(Truncated { window, pairing, levels }), edge) => {
            let levels = levels.as_ref().map_or("None".to_string(), |TapLevels { by, depth, channels }| {
                format!("Some(TapLevels {{ by: vec!{by:?}.into(), depth: {depth}, channels: {channels} }})")
            });
            let how = format!("window: {}, pairing: Pairing::{pairing:?}, levels: {levels}", filter(window));
            format!("Op::OrderFilter(Truncated {{ {how} }}.into(), {})", border(*edge))
        }
        Op::Warp(map, how, edge) => {
            let edge = match edge {
                WarpEdge::Border(mode) => format!("{}.into()", border(*mode)),
                WarpEdge::Inside(inside) => format!("WarpEdge::Inside({inside:?})"),
            };
            format!("Op::Warp({map:?}, Interpolation::{how:?}, {edge})")
        }
        Op::Flip(flip) => format!("Op::Flip(Flip::{flip:?})"),
        Op::Whole(whole) => format!("Op::from({})", whole_image(whole)),
    }
}

fn whole_image(of: &Whole) -> String {
    match of {
        Whole::Merge(unit) => format!("{unit:?}"),
        Whole::Transpose(unit) => format!("{unit:?}"),
        Whole::Deinterleave(unit) => format!("{unit:?}"),
        Whole::Interleave(unit) => format!("{unit:?}"),
        Whole::MatrixProduct(unit) => format!("{unit:?}"),
        Whole::Lookup(unit) => format!("{unit:?}"),
        Whole::Running(unit) => format!("{unit:?}"),
        Whole::Thin(unit) => format!("{unit:?}"),
        Whole::RunningDepth(unit) => format!("{unit:?}"),
        Whole::Remap(Remap { sampling, border: edge, outside }) => {
            format!(
                "Remap {{ sampling: Sampling::{sampling:?}, border: {}, outside: {} }}",
                border(*edge),
                outside.map_or("None".into(), |v| format!("Some({})", scalar(v)))
            )
        }
        Whole::Resize(Resize { how, rows, columns }) => {
            format!("Resize {{ how: Resampling::{how:?}, rows: {rows:?}, columns: {columns:?} }}")
        }
        Whole::Fourier(how) => {
            let across = how.across.map_or("None".into(), |Across { before, stored }| {
                format!("Some(Across {{ before: {before}, stored: DType::{stored:?} }})")
            });
            let rest = format!("across: {across}, origin: {:?}", how.origin);
            let filters = list(&how.filters, filter);
            format!("Fourier {{ {rest}, ..Fourier::of([{filters}], {}, {:?}) }}", border(how.border), how.tile)
        }
        Whole::Windowed(Sliding { how, border: edge }) => {
            let how = match how {
                Windowed::Mean(mean) => format!("Windowed::Mean({mean:?})"),
                Windowed::Variance(mean) => format!("Windowed::Variance({mean:?})"),
                Windowed::Rank(Ranked { spans, place }) => {
                    format!("Windowed::Rank(Ranked {{ spans: {spans:?}.into(), place: {place} }})")
                }
            };
            format!("Sliding {{ how: {how}, border: {} }}", border(*edge))
        }
        Whole::RowReduce(how) => format!("RowReduce::{how:?}"),
        Whole::Fold(how) => format!("Fold::{how:?}"),
        Whole::Tiles(Tiled { grid, reduce }) => format!("Tiled {{ grid: {grid:?}, reduce: TileReduce::{reduce:?} }}"),
        Whole::Labels(LabelReduce::Sum { count, squares, of }) => {
            format!("LabelReduce::Sum {{ count: {count}, squares: {squares}, of: DType::{of:?} }}")
        }
        Whole::Labels(how) => format!("LabelReduce::{how:?}"),
        Whole::Components(Components { neighbours: how, value }) => {
            let value = if *value == ComponentValue::Label { "labels" } else { "sizes" };
            format!("Components::{value}({})", neighbours(*how))
        }
        Whole::NearestOnLine(NearestOnLine { along }) => format!("NearestOnLine {{ along: Axis::{along:?} }}"),
        Whole::NearestPixel(NearestPixel { along, offsets, metric, found }) => {
            let metric = match metric {
                Metric::Euclidean(spacing) => {
                    format!("Metric::Euclidean(Spacing::new([{}]))", list(&spacing.get(), |v| double(*v)))
                }
                other => format!("Metric::{other:?}"),
            };
            let rest = format!("offsets: {offsets:?}, metric: {metric}, found: NearestResult::{found:?}");
            format!("NearestPixel {{ along: Axis::{along:?}, {rest} }}")
        }
        Whole::Reconstruct(Reconstruction { erosion, neighbours: how }) => {
            format!("Reconstruction {{ erosion: {erosion}, neighbours: {} }}", neighbours(*how))
        }
        Whole::Histogram(how) => {
            format!("Histogram::new({}, {}, {})", how.bins, double(how.lo()), double(how.hi()))
        }
    }
}
