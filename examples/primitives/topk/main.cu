// The 50 largest numbers of each row and where they lie: by one pass over the
// row, and by a selection, one pass for each digit.
#include "cpp/host.cuh"
#include "primitives/topk/topk.cu"

int main() {
  // Rows begin at multiples of 16 bytes, as loads of four numbers want it.
  const int rows = 64, n = 128'255, stride = 128'256, k = 50;
  const int size = 64;  // a power of two, no less than k
  const std::vector<float> host = uniform((size_t)rows * stride, 1);
  std::vector<int> where;
  std::vector<float> largest;
  for (int row = 0; row < rows; ++row) {
    const float* x = host.data() + (size_t)row * stride;
    std::vector<int> order(n);
    for (int i = 0; i < n; ++i) order[i] = i;
    // Of equal numbers the first comes first.
    std::partial_sort(
        order.begin(), order.begin() + k, order.end(),
        [&](int a, int b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    where.insert(where.end(), order.begin(), order.begin() + k);
    for (int i = 0; i < k; ++i) largest.push_back(x[order[i]]);
  }

  Array<float> x(host), values(rows * k);
  Array<int> indices(rows * k);
  const auto run = [&](const char* name, auto launch) {
    const double us = time_us(launch);
    // Once more: this launch finds what the others left.
    MUST(cudaMemset(values, 0xff, values.bytes()));
    MUST(cudaMemset(indices, 0xff, indices.bytes()));
    launch();
    MUST(cudaGetLastError());
    check("where they lie", indices.host(), where);
    check(name, values.host(), largest);
    std::printf("%-10s %8.1f us, %5.0f GB/s\n", name, us, x.bytes() / us / 1e3);
  };
  // More than a block has unless it is asked for.
  const int shared = CAPACITY * sizeof(Word) + BINS * sizeof(unsigned);
  for (const void* kernel :
       {(const void*)topk_stream, (const void*)topk_select})
    MUST(cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  Array<Word> lists((size_t)rows * BLOCKS * size);
  Array<unsigned> tickets(rows);
  tickets.zero();
  run("one pass", [&] {
    topk_stream<<<rows * BLOCKS, THREADS, shared>>>(
        x, stride, n, k, size, values, indices, lists, tickets);
  });
  run("selection", [&] {
    topk_select<<<rows, THREADS, shared>>>(x, stride, n, k, size, values,
                                           indices);
  });
}
