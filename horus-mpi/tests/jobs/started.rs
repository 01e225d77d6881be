//! Evaluations that run beside the program on several ranks.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use horus_core::comm::Communicator;
use horus_core::cpu::device::CpuDevice;
use horus_core::image::Image;
use horus_core::image::samples;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_mpi::MpiComm;

type StartedJobResult = Result<(), String>;
/// Names of threads.
type Threads = Arc<Mutex<Vec<String>>>;

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// A session, and the names of the threads that its evaluations ran on.
fn session(comm: &Arc<MpiComm>) -> Result<(Session, Threads), String> {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&threads);
    let note = move |_: horus_core::session::Progress<'_>| {
        let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
        seen.lock().unwrap().push(name);
    };
    let cpu = Box::new(CpuDevice::new(Some(1)).map_err(text)?);
    Ok((Session::on(cpu).communicator(comm.clone()).observer(note).build().map_err(text)?, threads))
}

fn alone() -> Result<Session, String> {
    Session::on(Box::new(CpuDevice::new(Some(1)).map_err(text)?)).build().map_err(text)
}

/// Steps with communication, whose state is carried on.
fn step(state: &Image<f32>, i: usize) -> Image<f32> {
    state.gauss(1.0 + (i % 3) as f64).max(&(state.rotate(15.0 * i as f64, Interpolation::Bilinear) * 0.5))
}

/// A started evaluation runs on its own thread if MPI allows it, and gives the bits of a single
/// rank whenever it is read.
pub(crate) fn beside(comm: MpiComm) -> StartedJobResult {
    let comm = Arc::new(comm);
    let want = {
        let alone = alone()?;
        (0..6).fold(samples::worms(&alone, 53, 47), |state, i| step(&state, i)).to_vec().map_err(text)?
    };
    for looks in [1, 2, 6] {
        let (session, threads) = session(&comm)?;
        let mut state = samples::worms(&session, 53, 47);
        let patience = Instant::now() + Duration::from_secs(30);
        for i in 0..6 {
            state = step(&state, i);
            session.start();
            // It runs without a call that waits for it.
            while threads.lock().unwrap().is_empty() && Instant::now() < patience {
                std::thread::yield_now();
            }
            if i % looks == 0 {
                state.sum().get().map_err(text)?;
            }
        }
        assert_eq!(state.to_vec().map_err(text)?, want, "looked at every {looks} steps");
        let beside = threads.lock().unwrap().first().is_some_and(|name| name == "horus-start");
        assert!(beside || comm.communication_order().is_none(), "nothing ran beside the program");
        // Meanwhile ranks communicate in calls of their own.
        assert_eq!(session.comm().gather(comm.rank() as u64).map_err(text)?.len(), comm.size());
    }
    Ok(())
}

/// Sessions on the same ranks take turns, and dropped ones finish.
pub(crate) fn sessions(comm: MpiComm) -> StartedJobResult {
    let comm = Arc::new(comm);
    let want = step(&samples::worms(&alone()?, 41, 33), 1).to_vec().map_err(text)?;
    for _ in 0..10 {
        let (first, _) = session(&comm)?;
        let (second, _) = session(&comm)?;
        let (a, b) = (samples::worms(&first, 41, 33), samples::worms(&second, 41, 33));
        let (a, b) = (step(&a, 1), step(&b, 1));
        first.start();
        second.start();
        let again = step(&a, 2);
        first.start();
        assert_eq!(b.to_vec().map_err(text)?, want);
        assert_eq!(a.to_vec().map_err(text)?, want);
        drop((first, a, again)); // their started evaluations finish
        second.start();
    }
    Ok(())
}

/// A program ends while unclosed sessions have evaluations pending: they finish, and then MPI is
/// finalised.
pub(crate) fn forgotten(comm: MpiComm) -> StartedJobResult {
    let comm = Arc::new(comm);
    let (session, _) = session(&comm)?;
    let mut state = samples::worms(&session, 200, 150);
    for i in 0..8 {
        state = step(&state, i);
        session.start();
    }
    std::mem::forget((session, state));
    Ok(())
}

/// A rank that starts a different program is reported by whichever call comes next.
pub(crate) fn otherwise(comm: MpiComm) -> StartedJobResult {
    let comm = Arc::new(comm);
    let (session, _) = session(&comm)?;
    let state = samples::worms(&session, 20, 30);
    let state = if comm.rank() == 1 { state.rotate(10.0, Interpolation::Bilinear) } else { state.gauss(1.0) };
    session.start();
    state.to_vec().map(drop).map_err(text)
}
