// As many blocks as the GPU holds at once walk the whole array.
#include "cpp/sum.cuh"
#include "reduction/ladder/few_blocks.cu"

int main() {
  Sum sum;
  int sms = 0, per_sm = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce_few_blocks,
                                                     BLOCK, 0));
  const long long most = (long long)sms * per_sm;
  sum.run("few_blocks", reduce_few_blocks, BLOCK, [=](long long left) {
    // One block for what one block can take, so that one sum is left.
    return left <= most ? 1 : std::min(most, (left + BLOCK - 1) / BLOCK);
  });
}
