// The blocks of a cluster, as coroutines of `thread()`, until all have ended.
#pragma once
static void run_blocks(int cluster) {
  const int count = block_threads * cluster, warps = count / 32;
  threads.assign(count, {});
  std::memset(shared_memory, 0xff, sizeof shared_memory);
  for (int b = 0; b < MOST_BLOCKS; ++b) {
    phases[b].clear(), of_block[b] = {}, ended[b] = false;
    for (Meeting& turn : turns[b]) turn = {};
  }
  for (Meeting& meeting : of_warp) meeting = {};
  of_cluster = {}, running = count;
  for (int i = 0; i < count; ++i) {
    Thread& t = threads[i];
    t.block = i / block_threads, t.index = i % block_threads;
    t.stack.resize(96 << 10);
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.data(),
    t.context.uc_stack.ss_size = t.stack.size();
    makecontext(&t.context, thread, 0);
  }
  long before = -1, idle = 0;
  for (int slow = 0; running;) {
    if (dice() % 500 == 0)
      slow = dice() % (warps + 4);  // a warp that lags behind for a while
    const int chosen = dice() % warps;
    if (chosen == slow && dice() % 8) continue;
    for (int i = 0; i < 32; ++i) {
      self = &threads[chosen * 32 + i];
      if (!self->ended) swapcontext(&scheduler, &self->context);
    }
    for (int b = 0; b < cluster; ++b) {
      ended[b] = true;
      for (int i = 0; i < block_threads; ++i)
        ended[b] &= threads[b * block_threads + i].ended;
    }
    if (!copies.empty() && dice() % 6 == 0) land(dice() % copies.size());
    if (each_turn) each_turn();
    idle = progress == before ? idle + 1 : 0, before = progress;
    if (idle > 100000) fail("deadlock");
  }
  if (!copies.empty()) fail("copies are still under way");
  for (int b = 0; b < cluster; ++b)
    for (const Meeting& turn : turns[b])
      if (turn.arrived) fail("a turn is left over");
}
