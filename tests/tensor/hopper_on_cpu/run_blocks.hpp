// The blocks of a cluster, from `first_block` on, until all their threads have
// ended.
#pragma once
#include "ptx.hpp"

namespace machine {

inline std::function<void()> kernel;  // what each thread does
constexpr int STACK = 96 << 10;       // bytes of a thread

inline void run_thread() {
  kernel();
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

inline void run_blocks(int cluster, std::function<void()> what) {
  const int count = block_threads * cluster, warps = count / 32;
  kernel = std::move(what);
  threads.clear(), threads.resize(count);
  std::memset(shared_memory, 0xff, sizeof shared_memory);
  ptx::phases.clear(), ptx::on_the_way.clear();
  for (int b = 0; b < MOST_BLOCKS; ++b) {
    of_block[b] = {}, begun[b] = ended[b] = false;
    for (Meeting& meeting : named[b]) meeting = {};
  }
  for (Meeting& meeting : of_warp) meeting = {};
  for (Meeting& meeting : of_warpgroup) meeting = {};
  of_cluster = {}, running = count;
  previous_runs = (bool)previous_ends;
  for (int i = 0; i < count; ++i) {
    Thread& t = threads[i];
    t.block = i / block_threads, t.index = i % block_threads;
    t.stack.reset(new char[STACK]);
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.get();
    t.context.uc_stack.ss_size = STACK;
    makecontext(&t.context, run_thread, 0);
  }
  long before = -1, idle = 0;
  const int rarely = dice() % 2 ? 12 : 200;  // stores are fast, or slow
  // One block of a cluster may begin when the others are well on their way.
  const int late = cluster > 1 ? dice() % (2 * cluster) : cluster;
  long until = late < cluster ? dice() % (100 * block_threads / 32) : 0;
  for (int slow = 0; running;) {
    if (dice() % 500 == 0)
      slow = dice() % (warps + 4);  // a warp that lags behind for a while
    const int chosen = dice() % warps;
    if (chosen == slow && dice() % 8) continue;
    const int block = chosen * 32 / block_threads;
    if (block == late && until-- > 0) continue;
    begun[block] = true;
    for (int i = 0; i < 32; ++i) {
      self = &threads[chosen * 32 + i];
      if (!self->ended) swapcontext(&scheduler, &self->context);
    }
    for (int b = 0; b < cluster; ++b) {
      ended[b] = true;
      for (int i = 0; i < block_threads; ++i)
        ended[b] &= threads[b * block_threads + i].ended;
    }
    if (!ptx::pairs.empty() && dice() % 6 == 0) ptx::land_pair();
    if (!ptx::copies.empty() && dice() % 6 == 0) ptx::land_copy();
    if (!ptx::stores.empty() && dice() % rarely == 0) ptx::land_store();
    idle = progress == before ? idle + 1 : 0, before = progress;
    if (previous_runs && (idle > 300 || dice() % 2000 == 0))
      previous_ends(), previous_runs = false, ++progress;
    if (idle > 100000) fail("deadlock");
  }
  if (!ptx::pairs.empty()) fail("pairs are still under way");
  if (!ptx::copies.empty()) fail("copies are still under way");
  if (!ptx::stores.empty()) fail("a block ends before its stores have read");
  for (int b = 0; b < cluster; ++b)
    for (const Meeting& meeting : named[b])
      if (meeting.arrived) fail("a turn is left over");
}

}  // namespace machine
