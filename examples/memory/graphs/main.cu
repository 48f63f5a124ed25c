// A chain of 240 short kernels, each of which changes what the one before has
// written: started one by one, and as a graph.
#include "cpp/host.cuh"
#include "memory/graphs/graphs.cu"

int main() {
  const int n = 1003, count = 240;
  std::vector<unsigned> begin(n);
  std::generate(begin.begin(), begin.end(), std::mt19937(1));
  std::vector<unsigned> wanted = begin;
  for (unsigned& word : wanted)
    for (int k = 0; k < count; ++k) word = 1664525u * word + k;
  Array<unsigned> x(begin);
  const auto one_by_one = [&](cudaStream_t stream) {
    for (int k = 0; k < count; ++k)
      mix<<<(n + 255) / 256, 256, 0, stream>>>(x, k, n);
  };

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  one_by_one(stream);  // written down, not run
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&ready, graph, 0));

  const auto run = [&](const char* name, auto launch) {
    MUST(cudaMemcpy(x, begin.data(), x.bytes(), cudaMemcpyHostToDevice));
    launch();
    MUST(cudaGetLastError());
    check(name, x.host(), wanted);
    const double us = time_us(launch);
    std::printf("%-11s %7.1f us, %5.2f us for each kernel\n", name, us,
                us / count);
  };
  run("one by one", [&] { one_by_one(nullptr); });
  run("as a graph", [&] { MUST(cudaGraphLaunch(ready, nullptr)); });
  MUST(cudaGraphExecDestroy(ready));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
}
