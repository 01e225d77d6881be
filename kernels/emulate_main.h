// The host side of the emulation, appended to a generated kernel.
static const hs_params* hs_arguments;
static bool hs_done[1024];
static void hs_fibre() {
    hs_kernel(*hs_arguments);
    hs_done[hs_current] = true;
    setcontext(&hs_scheduler);
}
extern "C" void hs_run(const void* arguments, unsigned grid, unsigned grid_y, unsigned block, unsigned shared) {
    constexpr size_t STACK = 256 << 10;
    hs_params params;
    memcpy(&params, arguments, sizeof(params));
    hs_arguments = &params;
    std::vector<unsigned char> memory(shared + 128), stacks(STACK * block);
    hs_smem = memory.data() + (128 - (uintptr_t)memory.data() % 128) % 128;
    hs_fibres.resize(block);
    for (unsigned by = 0; by < grid_y; ++by)
        for (unsigned b = 0; b < grid; ++b) {
            // Poison, so that reading what nobody wrote shows.
            memset(memory.data(), 0xff, memory.size());
            blockIdx = {(int)b, (int)by, 0};
            for (unsigned t = 0; t < block; ++t) {
                getcontext(&hs_fibres[t]);
                hs_fibres[t].uc_stack.ss_sp = stacks.data() + STACK * t;
                hs_fibres[t].uc_stack.ss_size = STACK;
                hs_fibres[t].uc_link = nullptr;
                makecontext(&hs_fibres[t], hs_fibre, 0);
                hs_done[t] = false;
            }
            for (unsigned left = block; left > 0;) {
                unsigned running = 0;
                for (unsigned t = 0; t < block; ++t) {
                    if (hs_done[t]) continue;
                    hs_current = t;
                    threadIdx = {(int)t, 0, 0};
                    swapcontext(&hs_scheduler, &hs_fibres[t]);
                    running += !hs_done[t];
                }
                left = running;
            }
        }
}
