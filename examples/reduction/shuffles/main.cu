// The last steps in shared memory, and from register to register.
#include "cpp/sum.cuh"
#include "reduction/ladder/shuffle.cu"
#include "reduction/ladder/unrolled.cu"

int main() {
  Sum sum;
  sum.run("unrolled", reduce_unrolled, BLOCK, 2);
  sum.run("shuffle", reduce_shuffle, BLOCK, 2);
}
