//! Groups of filters: the filters of a group share one geometry and one feed of rows.

use std::borrow::Cow;

use crate::bytes::{self, Dot};
use crate::correlate::group_size;
use crate::rows;
use crate::simd::Isa;
use horus_base::dispatch_float;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::Border;
use horus_host::buffer::HostBuffer;
use horus_plan::ir::kernel::{FilterSource, LeafOp, MapKernel};
use horus_plan::ops::neighbourhood::{Filter, FilterLayout, Reach};

/// The rows that filters read: of an input, or of up to [`rows::MOST`] row filters of one, continued by a border.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeedSpec {
    /// An input or a chain.
    pub(crate) source: FilterSource,
    /// The row filters, all with border `pass_border`; none if the input itself is read.
    pub(crate) stages: Vec<usize>,
    pub(crate) stage_border: Border,
    pub(crate) border: Border,
    /// The type of its rows: floats, or bytes stored as [quads](crate::bytes).
    pub(crate) dtype: DType,
    /// Samples of a pixel.
    pub(crate) samples: usize,
    /// Reach in elements.
    pub(crate) reach: Reach,
    /// Rows are kept in a ring even where no border is applied: rows of a chain always; rows of an image whose row
    /// length is a power of two for a tall sparse filter, which reads many rows for each output row that compete for
    /// the same cache sets.
    pub(crate) copied: bool,
}

impl FeedSpec {
    /// Returns `true` if rows of bytes are stored as quads.
    pub(crate) fn is_bytes(&self) -> bool {
        !self.dtype.is_float()
    }

    /// Bytes of an element of its rows.
    pub(crate) fn element(&self) -> usize {
        if self.is_bytes() { bytes::QUAD } else { self.dtype.size() }
    }
}

/// Filters of one geometry over one feed.
#[derive(Debug)]
pub(crate) struct FilterGroup {
    pub(crate) feed: usize,
    /// Index of the feed's row filter.
    pub(crate) part: usize,
    /// Reach in elements.
    pub(crate) reach: Reach,
    pub(crate) layout: FilterLayout,
    /// Offsets of a sparse layout from the upper left corner of its reach, in elements.
    pub(crate) offsets: Vec<(usize, usize)>,
    /// Weights of all filters, tap by tap.
    pub(crate) weights: HostBuffer,
    /// Initial sums of the filters, if not zeros.
    pub(crate) start: HostBuffer,
    /// Instructions for bytes, if the feed has bytes.
    pub(crate) dot: Option<Dot>,
    pub(crate) leaves: Vec<usize>,
    /// Pixels are copied, not filtered: the group is a shift.
    pub(crate) moved: bool,
}

/// The taps of `filters`, which have one geometry, rounded to `dtype` and interleaved.
pub(super) fn weights(filters: &[&Filter], dtype: DType) -> HostBuffer {
    dispatch_float!(dtype, T => {
        let taps = filters.first().map_or(0, |f| f.taps().len());
        let all: Vec<T> =
            (0..taps).flat_map(|i| filters.iter().map(move |f| T::from_f64(f.taps()[i]))).collect();
        HostBuffer::from_slice(&all)
    })
}

/// The type in which filters over an input or a chain compute.
pub(super) fn source_type(kernel: &MapKernel, dtypes: &[DType], source: FilterSource) -> DType {
    match source {
        FilterSource::Input(i) => dtypes[i].linear(),
        FilterSource::Chain(c) => kernel.chains[c].result_type(),
        FilterSource::Stage(s) => source_type(kernel, dtypes, kernel.stages[s].source),
    }
}

/// The offsets of a sparse filter from the upper left corner of its reach.
fn corner_offsets(filter: &Filter, samples: usize) -> Vec<(usize, usize)> {
    let reach = filter.reach();
    let (up, left) = (reach.up.cast_signed(), reach.left.cast_signed());
    let moved = |&(y, x): &(isize, isize)| ((y + up).cast_unsigned(), (x + left).cast_unsigned() * samples);
    match filter.layout() {
        FilterLayout::Dense { .. } => Vec::new(),
        FilterLayout::Sparse(_) => filter.offsets().iter().map(moved).collect(),
    }
}

/// The source, taps and border of a leaf; `None` for a leaf that is neither a filter nor a shift.
fn around(op: &LeafOp) -> Option<(FilterSource, Cow<'_, Filter>, Border)> {
    match op {
        LeafOp::Correlate(source, filter, border) => Some((*source, Cow::Borrowed(filter), *border)),
        LeafOp::Shift(source, [y, x], border) => {
            let one = Filter::sparse([(*y as i32, *x as i32)], [1.0]);
            Some((*source, Cow::Owned(one), *border))
        }
        _ => None,
    }
}

/// The grouped filters of a kernel. Every filter is in one group, and every group reads one row filter of one feed.
pub(super) struct FilterGroups<'a> {
    kernel: &'a MapKernel,
    dtypes: &'a [DType],
    /// The instruction set, if filters of bytes may be computed in integers.
    isa: Option<Isa>,
    samples: usize,
    pub(super) feeds: Vec<FeedSpec>,
    pub(super) groups: Vec<FilterGroup>,
    /// Group of each leaf.
    pub(super) of_leaf: Vec<Option<usize>>,
}

impl<'a> FilterGroups<'a> {
    /// Groups the leaves `filters` of a kernel over inputs of types `dtypes`, in this order. With an instruction set,
    /// filters of bytes may be computed in integers.
    pub(super) fn new(
        kernel: &'a MapKernel,
        dtypes: &'a [DType],
        (isa, samples): (Option<Isa>, usize),
        filters: Vec<usize>,
    ) -> FilterGroups<'a> {
        let of_leaf = vec![None; kernel.leaves.len()];
        let isa = isa.filter(|_| samples <= bytes::SAMPLES);
        let mut all = FilterGroups { kernel, dtypes, isa, samples, feeds: Vec::new(), groups: Vec::new(), of_leaf };
        all.form(filters);
        all
    }

    /// Collects filters of one geometry over one feed, then cuts these banks into groups.
    fn form(&mut self, filters: Vec<usize>) {
        let mut banks: Vec<((usize, usize), Vec<usize>)> = Vec::new();
        for l in filters {
            let Some((source, filter, border)) = around(&self.kernel.leaves[l].op) else { continue };
            let bytes = self.isa.and_then(|isa| {
                Dot::of(&filter, isa)?;
                self.kernel.bytes(&self.kernel.leaves[l])
            });
            let feed = match bytes {
                Some((input, dtype)) => self.feed(FilterSource::Input(input), dtype, border, &filter),
                None => self.feed(source, source_type(self.kernel, self.dtypes, source), border, &filter),
            };
            let same = |other: usize| match (&self.kernel.leaves[l].op, &self.kernel.leaves[other].op) {
                (LeafOp::Correlate(..), LeafOp::Correlate(_, f, _)) => f.layout() == filter.layout(),
                _ => false,
            };
            match banks.iter_mut().find(|(f, members)| *f == feed && same(members[0])) {
                Some((_, members)) => members.push(l),
                None => banks.push((feed, vec![l])),
            }
        }
        for ((feed, part), members) in banks {
            let mut rest = &members[..];
            while !rest.is_empty() {
                let (group, tail) = rest.split_at(group_size(rest.len()));
                rest = tail;
                let moved = matches!(self.kernel.leaves[group[0]].op, LeafOp::Shift(..));
                let filters: Vec<Cow<'_, Filter>> =
                    group.iter().filter_map(|&l| around(&self.kernel.leaves[l].op)).map(|(_, f, _)| f).collect();
                let all: Vec<&Filter> = filters.iter().map(AsRef::as_ref).collect();
                group.iter().for_each(|&l| self.of_leaf[l] = Some(self.groups.len()));
                let dtype = self.feeds[feed].dtype;
                let dot = self.isa.filter(|_| !dtype.is_float()).and_then(|isa| Dot::of(all[0], isa));
                let (weights, start) = match dot {
                    Some(_) => (
                        HostBuffer::from_slice(&bytes::taps(&all)),
                        HostBuffer::from_slice(&bytes::starts(&all, dtype)),
                    ),
                    None => (weights(&all, dtype), HostBuffer::zeroed(0)),
                };
                self.groups.push(FilterGroup {
                    feed,
                    part,
                    reach: filters[0].reach().in_samples(self.samples),
                    layout: filters[0].layout().clone(),
                    offsets: corner_offsets(all[0], self.samples),
                    weights,
                    start,
                    dot,
                    leaves: group.to_vec(),
                    moved,
                });
            }
        }
    }

    /// The feed for a filter over rows of a type, widened to its reach, and the index of the filter's row filter.
    fn feed(&mut self, source: FilterSource, dtype: DType, border: Border, filter: &Filter) -> (usize, usize) {
        let (samples, reach) = (self.samples, filter.reach().in_samples(self.samples));
        let scattered = matches!(filter.layout(), FilterLayout::Sparse(_)) && reach.up + reach.down >= 8;
        let stages = &self.kernel.stages;
        let (image, stage) = match source {
            FilterSource::Stage(s) => (stages[s].source, Some(s)),
            image => (image, None),
        };
        let pass_border = stage.map_or(border, |s| stages[s].border);
        let fits = |f: &FeedSpec| {
            let room = match stage {
                None => f.stages.is_empty(),
                Some(s) => f.stages.contains(&s) || (!f.stages.is_empty() && f.stages.len() < rows::MOST),
            };
            room && (f.source, f.dtype) == (image, dtype) && f.border == border && f.stage_border == pass_border
        };
        let feeds = &mut self.feeds;
        let at = feeds.iter().position(fits).unwrap_or_else(|| {
            let stages = stage.into_iter().collect();
            let copied = matches!(image, FilterSource::Chain(_)) || !dtype.is_float();
            feeds.push(FeedSpec {
                source: image,
                stages,
                stage_border: pass_border,
                border,
                dtype,
                samples,
                reach,
                copied,
            });
            feeds.len() - 1
        });
        let feed = &mut feeds[at];
        feed.reach = feed.reach.max(reach);
        feed.copied |= scattered;
        let Some(s) = stage else { return (at, 0) };
        let part = feed.stages.iter().position(|&t| t == s).unwrap_or_else(|| {
            feed.stages.push(s);
            feed.stages.len() - 1
        });
        (at, part)
    }
}
