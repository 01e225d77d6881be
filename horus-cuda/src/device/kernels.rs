//! Kernels of one device: generated, then read from the cache or the release's package or compiled, and loaded; all
//! kernels of a plan at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use horus_core::device::PreparedLaunch;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::Kernel;

use super::{CudaDevice, TableKey};
use crate::cache::hash;
use crate::codegen::{ENTRY, Generated, Shapes, generate, generate_bounded, generate_part};
use crate::driver::KernelFunction;
use crate::launch_cache::{LoadedKernel, MOST as MOST_REMEMBERED};
use crate::nvrtc::{CompileError, OPTIONS};
use crate::origin::{CodeOrigin, CodeRequest, find};
use crate::shipped::Package;
use crate::tuning::{Tuning, fitted};

/// Stack size of a compiling thread: the size of a program's main thread.
const STACK: usize = 8 << 20;

/// A kernel to be made: its source and the resources of its launches.
struct KernelRequest<'a> {
    source: &'a str,
    /// Most bytes of dynamic shared memory.
    shared: u32,
    cost: usize,
    name: String,
}

impl KernelRequest<'_> {
    fn of(program: &Generated, name: String) -> KernelRequest<'_> {
        KernelRequest { source: &program.source, shared: program.shared, cost: program.cost, name }
    }
}

fn key(source: &str) -> u128 {
    hash(&[source.as_bytes()])
}

impl CudaDevice {
    /// Compiles the kernel that a launch with this tuning would run, for later use. Any number of
    /// threads may call this at once.
    ///
    /// # Errors
    /// If the kernel cannot be generated or compiled.
    pub fn compile_ahead(&self, kernel: &Kernel, shapes: &Shapes<'_>, tuning: &Tuning) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        let program = generate(kernel, shapes, tuning, self.limits)?;
        self.function(&program, &kernel.name()).map(drop)
    }

    pub(super) fn program(&self, kernel: &Kernel, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
        if let Some(tuning) = &self.forced.tuning {
            return generate(kernel, shapes, tuning, self.limits);
        }
        let tuning = fitted(kernel, shapes, self.arch, self.multiprocessors);
        if let Some((part, shared)) = self.forced.part
            && let Some((_, program)) = generate_part(part, kernel, shapes, &tuning, self.limits)?
        {
            return Ok(Generated { shared: program.shared.max(shared), ..program });
        }
        generate_bounded(kernel, shapes, &tuning, self.limits)
    }

    /// The kernel and parameters of a launch, from the cache if it was made before.
    pub(super) fn get_or_load_kernel(
        &self,
        kernel: &Kernel,
        shapes: &Shapes<'_>,
    ) -> Result<Arc<LoadedKernel>, DeviceError> {
        if let Some(made) = self.lock().launch_cache.get(kernel, shapes, self.forced) {
            return Ok(made);
        }
        let program = self.program(kernel, shapes)?;
        let function = self.function(&program, &kernel.name())?;
        Ok(self.remember(kernel, shapes, program, function))
    }

    fn remember(
        &self,
        kernel: &Kernel,
        shapes: &Shapes<'_>,
        program: Generated,
        function: Arc<KernelFunction>,
    ) -> Arc<LoadedKernel> {
        let table = TableKey::of(&program.table);
        let made = Arc::new(LoadedKernel { program: Generated { source: String::new(), ..program }, function, table });
        self.lock().launch_cache.put(kernel, shapes, self.forced, &made, made.program.table.len());
        made
    }

    /// The kernel of a program: already loaded, from disk, or compiled. Threads that launch other
    /// kernels are not blocked.
    pub(super) fn function(&self, program: &Generated, what: &str) -> Result<Arc<KernelFunction>, DeviceError> {
        let known = self.lock().kernels.get(&key(&program.source)).cloned();
        match known {
            Some(function) => function.reserve(program.shared).map(|()| function),
            None => self.load_missing(&KernelRequest::of(program, what.into())),
        }
    }

    /// Loads a kernel that is not loaded yet.
    fn load_missing(&self, wanted: &KernelRequest<'_>) -> Result<Arc<KernelFunction>, DeviceError> {
        let KernelRequest { source, shared, .. } = wanted;
        let (code, origin) = self.code(wanted, self.shipped.as_ref())?;
        let (function, origin) = match self.load(wanted, &code) {
            Err(e) if origin == CodeOrigin::Package => {
                // Code of the package that this driver rejects is compiled instead.
                log::debug!("not taken from the package of kernels: {e}");
                let (code, origin) = self.code(wanted, None)?;
                (self.load(wanted, &code)?, origin)
            }
            loaded => (loaded?, origin),
        };
        let mut state = self.lock();
        match origin {
            CodeOrigin::Compiler => state.statistics.compiled += 1,
            CodeOrigin::Cache => state.statistics.from_disk += 1,
            CodeOrigin::Package => state.statistics.shipped += 1,
        }
        let function = Arc::clone(state.kernels.entry(key(source)).or_insert_with(|| Arc::new(function)));
        drop(state);
        // Another thread may have loaded it first, for a launch that uses less shared memory.
        function.reserve(*shared).map(|()| function)
    }

    /// Finds the machine code of a kernel, or compiles it.
    fn code(
        &self,
        wanted: &KernelRequest<'_>,
        package: Option<&Package>,
    ) -> Result<(Vec<u8>, CodeOrigin), DeviceError> {
        let KernelRequest { source, name, .. } = wanted;
        let build = || {
            let start = Instant::now();
            let cubin = self.nvrtc()?.compile(source, self.arch);
            log::debug!("compiled {name} in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
            cubin
        };
        let request = CodeRequest { source, options: OPTIONS, arch: self.arch };
        let (known, version) = (self.compiler.known_version(), || self.compiler.version());
        find(request, &self.cache, package, known, version, build)
            .map_err(|e: CompileError| DeviceError::Driver(format!("compiling {name}: {e}")))
    }

    fn load(&self, wanted: &KernelRequest<'_>, code: &[u8]) -> Result<KernelFunction, DeviceError> {
        let start = Instant::now();
        let function = KernelFunction::load(code, ENTRY, wanted.shared).map_err(|e| {
            let by = self.compiler.known_version().map_or(String::new(), |v| format!(", compiled by NVRTC {v:?}"));
            DeviceError::Driver(format!("{}{by}: {e}", wanted.name))
        })?;
        log::debug!("loaded {} in {:.1} ms", wanted.name, start.elapsed().as_secs_f64() * 1e3);
        Ok(function)
    }

    /// Makes the missing kernels of the given launches: each once, the costliest to compile first,
    /// several at a time. NVRTC compiles as many at once as there are threads, except during the
    /// first tenth of each compilation.
    pub(super) fn make_ahead(&self, launches: &[PreparedLaunch<'_>]) -> Result<(), DeviceError> {
        let start = Instant::now();
        self.core.context.bind()?;
        let mut new: Vec<(&PreparedLaunch<'_>, Generated)> = Vec::new();
        for launch in launches.iter().take(MOST_REMEMBERED) {
            let shapes = Shapes { inputs: &launch.inputs, output: launch.output, rows: launch.rows };
            let nothing = launch.rows.is_empty() || launch.output.shape.is_empty();
            if nothing || self.lock().launch_cache.get(launch.kernel, &shapes, self.forced).is_some() {
                continue;
            }
            new.push((launch, self.program(launch.kernel, &shapes)?));
        }
        let mut wanted: HashMap<u128, KernelRequest<'_>> = HashMap::new();
        for (launch, program) in &new {
            let key = key(&program.source);
            if self.lock().kernels.contains_key(&key) {
                continue;
            }
            match wanted.entry(key) {
                Entry::Vacant(e) => drop(e.insert(KernelRequest::of(program, launch.kernel.name()))),
                Entry::Occupied(mut e) => e.get_mut().shared = e.get().shared.max(program.shared),
            }
        }
        let mut wanted: Vec<KernelRequest<'_>> = wanted.into_values().collect();
        wanted.sort_by_key(|w| std::cmp::Reverse((w.cost, w.source.len())));
        let made = self.make_all(&wanted);
        let count = wanted.len();
        if made.is_ok() {
            for (launch, program) in new {
                let shapes = Shapes { inputs: &launch.inputs, output: launch.output, rows: launch.rows };
                let function = self.function(&program, &launch.kernel.name())?;
                self.remember(launch.kernel, &shapes, program, function);
            }
        }
        self.lock().making += start.elapsed();
        log::debug!("{count} kernels made for {} launches in {:.0?}", launches.len(), start.elapsed());
        made
    }

    /// Makes kernels in this order on several threads. Returns the first error, after which no more are begun.
    fn make_all(&self, wanted: &[KernelRequest<'_>]) -> Result<(), DeviceError> {
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some(one) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(e) = self.core.context.bind().and_then(|()| self.load_missing(one).map(drop)) {
                    next.store(wanted.len(), Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.transfers.workers.threads().min(wanted.len()) {
                // If no more threads start, the running ones do the work.
                let thread = Builder::new().name("horus-compile".into()).stack_size(STACK);
                if thread.spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}
