// The tree whose lanes meet in banks, and the one whose lanes do not.
#include "cpp/sum.cuh"
#include "reduction/ladder/interleaved.cu"
#include "reduction/ladder/sequential.cu"

int main() {
  Sum sum;
  sum.run("interleaved", reduce_interleaved, BLOCK);
  sum.run("sequential", reduce_sequential, BLOCK);
}
