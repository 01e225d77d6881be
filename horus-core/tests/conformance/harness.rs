//! Records programs by hand, and evaluates them at every place.

// Beside this file, wherever it is included from.
#[path = "printed.rs"]
pub(crate) mod printed;
#[path = "shrink.rs"]
pub(crate) mod shrink;

use std::collections::HashMap;
use std::io::Write as _;
use std::num::NonZeroU8;
use std::panic::Location;

use horus_core::comm::threads::ThreadComm;
use horus_core::comm::{Communicator, SingleRankComm};
use horus_core::device::{Device, DownloadStart, Geometry, Memory};
use horus_core::dispatch;
use horus_core::dtype::{Arithmetic, Conversion, DType, Pixel, Scalar};
use horus_core::execute::portions::{Portion, PortionOrigin, assembled};
use horus_core::execute::trace::Trace;
use horus_core::execute::{Batches, Delivered, ExecutionContext, ExecutionOutcome, RankImage, execute, prepare};
use horus_core::host::buffer::{HostBuffer, Pool};
use horus_core::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_core::ir::kernel::Kernel;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::{Deinterleave, Interleave};
use horus_core::optimize::optimize;
use horus_core::plan::movement::Load;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{Hosts, ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Mode, Plan, ResultDelivery, Setting, Transfer, plan};
use horus_core::shape::{Shape, Window};
use horus_testing::reference::{self, ReferenceImage};

pub(crate) use shrink::compare;

/// A program over given images.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConformanceProgram {
    pub(crate) graph: Graph<Op>,
    pub(crate) sources: Vec<ReferenceImage>,
    /// Channels of sources and of roots are interleaved.
    pub(crate) interleaved: bool,
}

impl ConformanceProgram {
    pub(crate) fn op(&mut self, op: Op, inputs: &[NodeId], shape: Shape, dtype: DType) -> NodeId {
        self.graph.push(Node { op, inputs: inputs.to_vec(), shape, dtype, site: Location::caller().into() })
    }

    pub(crate) fn source(&mut self, image: ReferenceImage) -> NodeId {
        let (shape, dtype) = (image.shape, image.dtype());
        if self.interleaved && shape.channels > 1 {
            let samples = self.source_as_it_lies(reference::interleaved(&image));
            return self.op(Op::from(Deinterleave), &[samples], shape, dtype);
        }
        self.source_as_it_lies(image)
    }

    fn source_as_it_lies(&mut self, image: ReferenceImage) -> NodeId {
        let (shape, dtype) = (image.shape, image.dtype());
        self.sources.push(image);
        self.op(Op::Source(ValueId(self.sources.len() as u64 - 1)), &[], shape, dtype)
    }

    /// An operation that keeps shape and type.
    pub(crate) fn like(&mut self, op: Op, a: NodeId) -> NodeId {
        let (shape, dtype) = (self.graph.node(a).shape, self.graph.node(a).dtype);
        self.op(op, &[a], shape, dtype)
    }

    pub(crate) fn convert(&mut self, a: NodeId, to: DType) -> NodeId {
        self.convert_by(Conversion::Nearest, a, to)
    }

    pub(crate) fn convert_by(&mut self, rule: Conversion, a: NodeId, to: DType) -> NodeId {
        let shape = self.graph.node(a).shape;
        self.op(Op::Convert(rule), &[a], shape, to)
    }

    /// A pixel operation on images.
    pub(crate) fn pixel(&mut self, op: PixelOp, inputs: &[NodeId]) -> NodeId {
        let last = self.graph.node(*inputs.last().unwrap());
        let (shape, dtype) = (last.shape, op.result(last.dtype));
        let operands = (0..inputs.len()).map(PixelOpOperand::Input).collect();
        self.op(Op::Pixel(op, operands), inputs, shape, dtype)
    }

    /// A pixel operation whose last operands are constants.
    pub(crate) fn pixel_const(&mut self, op: PixelOp, a: NodeId, constants: &[f64]) -> NodeId {
        let (shape, dtype) = (self.graph.node(a).shape, self.graph.node(a).dtype);
        let mut operands = vec![PixelOpOperand::Input(0)];
        operands.extend(constants.iter().map(|c| PixelOpOperand::Const(Scalar::from_f64(dtype, *c))));
        self.op(Op::Pixel(op, operands), &[a], shape, op.result(dtype))
    }

    pub(crate) fn wanted(mut self, roots: &[NodeId]) -> ConformanceProgram {
        self.graph.roots = roots.to_vec();
        if self.interleaved {
            let in_order = |p: &mut ConformanceProgram, root: &NodeId| {
                let Node { shape, dtype, .. } = *p.graph.node(*root);
                match shape.channels {
                    1 => *root,
                    _ => p.op(Op::from(Interleave), &[*root], shape.interleaved(), dtype),
                }
            };
            self.graph.roots = roots.iter().map(|root| in_order(&mut self, root)).collect();
        }
        self
    }
}

/// A reproducible image with values that provoke saturation, rounding, and (floats) signs and
/// infinities.
pub(crate) fn image(shape: Shape, dtype: DType, seed: u64) -> ReferenceImage {
    dispatch!(dtype, T => ReferenceImage::from_fn::<T>(shape, |c, y, x| {
        let h = hash(seed, [c, y, x]);
        let v = match h % 16 {
            0 => 0.0,
            1 => -(((h >> 8) % 7) as f64),
            2 if T::DTYPE.is_float() => -0.0,
            3 => ((h >> 8) % 300) as f64,
            _ => ((h >> 8) % 4096) as f64 / 16.0,
        };
        // Signs, and values beyond the range of other types.
        T::from_f64(match T::DTYPE {
            DType::I8 => v - 100.0,
            DType::I16 => v * 200.0 - 20_000.0,
            DType::I32 => v * 100_000.0,
            DType::U32 => v * 16_000_000.0,
            _ => v,
        })
    }))
}

fn hash(seed: u64, at: [usize; 3]) -> u64 {
    let mut h = seed ^ 0x9e37_79b9_7f4a_7c15;
    for v in at {
        h = (h ^ v as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h ^= h >> 29;
    }
    h
}

/// A configuration of a run; `crate::with_device` opens the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunConfiguration {
    pub(crate) ranks: usize,
    pub(crate) mode: Mode,
    pub(crate) separate: bool,
    /// `true` if the devices of the ranks exchange memory peer to peer.
    pub(crate) direct: bool,
    /// `true` if launches overlap with halo exchanges.
    pub(crate) overlap: bool,
    /// `true` if sources start on rank 0 only.
    pub(crate) from_root: bool,
    /// Number of bands for transfers to a device and back; `None` leaves it to predictions.
    pub(crate) bands: Option<u8>,
}

/// The program's roots, evaluated at `place`; the same on every rank.
pub(crate) fn run(program: &ConformanceProgram, place: RunConfiguration) -> Vec<ReferenceImage> {
    let mut all = if place.ranks == 1 {
        vec![on_rank(program, place, &SingleRankComm)]
    } else {
        ThreadComm::run(place.ranks, |comm| on_rank(program, place, &comm))
    };
    let first = all.remove(0);
    for (rank, other) in all.into_iter().enumerate() {
        assert_eq!(other, first, "rank {} got another result than rank 0 at {place:?}", rank + 1);
    }
    first
}

/// The program's roots, evaluated on the devices of one process: lanes, which share a host.
pub(crate) fn run_in_lanes(
    program: &ConformanceProgram,
    place: RunConfiguration,
    partition: &Partition,
) -> Vec<ReferenceImage> {
    let lanes = ThreadComm::run(place.ranks, |comm| {
        crate::with_device(place, |device| {
            connect(place, &comm, device);
            let bands = place.bands.map_or(Transfer::Auto, |n| Transfer::Streams(NonZeroU8::new(n)));
            let RunConfiguration { mode, separate, direct, overlap, .. } = place;
            let setting =
                Setting { transfer: bands, direct, overlap, mode, ..Setting::of(partition.clone(), !separate) };
            let plan = planned_for(program, place, &Setting { hosts: Hosts::Shared, ..setting });
            verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
            let outcome = outcome(program, &plan, &comm, device);
            // Moves it to the host before its device is dropped.
            let here = |mut p: Portion| {
                if let PortionOrigin::InFlight(landing) = p.from {
                    p.from = PortionOrigin::OnHost(landing.wait().unwrap(), 0);
                }
                p
            };
            let portions = outcome.portions.into_iter().map(|(n, all)| (n, all.into_iter().map(here).collect()));
            (plan.graph, portions.collect::<HashMap<NodeId, Vec<Portion>>>())
        })
    });
    let (graphs, mut portions): (Vec<_>, Vec<_>) = lanes.into_iter().unzip();
    let mut found: HashMap<NodeId, ReferenceImage> = HashMap::new();
    for root in &graphs[0].roots {
        let node = graphs[0].node(*root);
        found.entry(*root).or_insert_with(|| {
            let all = portions.iter_mut().map(|lane| lane.remove(root).unwrap_or_default()).collect();
            let bytes = node.shape.len() * node.dtype.size();
            let host = match assembled(all, bytes, &Pool::new(0)).unwrap() {
                Delivered::OnHost(host) => host,
                Delivered::InFlight(landing) => landing.wait().unwrap(),
            };
            dispatch!(node.dtype, T => ReferenceImage::new::<T>(node.shape, host.as_slice::<T>().to_vec()))
        });
    }
    graphs[0].roots.iter().map(|root| found[root].clone()).collect()
}

/// The program's roots on one rank of `comm`.
pub(crate) fn on_rank(
    program: &ConformanceProgram,
    place: RunConfiguration,
    comm: &dyn Communicator,
) -> Vec<ReferenceImage> {
    crate::with_device(place, |device| on_device(program, place, comm, device))
}

/// The program's roots, evaluated at `place` with rows divided by `partition`; the same on every
/// rank.
pub(crate) fn run_divided(
    program: &ConformanceProgram,
    place: RunConfiguration,
    partition: &Partition,
) -> Vec<ReferenceImage> {
    let on_rank = |comm: &dyn Communicator| {
        crate::with_device(place, |device| {
            connect(place, comm, device);
            let plan = planned(program, place, partition.clone());
            verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
            execute_on_rank(program, &plan, comm, device).0
        })
    };
    if place.ranks == 1 {
        return on_rank(&SingleRankComm);
    }
    let mut all = ThreadComm::run(place.ranks, |comm| on_rank(&comm));
    let first = all.remove(0);
    assert!(all.iter().all(|other| *other == first), "ranks got different results at {place:?}");
    first
}

fn on_device(
    program: &ConformanceProgram,
    place: RunConfiguration,
    comm: &dyn Communicator,
    device: &dyn Device,
) -> Vec<ReferenceImage> {
    connect(place, comm, device);
    let plan = planned(program, place, Partition::equal(place.ranks));
    verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
    execute_on_rank(program, &plan, comm, device).0
}

/// Connects the devices of all ranks if the place requires it.
pub(crate) fn connect(place: RunConfiguration, comm: &dyn Communicator, device: &dyn Device) {
    let fabric = device.fabric();
    let addresses = comm.gather(fabric.map_or(0, |fabric| fabric.address())).unwrap();
    if place.direct && place.ranks > 1 {
        let connected = fabric.is_some_and(|fabric| fabric.connect(comm, &addresses).unwrap());
        assert!(connected, "devices are connected at {place:?}");
    }
}

/// The plan of a program.
pub(crate) fn planned(program: &ConformanceProgram, place: RunConfiguration, partition: Partition) -> Plan {
    planned_within(program, place, partition, None)
}

/// The plan of a program on devices of so many bytes.
pub(crate) fn planned_within(
    program: &ConformanceProgram,
    place: RunConfiguration,
    partition: Partition,
    capacity: Option<usize>,
) -> Plan {
    let RunConfiguration { ranks, mode, separate, direct, overlap, bands, .. } = place;
    let transfer = bands.map_or(Transfer::Auto, |n| Transfer::Streams(NonZeroU8::new(n)));
    let direct = direct && ranks > 1;
    let setting = Setting { transfer, direct, overlap, mode, capacity, ..Setting::of(partition, !separate) };
    planned_for(program, place, &setting)
}

/// The plan of a program for a setting at `place`.
pub(crate) fn planned_for(program: &ConformanceProgram, place: RunConfiguration, setting: &Setting) -> Plan {
    let RunConfiguration { ranks, mode, separate, from_root, bands, .. } = place;
    let kernels = optimize(program.graph.clone(), mode == Mode::Fused, &setting.machine, &mut |_, _| ()).unwrap();
    let state = ImageState {
        residency: if separate { Residency::Host } else { Residency::Both },
        placement: if from_root && ranks > 1 { Placement::ROOT } else { Placement::Replicated },
    };
    // Only awaited results are downloaded in bands.
    let lanes = setting.has_shared_host();
    let want = if lanes || (separate && ranks == 1 && bands.is_some()) {
        ResultDelivery::Requester
    } else {
        ResultDelivery::Everyone
    };
    let wants = vec![want; kernels.roots.len()];
    plan(kernels, &wants, setting, |_| state, |_| true, &mut |_, _| ()).unwrap()
}

/// Host memory of a program that gives pixels to a device: page-locked, if there is any.
fn given_to(device: &dyn Device, bytes: &[u8]) -> HostBuffer {
    match device.staging().page_locked(bytes.len()).unwrap() {
        Some(memory) => {
            let mut buffer = Pool::new(0).try_adopt(memory, bytes.len()).unwrap();
            buffer.bytes_mut().copy_from_slice(bytes);
            buffer
        }
        None => HostBuffer::from_slice(bytes),
    }
}

/// Executes a plan on one rank; returns the program's roots and the bytes that the rank sent.
pub(crate) fn execute_on_rank(
    program: &ConformanceProgram,
    plan: &Plan,
    comm: &dyn Communicator,
    device: &dyn Device,
) -> (Vec<ReferenceImage>, Load) {
    let (images, sent) = delivered(program, plan, comm, device);
    (images.into_iter().map(|image| image.expect("a root that every rank wants")).collect(), sent)
}

/// Executes a plan on one rank; returns the roots that it receives and the bytes that it sent.
pub(crate) fn delivered(
    program: &ConformanceProgram,
    plan: &Plan,
    comm: &dyn Communicator,
    device: &dyn Device,
) -> (Vec<Option<ReferenceImage>>, Load) {
    let outcome = outcome(program, plan, comm, device);
    let landed = |(n, d)| match d {
        Delivered::OnHost(host) => (n, host),
        Delivered::InFlight(landing) => (n, landing.wait().unwrap()),
    };
    let delivered: HashMap<NodeId, HostBuffer> = outcome.delivered.into_iter().map(landed).collect();
    let image = |r: &NodeId| {
        let n = plan.graph.node(*r);
        let host = delivered.get(r)?;
        Some(dispatch!(n.dtype, T => ReferenceImage::new::<T>(n.shape, host.as_slice::<T>().to_vec())))
    };
    (plan.graph.roots.iter().map(image).collect(), outcome.moved)
}

/// Executes a plan on one rank.
fn outcome(
    program: &ConformanceProgram,
    plan: &Plan,
    comm: &dyn Communicator,
    device: &dyn Device,
) -> ExecutionOutcome {
    let unified = device.memory().is_unified();
    assert_eq!(unified, plan.setting.unified, "the plan is for this device");
    let images = plan.graph.nodes.iter().zip(&plan.initial).map(|(n, state)| {
        let (Kernel::Source(v), Some(state)) = (&n.op, *state) else { return None };
        let given = &program.sources[v.0 as usize];
        let here = state.placement != Placement::ROOT || comm.rank() == 0;
        let window = if here { Window::whole(n.shape.height) } else { Window::new(0, 0) };
        let host = given_to(device, if here { given.bytes() } else { &[] });
        let geometry = Geometry { shape: n.shape, dtype: n.dtype, window };
        let (host, device) = if unified { (None, Some(Memory::Host(host))) } else { (Some(host), None) };
        Some(RankImage { geometry, state, host, device })
    });
    let images: Vec<_> = images.collect();
    prepare(plan, &images, device, comm.rank()).unwrap_or_else(|e| panic!("{e}\n{plan}"));
    let context = ExecutionContext {
        device,
        comm,
        pool: &Pool::new(1 << 24),
        observer: &|_, _, _| (),
        check: &|| Ok(()),
        trace: &mut Trace::new(comm.rank(), false),
        keep: 0,
        sending: DownloadStart::AtOnce,
        rooms: &mut Vec::new(),
        batches: &mut Batches::default(),
    };
    execute(plan, images, context).unwrap_or_else(|e| panic!("{}\n{plan}", e.error))
}

/// Compares the program's roots at `places` with the reference, bit by bit.
pub(crate) fn conforms(program: &ConformanceProgram, places: &[RunConfiguration], what: &str) {
    let want = reference::evaluate(&program.graph, &|v| program.sources[v.0 as usize].clone());
    note(what, &want);
    for place in places {
        compare(&format!("{what} at {place:?}"), program, &want, &mut |p| run(p, *place));
        if place.ranks > 1 && !place.from_root {
            let weights: Vec<f64> = (0..place.ranks).map(|lane| f64::from(lane as u8 % 3)).collect();
            for partition in [Partition::equal(place.ranks), Partition::weighted(&weights).unwrap()] {
                let what = format!("{what} in lanes of {partition} at {place:?}");
                compare(&what, program, &want, &mut |p| run_in_lanes(p, *place, &partition));
            }
        }
    }
}

/// Appends a line on the results of a program to the file that `HORUS_DIGESTS` names, if set. Two
/// kinds of machines compute the same bits if they write the same lines in any order
/// (`scripts/aarch64.sh`).
fn note(what: &str, images: &[ReferenceImage]) {
    let Some(path) = std::env::var_os("HORUS_DIGESTS") else { return };
    let digests: Vec<String> = images.iter().map(|i| format!("{:016x}", digest(i))).collect();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    // A single write, so that lines of concurrent tests stay whole.
    file.write_all(format!("{} {what}\n", digests.join(" ")).as_bytes()).unwrap();
}

/// FNV-1a over the bits of all pixels; NaNs count as one number, as in comparisons of images.
fn digest(image: &ReferenceImage) -> u64 {
    dispatch!(image.dtype(), T => image.as_slice::<T>().iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, v| {
        let bits = if v.is_nan() { u64::MAX } else { v.scalar().bits() };
        bits.to_le_bytes().iter().fold(h, |h, byte| (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    }))
}

fn difference(got: &ReferenceImage, want: &ReferenceImage) -> String {
    if got.shape != want.shape || got.dtype() != want.dtype() {
        return format!("{} {} instead of {} {}", got.shape, got.dtype(), want.shape, want.dtype());
    }
    dispatch!(got.dtype(), T => {
        let (g, w): (&[T], &[T]) = (got.as_slice(), want.as_slice());
        let bad: Vec<usize> = (0..g.len()).filter(|&i| g[i].scalar() != w[i].scalar() && !(g[i].is_nan() && w[i].is_nan())).collect();
        let first = bad[0];
        let (plane, width) = (got.shape.area(), got.shape.width);
        format!(
            "{} of {} pixels; first at channel {} row {} column {}: {} instead of {}",
            bad.len(), g.len(), first / plane, first % plane / width, first % width, g[first], w[first]
        )
    })
}
