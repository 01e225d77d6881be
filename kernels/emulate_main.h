// The host side of the emulation, appended to a generated kernel.
static const hs_params* hs_arguments;
static void hs_thread() {
    for (;;) {
        hs_kernel(*hs_arguments);
        hs_done[hs_current] = true;
        hs_barrier();
    }
}
extern "C" void hs_run(const void* arguments, unsigned grid, unsigned grid_y, unsigned block, unsigned shared) {
    hs_params params;
    memcpy(&params, arguments, sizeof(params));
    hs_arguments = &params;
    hs_run_blocks(hs_thread, grid, grid_y, block, shared);
}
