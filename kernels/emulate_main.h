// The host side of the emulation, appended to a generated kernel.
static const hs_params* hs_arguments;
static bool hs_done[1024];
// A thread of every block in turn.
static void hs_thread() {
    for (;;) {
        hs_kernel(*hs_arguments);
        hs_done[hs_current] = true;
        hs_barrier();
    }
}
extern "C" void hs_run(const void* arguments, unsigned grid, unsigned grid_y, unsigned block, unsigned shared) {
    constexpr size_t STACK = 256 << 10;
    hs_params params;
    memcpy(&params, arguments, sizeof(params));
    hs_arguments = &params;
    std::vector<unsigned char> memory(shared + 128);
    // Not cleared: of a stack little is used.
    std::unique_ptr<unsigned char[]> stacks(new unsigned char[STACK * block]);
    hs_smem = memory.data() + (128 - (uintptr_t)memory.data() % 128) % 128;
    hs_fibres.resize(block);
    for (unsigned t = 0; t < block; ++t) {
        ucontext_t& entry = hs_fibres[t].entry;
        getcontext(&entry);
        entry.uc_stack.ss_sp = stacks.get() + STACK * t;
        entry.uc_stack.ss_size = STACK;
        entry.uc_link = nullptr;
        makecontext(&entry, hs_thread, 0);
    }
    bool entered = false;
    for (unsigned by = 0; by < grid_y; ++by)
        for (unsigned b = 0; b < grid; ++b) {
            // Poison, so that reads of unwritten memory show.
            memset(memory.data(), 0xff, memory.size());
            blockIdx = {(int)b, (int)by, 0};
            std::fill_n(hs_done, block, false);
            for (unsigned left = block; left > 0;) {
                unsigned running = 0;
                for (unsigned t = 0; t < block; ++t) {
                    if (hs_done[t]) continue;
                    hs_current = t;
                    threadIdx = {(int)t, 0, 0};
                    hs_resume(entered);
                    running += !hs_done[t];
                }
                entered = true;
                left = running;
            }
        }
}
