// The same tree with pairs picked by a modulo, and by consecutive threads.
#include "cpp/sum.cuh"
#include "reduction/ladder/interleaved.cu"
#include "reduction/ladder/naive.cu"

int main() {
  Sum sum;
  sum.run("naive", reduce_naive, BLOCK);
  sum.run("interleaved", reduce_interleaved, BLOCK);
}
