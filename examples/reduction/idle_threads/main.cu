// One element for each thread, and two, which it adds while it loads.
#include "cpp/sum.cuh"
#include "reduction/ladder/sequential.cu"
#include "reduction/ladder/two_per_thread.cu"

int main() {
  Sum sum;
  sum.run("sequential", reduce_sequential, BLOCK);
  sum.run("two_per_thread", reduce_two_per_thread, BLOCK, 2);
}
