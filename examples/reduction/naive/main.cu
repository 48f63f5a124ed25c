// The sum of an array by a tree in shared memory, whose pairs a modulo picks.
#include "cpp/sum.cuh"
#include "reduction/ladder/naive.cu"

int main() {
  Sum sum;
  sum.run("naive", reduce_naive, BLOCK);
}
