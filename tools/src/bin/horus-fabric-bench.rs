//! Speed of halo exchange between GPUs: Horus's exchange, the same messages passed to NCCL directly, and the path
//! through the host.
//!
//! ```text
//! mpirun -n 4 horus-fabric-bench [ROWS [COLUMNS [ROUNDS]]]        (21 rows of 16384 f32, 200 rounds)
//! ```
//!
//! One rank per GPU. Rank 0 prints the median time of a single exchange, and the time per exchange when many are
//! enqueued, each on the slowest rank; `ratio` is Horus divided by NCCL. Received bytes are checked. Without NCCL, only
//! the path through the host is measured.

use std::panic::Location;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use horus_core::comm::Communicator;
use horus_core::device::{Device, Exchange, Fabric as _, Geometry, Memory, Message};
use horus_core::dtype::DType;
use horus_core::execute::peers;
use horus_core::execute::transfer::{self, Destination, RankPixels};
use horus_core::host::buffer::Pool;
use horus_core::ir::graph::{Graph, Node, NodeId, ValueId};
use horus_core::ir::kernel::Kernel;
use horus_core::plan::Action;
use horus_core::plan::movement::{BLOCK, Movement, movement};
use horus_core::plan::partition::Partition;
use horus_core::plan::state::Halo;
use horus_core::shape::{Shape, Window};
use horus_cuda::CudaDevice;

type BenchResult<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Untimed exchanges at the start.
const WARM_UP: usize = 20;

struct FabricBench<'a> {
    comm: &'a dyn Communicator,
    device: CudaDevice,
    /// Memory for messages through the host.
    pool: Arc<Pool>,
    graph: Graph<Kernel>,
    partition: Partition,
    halo: Halo,
    geometry: Geometry,
    strip: Window,
}

impl FabricBench<'_> {
    fn movement(&self, direct: bool) -> Movement {
        let action = Action::Exchange { node: NodeId(0), halo: self.halo, direct };
        movement(&self.graph, &self.partition, action, None, BLOCK).expect("an exchange moves something")
    }

    /// The value of every byte of a row.
    fn value(y: isize) -> u8 {
        (y * 37 + 11) as u8
    }

    /// A strip with its own rows and an empty halo.
    fn fresh(&self) -> BenchResult<Memory> {
        let mut memory = self.device.allocate(self.geometry.bytes())?;
        let mut bytes = vec![0; self.geometry.bytes()];
        for y in self.strip.start..self.strip.end {
            bytes[self.geometry.row_bytes(0, Window::new(y, y + 1))].fill(Self::value(y));
        }
        self.device.write(&bytes, &mut memory, 0)?;
        self.device.synchronize()?;
        Ok(memory)
    }

    fn check(&self, memory: &Memory) -> BenchResult<()> {
        let mut bytes = vec![0; self.geometry.bytes()];
        self.device.read(memory, 0, &mut bytes)?;
        for y in self.geometry.window.start..self.geometry.window.end {
            let row = &bytes[self.geometry.row_bytes(0, Window::new(y, y + 1))];
            if row.iter().any(|b| *b != Self::value(y)) {
                return Err(format!("row {y} is wrong on rank {}", self.comm.rank()).into());
            }
        }
        Ok(())
    }

    /// The executor's exchange from device to device.
    fn horus(&self, memory: &mut Memory) -> BenchResult<()> {
        peers::redistribute(&self.device, self.comm, &self.movement(true), None, (memory, self.geometry))?;
        Ok(())
    }

    /// The executor's exchange through the host.
    fn staged(&self, memory: &mut Memory) -> BenchResult<()> {
        let workers = self.device.workers();
        let source = RankPixels::Device(&self.device, memory);
        let movement = self.movement(false);
        let arriving = transfer::order(
            self.comm,
            transfer::HostResources { workers, pool: &self.pool },
            &movement,
            source,
            self.geometry,
        )?;
        arriving.finish(workers, Destination::Device(&self.device, memory))?;
        Ok(())
    }

    /// Median microseconds of a single exchange, and microseconds per exchange of many, on the slowest rank.
    fn time(&self, rounds: usize, mut exchange: impl FnMut() -> BenchResult<()>) -> BenchResult<(f64, f64)> {
        let mut times = Vec::new();
        for round in 0..WARM_UP + rounds {
            self.comm.gather(0)?;
            let start = Instant::now();
            exchange()?;
            self.device.synchronize()?;
            if round >= WARM_UP {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        times.sort_by(f64::total_cmp);
        self.comm.gather(0)?;
        let start = Instant::now();
        for _ in 0..rounds {
            exchange()?;
        }
        self.device.synchronize()?;
        let many = start.elapsed().as_secs_f64() * 1e6 / rounds as f64;
        let slowest = |t: f64| -> BenchResult<f64> {
            let all = self.comm.gather(t.to_bits())?;
            Ok(all.into_iter().map(f64::from_bits).fold(0.0, f64::max))
        };
        Ok((slowest(times[times.len() / 2])?, slowest(many)?))
    }
}

fn run(comm: &dyn Communicator) -> BenchResult<()> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (rows, columns, rounds) = (number(21)?, number(16_384)?, number(200)?.max(1));
    let (me, ranks) = (comm.rank(), comm.size());
    if ranks < 2 {
        return Err("start it on several ranks: mpirun -n 4 horus-fabric-bench".into());
    }
    let device = CudaDevice::open(comm.local_rank() % CudaDevice::count()?, None)?;
    let fabric = device.fabric();
    let addresses = comm.gather(fabric.map_or(0, |fabric| fabric.address()))?;
    let connected = fabric.map_or(Ok(false), |fabric| fabric.connect(comm, &addresses))?;
    let height = ranks * (4 * rows).max(256);
    let shape = Shape::new(height, columns, 1);
    let mut graph = Graph::default();
    let (op, site) = (Kernel::Source(ValueId(0)), Location::caller().into());
    graph.push(Node { op, inputs: Vec::new(), shape, dtype: DType::F32, site });
    let partition = Partition::equal(ranks);
    let strip = partition.strip(me, height);
    let window = strip.grown(rows, rows).clipped(height);
    let geometry = Geometry { shape, dtype: DType::F32, window };
    let pool = Pool::new(1 << 28);
    let bench = FabricBench { comm, device, pool, graph, partition, halo: Halo::even(rows), geometry, strip };
    let bytes = rows * columns * 4;
    let show = |name: &str, (one, many): (f64, f64)| {
        if me == 0 {
            println!("{name:24} {one:10.1} us {many:10.1} us");
        }
    };
    if me == 0 {
        println!("{rows} rows of {columns} f32 ({bytes} bytes) to each neighbour, {ranks} ranks, {rounds} rounds");
        println!("{:24} {:>13} {:>13}", "", "one", "of many");
    }
    let mut memory = bench.fresh()?;
    bench.staged(&mut memory)?;
    bench.check(&memory)?;
    show("through the host", bench.time(rounds, || bench.staged(&mut memory))?);
    if !connected {
        return Ok(());
    }
    let mut memory = bench.fresh()?;
    bench.horus(&mut memory)?;
    bench.check(&memory)?;
    let ours = bench.time(rounds, || bench.horus(&mut memory))?;
    show("Horus", ours);
    // The same messages between the same ranks, each with its own place in a separate block.
    let neighbours: Vec<usize> = (0..ranks).filter(|r| r + 1 == me || me + 1 == *r).collect();
    let place = |first: usize| {
        let message = move |(i, r): (usize, &usize)| Message { rank: *r, block: 0, at: (first + i) * bytes, bytes };
        neighbours.iter().enumerate().map(message).collect::<Vec<_>>()
    };
    let work = Exchange { sends: place(0), receives: place(2), ..Exchange::default() };
    let mut block = bench.device.allocate(4 * bytes)?;
    let nccl = bench.time(rounds, || {
        let ticket = bench.device.exchange(comm, &[], &mut [&mut block], &work)?;
        Ok(bench.device.wait_for_exchange(ticket, &mut [&mut block])?)
    })?;
    show("NCCL alone", nccl);
    if me == 0 {
        println!("{:24} {:10.2}    {:10.2}", "ratio", ours.0 / nccl.0, ours.1 / nccl.1);
    }
    Ok(())
}

fn main() -> ExitCode {
    env_logger::init();
    let comm = match horus::ranks() {
        Ok(comm) => comm,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    match run(&*comm) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            comm.abort(&e.to_string());
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
