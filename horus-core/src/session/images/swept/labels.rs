//! Connected components: the runs of pixels of groups of rows in a temporary file, and how their components are joined.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::{Sweep, SweepFailure};
use crate::cpu::sweeps::ComponentRuns;
use crate::dispatch;
use crate::dtype::DType;
use crate::host::workers::Workers;
use crate::ops::components::{ComponentValue, Connectivity};
use crate::shape::{Region, Shape};
use horus_files::{FileTraffic, RegionSource, TemporaryFile};

/// Bytes for each pixel that is processed. If pixels alternate, one in two is a run, with its component, its parent and
/// what is written.
pub(super) const PIXEL: usize = 24;

/// A run of pixels: the first column, the one after the last, and the component among those of its group.
type Run = [u32; 3];

/// Rows that were labelled together.
struct Group {
    rows: Range<usize>,
    /// Position in the file: the end of each row's runs, counted from the first row on, then the runs, then the number
    /// of pixels of each component.
    at: u64,
    /// Number of runs.
    runs: usize,
    /// Number of components in earlier groups, and in this one.
    components: Range<u64>,
    /// Number of labels in earlier groups.
    labels: u64,
    /// Components that are part of one in an earlier group, or of an earlier one of this group, and their labels. For
    /// sizes, also those that others are part of, and the sizes of all.
    joined: Vec<(u32, i32)>,
}

/// The values of components of a group.
enum ComponentValues {
    /// Labels.
    Labels,
    /// Components, in their order, and their sizes if they are not joined.
    Sizes(Vec<u32>, Vec<i32>),
}

impl Group {
    /// The value of a component.
    fn value(&self, component: u32, values: &ComponentValues) -> i32 {
        match self.joined.binary_search_by_key(&component, |(joined, _)| *joined) {
            Ok(at) => self.joined[at].1,
            Err(before) => match values {
                // The number of labels was checked.
                ComponentValues::Labels => (self.labels + u64::from(component) + 1 - before as u64) as i32,
                ComponentValues::Sizes(of, sizes) => of.binary_search(&component).map_or(0, |at| sizes[at]),
            },
        }
    }
}

/// The runs of all rows.
struct RunFile {
    shape: Shape,
    value: ComponentValue,
    groups: Vec<Group>,
    file: TemporaryFile,
}

/// Runs of consecutive rows of a group.
struct GroupRows {
    rows: Range<usize>,
    /// The end of each row's runs.
    ends: Vec<usize>,
    runs: Vec<Run>,
}

impl GroupRows {
    fn row(&self, row: usize) -> &[Run] {
        let k = row - self.rows.start;
        &self.runs[k.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[k]]
    }
}

impl RunFile {
    /// Numbers of the groups with these rows.
    fn group_numbers(&self, rows: &Range<usize>) -> Range<usize> {
        let first = self.groups.partition_point(|group| group.rows.end <= rows.start);
        let end = self.groups.partition_point(|group| group.rows.start < rows.end);
        first..end.max(first)
    }

    /// Runs of those of these rows that a group has.
    fn read(&self, group: &Group, rows: &Range<usize>) -> Result<GroupRows, String> {
        let rows = rows.start.max(group.rows.start)..rows.end.min(group.rows.end);
        let before = rows.start - group.rows.start;
        // With the end of the row before.
        let known = before.min(1);
        let mut ends = vec![0u32; known + rows.len()];
        let at = (before - known) * size_of::<u32>();
        self.file.get(group.at + at as u64, bytemuck::cast_slice_mut(&mut ends))?;
        let first = if known > 0 { ends.remove(0) } else { 0 };
        let ends: Vec<usize> = ends.into_iter().map(|end| (end - first) as usize).collect();
        let mut runs = vec![[0; 3]; ends.last().copied().unwrap_or(0)];
        let at = group.rows.len() * size_of::<u32>() + first as usize * size_of::<Run>();
        self.file.get(group.at + at as u64, bytemuck::cast_slice_mut(&mut runs))?;
        Ok(GroupRows { rows, ends, runs })
    }
}

impl RunFile {
    /// Values of the components of rows of a group.
    fn values(&self, group: &Group, rows: &GroupRows) -> Result<ComponentValues, String> {
        if self.value == ComponentValue::Label {
            return Ok(ComponentValues::Labels);
        }
        let mut components: Vec<u32> = rows.runs.iter().map(|run| run[2]).collect();
        components.sort_unstable();
        components.dedup();
        let mut sizes = Vec::with_capacity(components.len());
        for stretch in components.chunk_by(|a, b| a + 1 == *b) {
            sizes.extend(self.sizes(group, stretch[0]..stretch[0] + stretch.len() as u32)?);
        }
        Ok(ComponentValues::Sizes(components, sizes))
    }

    /// Sizes of components of a group, each alone.
    fn sizes(&self, group: &Group, components: Range<u32>) -> Result<Vec<i32>, String> {
        let mut sizes = vec![0; components.len()];
        let before = group.rows.len() * size_of::<u32>() + group.runs * size_of::<Run>();
        let at = before + components.start as usize * size_of::<i32>();
        self.file.get(group.at + at as u64, bytemuck::cast_slice_mut(&mut sizes))?;
        Ok(sizes)
    }
}

/// The sweep of [`Components`](crate::ops::Components).
pub(super) struct LabelSweep {
    of: DType,
    how: Connectivity,
    found: RunFile,
    /// Bytes of the file.
    end: u64,
    /// An earlier component that a component is part of. Components are counted over all groups.
    parents: HashMap<u64, u64>,
}

impl LabelSweep {
    pub(super) fn new(shape: Shape, of: DType, how: Connectivity, value: ComponentValue) -> Result<LabelSweep, String> {
        let found = RunFile { shape, value, groups: Vec::new(), file: TemporaryFile::new()? };
        Ok(LabelSweep { of, how, found, end: 0, parents: HashMap::new() })
    }

    /// The first component of those that a component is part of; shortens the way there.
    fn root(&mut self, component: u64) -> u64 {
        let mut root = component;
        while let Some(up) = self.parents.get(&root) {
            root = *up;
        }
        let mut next = component;
        while next != root {
            next = self.parents.insert(next, root).unwrap_or(root);
        }
        root
    }

    /// Joins components of the last group with those of earlier groups that touch them.
    fn join(&mut self, own: &ComponentRuns) -> Result<(), String> {
        let Some(last) = self.found.groups.last() else { return Ok(()) };
        let (rows, shape, first) = (last.rows.clone(), self.found.shape, last.components.start);
        let reach = if shape.depth > 1 { shape.height + 1 } else { 1 };
        // The rows of the level before that have neighbours, and the row before.
        let before =
            rows.start.saturating_sub(reach)..(rows.end + 2).saturating_sub(reach).min(rows.start - rows.start.min(1));
        let last = rows.start.saturating_sub(1)..rows.start;
        for earlier in [before, last].into_iter().filter(|earlier| !earlier.is_empty()) {
            self.join_rows(own, (rows.clone(), first), reach, &earlier)?;
        }
        Ok(())
    }

    /// Joins components of rows of the last group, from its component `first` on, with those of some earlier rows.
    fn join_rows(
        &mut self,
        own: &ComponentRuns,
        (rows, first): (Range<usize>, u64),
        reach: usize,
        earlier: &Range<usize>,
    ) -> Result<(), String> {
        let shape = self.found.shape;
        for k in self.found.group_numbers(earlier) {
            let group = &self.found.groups[k];
            let (theirs, before) = (self.found.read(group, earlier)?, group.components.start);
            for row in rows.start..rows.end.min(rows.start + reach) {
                let runs = &own.runs[own.rows[row - rows.start]..own.rows[row - rows.start + 1]];
                let mut touching = Vec::new();
                for [dz, dy, dx] in self.how.before() {
                    let other = (row / shape.height).checked_add_signed(dz).and_then(|z| {
                        let y = (row % shape.height).checked_add_signed(dy).filter(|y| *y < shape.height)?;
                        Some(z * shape.height + y)
                    });
                    let Some(other) = other.filter(|other| theirs.rows.contains(other)) else { continue };
                    let found = |a: u32, b: u32| touching.push((first + u64::from(a), before + u64::from(b)));
                    for_each_touching(runs, theirs.row(other), dx as i64, found);
                }
                for (a, b) in touching {
                    let (a, b) = (self.root(a), self.root(b));
                    if a != b {
                        self.parents.insert(a.max(b), a.min(b));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Calls `found` with the components of runs of two rows that touch, if neighbours are `dx` columns further right.
fn for_each_touching(row: &[Run], other: &[Run], dx: i64, mut found: impl FnMut(u32, u32)) {
    let mut next = 0;
    for [start, end, component] in row {
        let (start, end) = (i64::from(*start) + dx, i64::from(*end) + dx);
        while other.get(next).is_some_and(|run| i64::from(run[1]) <= start) {
            next += 1;
        }
        for run in other[next..].iter().take_while(|run| i64::from(run[0]) < end) {
            found(*component, run[2]);
        }
    }
}

impl Sweep for LabelSweep {
    fn take(&mut self, rows: Range<usize>, inputs: &[&[u8]], workers: &Workers) -> Result<(), String> {
        let Shape { height, width, .. } = self.found.shape;
        let (first, extent, how) = (rows.start, [height, width], self.how);
        let own = dispatch!(self.of, T => {
            let pixels = bytemuck::cast_slice::<u8, T>(inputs[0]);
            workers.help(|| ComponentRuns::of(pixels, first, extent, how, workers.threads()))
        });
        let ends: Vec<u32> = own.rows[1..].iter().map(|end| *end as u32).collect();
        let (at, runs) = (self.end, own.runs.len());
        let sizes = if self.found.value == ComponentValue::Size { own.sizes() } else { Vec::new() };
        for part in
            [bytemuck::cast_slice(&ends), bytemuck::cast_slice::<Run, u8>(&own.runs), bytemuck::cast_slice(&sizes)]
        {
            self.found.file.put(self.end, part)?;
            self.end += part.len() as u64;
        }
        let before = self.found.groups.last().map_or(0, |group| group.components.end);
        let components = before..before + own.count as u64;
        self.found.groups.push(Group { rows, at, runs, components, labels: 0, joined: Vec::new() });
        self.join(&own)
    }

    fn finish(
        mut self: Box<Self>,
        _: &Workers,
        stop: &dyn Fn() -> bool,
    ) -> Result<Arc<dyn RegionSource>, SweepFailure> {
        let mut joined: Vec<u64> = self.parents.keys().copied().collect();
        joined.sort_unstable();
        let joined: Vec<(u64, u64)> = joined.into_iter().map(|component| (component, self.root(component))).collect();
        match self.found.value {
            ComponentValue::Label => self.found.number(joined)?,
            ComponentValue::Size => self.found.count(joined, stop)?,
        }
        Ok(Arc::new(self.found))
    }
}

impl RunFile {
    /// The group of a component, and its number there.
    fn place(&self, component: u64) -> (usize, u32) {
        let group = self.groups.partition_point(|group| group.components.end <= component);
        (group, (component - self.groups[group].components.start) as u32)
    }

    /// Labels components; `joined` are those that are part of an earlier one, with that one, in their order.
    fn number(&mut self, joined: Vec<(u64, u64)>) -> Result<(), SweepFailure> {
        let mut joined = joined.into_iter().peekable();
        let mut labels = 0;
        for k in 0..self.groups.len() {
            self.groups[k].labels = labels;
            let components = self.groups[k].components.clone();
            while let Some((component, root)) = joined.next_if(|(component, _)| *component < components.end) {
                // The root comes first: its label is known.
                let (of, at) = self.place(root);
                let label = self.groups[of].value(at, &ComponentValues::Labels);
                self.groups[k].joined.push(((component - components.start) as u32, label));
            }
            labels += components.end - components.start - self.groups[k].joined.len() as u64;
            if labels > i32::MAX as u64 {
                let message = format!("more than {} connected components; labels are i32", i32::MAX);
                return Err(SweepFailure::Result(message));
            }
        }
        Ok(())
    }

    /// Counts the pixels of components that are joined.
    fn count(&mut self, joined: Vec<(u64, u64)>, stop: &dyn Fn() -> bool) -> Result<(), SweepFailure> {
        let mut totals: HashMap<u64, i64> = HashMap::new();
        let roots: HashSet<u64> = joined.iter().map(|(_, root)| *root).collect();
        let mut all: Vec<(u64, u64)> = joined;
        all.extend(roots.into_iter().map(|root| (root, root)));
        all.sort_unstable();
        for (component, root) in &all {
            if stop() {
                return Err(SweepFailure::Stopped);
            }
            let (group, at) = self.place(*component);
            *totals.entry(*root).or_default() += i64::from(self.sizes(&self.groups[group], at..at + 1)?[0]);
        }
        for (component, root) in all {
            let (group, at) = self.place(component);
            let size = i32::try_from(totals[&root]).unwrap_or(i32::MAX);
            self.groups[group].joined.push((at, size));
        }
        Ok(())
    }
}

impl RegionSource for RunFile {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn dtype(&self) -> DType {
        DType::I32
    }

    fn chunk(&self) -> (usize, usize) {
        (1, self.shape.width)
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.fill_levels(0..self.shape.depth, region, to, workers)
    }

    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        /// Pixels of a part for a thread.
        const PART: usize = 1 << 16;
        let (height, width) = (self.shape.height, region.width);
        let lines = (PART / width.max(1)).max(1);
        let parts = levels.flat_map(|z| {
            let end = z * height + region.bottom();
            (z * height + region.top..end).step_by(lines).map(move |first| first..end.min(first + lines))
        });
        let mut to: &mut [i32] = bytemuck::cast_slice_mut(to);
        let mut items = Vec::new();
        for rows in parts {
            let (part, rest) = to.split_at_mut(rows.len() * width);
            items.push((rows, part));
            to = rest;
        }
        workers.each(items, |(): &mut (), (rows, to)| {
            for group in &self.groups[self.group_numbers(&rows)] {
                let part = self.read(group, &rows)?;
                let values = self.values(group, &part)?;
                for row in part.rows.clone() {
                    let at = (row - rows.start) * width;
                    let value = |component| group.value(component, &values);
                    write(part.row(row), value, (region.left, region.right()), &mut to[at..at + width]);
                }
            }
            Ok(())
        })
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic::default()
    }
}

/// Writes the values of some columns of a row.
fn write(runs: &[Run], value: impl Fn(u32) -> i32, (left, right): (usize, usize), to: &mut [i32]) {
    let mut written = left;
    for [start, end, component] in runs {
        let (start, end) = ((*start as usize).max(left), (*end as usize).min(right));
        if start < end {
            to[written - left..start - left].fill(0);
            to[start - left..end - left].fill(value(*component));
            written = end;
        }
    }
    to[written - left..].fill(0);
}
