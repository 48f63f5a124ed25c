// The loop as it is, and unrolled with the last warp on its own.
#include "cpp/sum.cuh"
#include "reduction/ladder/two_per_thread.cu"
#include "reduction/ladder/unrolled.cu"

int main() {
  Sum sum;
  sum.run("two_per_thread", reduce_two_per_thread, BLOCK, 2);
  sum.run("unrolled", reduce_unrolled, BLOCK, 2);
}
