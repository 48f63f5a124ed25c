// Runs gemm<PLAN> of final.cu on a CPU, cluster after cluster:
//   final m n k group whole share workers boxes alpha beta seed
//     < A, B, C > C
// A is m x k or k x m, B k x n or n x k, all bf16 or, by the plan, fp16. It
// ends with 2 and the reason if blocks do what they must not, or wait for ever.
// A worker waits only for those that come after it, so the last runs first.
#include "kernel.hpp"

template <int BN_, int STAGES, int CLUSTER_, int BUFFERS, bool TA_, bool TB_,
          class Out_, bool PLAIN_ = false, class End_ = Linear>
struct Plan {
  using End = End_;
  using Out = Out_;
  static constexpr int BN = BN_, CLUSTER = CLUSTER_;
  static constexpr bool TA = TA_, TB = TB_;
};
using Chosen = Plan<PLAN>;
using Bits = std::vector<uint16_t>;

int main(int, char** arguments) {
  Work<Chosen::Out> work;
  int m, n, k, workers;
  Bits a, b, c, bias;
  int* const numbers[] = {&m,          &n,          &k,       &work.group,
                          &work.whole, &work.share, &workers, &work.boxes};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  work.alpha = std::atof(*++arguments), work.beta = std::atof(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  machine::read(a, (long)m * k), machine::read(b, (long)k * n);
  machine::read(c, (long)m * n);
  if (Chosen::End::FUSED)
    machine::read(bias, n), work.extra.bias = (__nv_bfloat16*)bias.data();
  constexpr int CLUSTER = Chosen::CLUSTER, BN = Chosen::BN;
  const int slots = workers * CLUSTER * CONSUMERS;
  std::vector<float> parts((long)slots * 64 * BN, NAN);
  std::vector<unsigned> flags(slots, 0);
  work.m = m, work.n = work.ldc = n, work.k = k;
  work.steps = (k + BK - 1) / BK, work.C = (Chosen::Out*)c.data();
  work.extra.residual = work.C, work.extra.scale = 1.0f;
  work.extra.map = nullptr;
  work.parts = parts.data(), work.flags = flags.data();
  work.A = (__nv_bfloat16*)a.data(), work.B = (__nv_bfloat16*)b.data();
  const auto of_a = Chosen::TA ? map_of(a, k, m, 64) : map_of(a, m, k, BM);
  const auto of_b =
      Chosen::TB ? map_of(b, n, k, BN / CLUSTER) : map_of(b, k, n, 64);
  const auto of_c = map_of(c, m, n, 64);
  machine::grid_blocks = workers * CLUSTER;
  machine::block_threads = 128 * (CONSUMERS + 1);
  int& first = machine::first_block;
  for (first = (workers - 1) * CLUSTER; first >= 0; first -= CLUSTER)
    machine::run_blocks(CLUSTER, [&] { gemm<PLAN>(of_a, of_b, of_c, work); });
  for (unsigned flag : flags)
    if (flag) machine::fail("a flag is left raised");
  std::fwrite(c.data(), 2, c.size(), stdout);
}
