//! Graphs: kernels and their order, started in one call of the driver.

use std::ffi::c_void;

use cudarc::driver::sys;
use horus_core::error::DeviceError;

use super::{CudaContext, CudaStream, KernelFunction, LaunchConfig, check};

/// Work of a graph, with its current addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GraphTask<'a> {
    /// A kernel, with its one parameter in bytes.
    Kernel(&'a KernelFunction, LaunchConfig, &'a [u8]),
    /// Zeros at an address.
    Clear(sys::CUdeviceptr, usize),
}

/// A graph that can be started.
#[derive(Debug)]
pub(crate) struct CudaGraph {
    graph: sys::CUgraph,
    ready: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
}

// SAFETY: the handles may be used from any thread, one at a time: every call takes `&mut self`.
unsafe impl Send for CudaGraph {}
// SAFETY: as above.
unsafe impl Sync for CudaGraph {}

impl CudaGraph {
    /// A graph of tasks, each after the earlier tasks that it names.
    pub(crate) fn new(context: &CudaContext, tasks: &[(GraphTask<'_>, &[usize])]) -> Result<CudaGraph, DeviceError> {
        let (graph, ready) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut made = CudaGraph { graph, ready, nodes: Vec::with_capacity(tasks.len()) };
        // SAFETY: a pointer to a live handle.
        check(unsafe { sys::cuGraphCreate(&mut made.graph, 0) }, || "creating a graph".into())?;
        for (task, after) in tasks {
            let after: Vec<_> = after.iter().map(|i| made.nodes[*i]).collect();
            let mut node = std::ptr::null_mut();
            let code = match *task {
                GraphTask::Kernel(function, work, params) => {
                    let mut arguments = [params.as_ptr().cast_mut().cast()];
                    let node_params = kernel(function, work, &mut arguments);
                    // SAFETY: handles live; the driver copies the parameters during the call.
                    unsafe {
                        sys::cuGraphAddKernelNode_v2(&mut node, made.graph, after.as_ptr(), after.len(), &node_params)
                    }
                }
                GraphTask::Clear(at, bytes) => {
                    let node_params = zeros(at, bytes);
                    // SAFETY: as above.
                    unsafe {
                        sys::cuGraphAddMemsetNode(
                            &mut node,
                            made.graph,
                            after.as_ptr(),
                            after.len(),
                            &node_params,
                            context.handle,
                        )
                    }
                }
            };
            check(code, || format!("adding {task} to a graph"))?;
            made.nodes.push(node);
        }
        // SAFETY: the graph lives; a pointer to a live handle.
        check(unsafe { sys::cuGraphInstantiateWithFlags(&mut made.ready, made.graph, 0) }, || {
            format!("preparing a graph of {} nodes", made.nodes.len())
        })?;
        Ok(made)
    }

    /// Replaces task `i` by one that differs only in its addresses, for later starts.
    pub(crate) fn set(&mut self, context: &CudaContext, i: usize, task: GraphTask<'_>) -> Result<(), DeviceError> {
        let code = match task {
            GraphTask::Kernel(function, work, params) => {
                let mut arguments = [params.as_ptr().cast_mut().cast()];
                let node_params = kernel(function, work, &mut arguments);
                // SAFETY: handles live; the driver copies the parameters during the call.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.ready, self.nodes[i], &node_params) }
            }
            GraphTask::Clear(at, bytes) => {
                let node_params = zeros(at, bytes);
                // SAFETY: as above.
                unsafe { sys::cuGraphExecMemsetNodeSetParams(self.ready, self.nodes[i], &node_params, context.handle) }
            }
        };
        check(code, || format!("updating {task} in a graph"))
    }

    /// Starts the tasks after everything in the stream.
    ///
    /// # Safety
    /// Parameters must be those of the kernels, and every address must stay valid until the stream
    /// has passed the graph.
    pub(crate) unsafe fn start(&mut self, stream: &CudaStream) -> Result<(), DeviceError> {
        // SAFETY: handles live; the rest is the caller's promise.
        check(unsafe { sys::cuGraphLaunch(self.ready, stream.0) }, || format!("starting {} launches", self.nodes.len()))
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // SAFETY: created in `new` and not used after; the driver keeps what is running.
        unsafe {
            if !self.ready.is_null() {
                sys::cuGraphExecDestroy(self.ready);
            }
            if !self.graph.is_null() {
                sys::cuGraphDestroy(self.graph);
            }
        }
    }
}

impl std::fmt::Display for GraphTask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GraphTask::Kernel(_, LaunchConfig { grid, block, shared, .. }, _) => {
                write!(f, "a kernel ({grid:?} blocks of {block}, {shared} bytes shared)")
            }
            GraphTask::Clear(_, bytes) => write!(f, "{bytes} zeros"),
        }
    }
}

/// The driver's description of a kernel.
fn kernel(
    function: &KernelFunction,
    work: LaunchConfig,
    arguments: &mut [*mut c_void; 1],
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.handle,
        gridDimX: work.grid[0],
        gridDimY: work.grid[1],
        gridDimZ: 1,
        blockDimX: work.block,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: work.shared,
        kernelParams: arguments.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// The driver's description of zeros.
fn zeros(at: sys::CUdeviceptr, bytes: usize) -> sys::CUDA_MEMSET_NODE_PARAMS {
    sys::CUDA_MEMSET_NODE_PARAMS { dst: at, pitch: bytes, value: 0, elementSize: 1, width: bytes, height: 1 }
}
