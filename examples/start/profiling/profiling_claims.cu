// A vector add by one thread in CUDA C++. The host's clock times each call, and
// the program prints its times as JSON.
//
//   profiling_claims N         as a first program has it
//   profiling_claims N apart   a call of its own makes the context, and another
//                              waits for the kernel
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" __global__ void add(const float* __restrict__ x,
                               const float* __restrict__ y,
                               float* __restrict__ out, int n) {
  for (int i = 0; i < n; ++i) out[i] = x[i] + y[i];
}

extern "C" __global__ void empty() {}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  exit(1);
}

// Adds the microseconds of a call to `sum`.
template <class Call>
static void timed(double& sum, Call call) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  call();
  const std::chrono::duration<double, std::micro> passed = Clock::now() - begin;
  sum += passed.count();
}

int main(int argc, char** argv) {
  const int n = atoi(argv[1]);
  const bool apart = argc > 2;
  const size_t bytes = n * sizeof(float);
  const std::vector<float> x(n, 1.0f), y(n, 2.0f);
  float* out = static_cast<float*>(malloc(bytes));
  float* d[3];  // x, y and out on the GPU
  double context = 0, allocate = 0, copy = 0, launch = 0, wait = 0, release = 0;

  // --8<-- [start:calls]
  if (apart) timed(context, [] { check(cudaFree(nullptr)); });
  for (float*& array : d)
    timed(allocate, [&] { check(cudaMalloc(&array, bytes)); });
  timed(copy, [&] {
    check(cudaMemcpy(d[0], x.data(), bytes, cudaMemcpyHostToDevice));
    check(cudaMemcpy(d[1], y.data(), bytes, cudaMemcpyHostToDevice));
  });
  timed(launch, [&] { add<<<1, 1>>>(d[0], d[1], d[2], n); });
  if (apart) timed(wait, [] { check(cudaDeviceSynchronize()); });
  timed(copy,
        [&] { check(cudaMemcpy(out, d[2], bytes, cudaMemcpyDeviceToHost)); });
  // --8<-- [end:calls]
  check(cudaGetLastError());
  for (float* array : d) timed(release, [&] { check(cudaFree(array)); });

  long wrong = 0;
  for (int i = 0; i < n; ++i) wrong += out[i] != x[i] + y[i];

  // Launches after the first; too few to fill the queue, where they would wait.
  const int launches = 500;
  double later = 0;
  for (int i = 0; i < 200; ++i) {  // as the Python program does before it
    empty<<<1, 1>>>();
    check(cudaDeviceSynchronize());
  }
  timed(later, [=] {
    for (int i = 0; i < launches; ++i) empty<<<1, 1>>>();
  });
  check(cudaDeviceSynchronize());
  printf(
      "{\"context\": %f, \"cudaMalloc\": %f, \"cudaMemcpy\": %f, "
      "\"launch\": %f, \"wait\": %f, \"cudaFree\": %f, \"later launch\": %f, "
      "\"wrong\": %ld}\n",
      context, allocate, copy, launch, wait, release, later / launches, wrong);
  free(out);
  return 0;
}
