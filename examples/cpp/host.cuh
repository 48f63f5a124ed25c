// What the C++ programs of the book need on the host: errors that are not
// overlooked, arrays on the GPU, random numbers, a comparison, a median time.
//
//   MUST      ends the program if a call of CUDA failed, and says where
//   Array     elements on the GPU, freed when it goes out of scope
//   uniform   random numbers from -1 to 1, the same for the same seed
//   check     compares a result with its reference, and prints how it went
//   time_us   the median time of launches, in microseconds
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#define MUST(call)                                                      \
  do {                                                                  \
    const cudaError_t error = (call);                                   \
    if (error != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__,       \
                   cudaGetErrorName(error), cudaGetErrorString(error)); \
      std::exit(2);                                                     \
    }                                                                   \
  } while (0)

template <typename T>
class Array {
 public:
  explicit Array(size_t count) : count_(count) {
    MUST(cudaMalloc(&words_, std::max<size_t>(count, 1) * sizeof(T)));
    // No result is right because it was there before.
    MUST(cudaMemset(words_, 0xff, count * sizeof(T)));
  }
  explicit Array(const std::vector<T>& host) : Array(host.size()) {
    MUST(cudaMemcpy(words_, host.data(), bytes(), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(words_); }

  operator T*() { return words_; }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }
  void zero() { MUST(cudaMemset(words_, 0, bytes())); }
  std::vector<T> host() const {
    std::vector<T> copy(count_);
    MUST(cudaMemcpy(copy.data(), words_, bytes(), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  T* words_ = nullptr;
  size_t count_;
};

inline std::vector<float> uniform(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> words(count);
  for (float& word : words) word = random() * 0x1p-31f - 1;
  return words;
}

// Whether each |got - wanted| <= atol + rtol |wanted|. A NaN is never right.
// Ends the program with 1 if not.
template <typename T, typename U>
void check(const char* name, const std::vector<T>& got,
           const std::vector<U>& wanted, double atol = 0, double rtol = 0) {
  if (got.size() != wanted.size()) {
    std::printf("check %s: failed (%zu elements, %zu wanted)\n", name,
                got.size(), wanted.size());
    std::exit(1);
  }
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double found = (double)got[i], right = (double)wanted[i];
    const double error = found == right ? 0 : std::abs(found - right);
    if (!(error <= atol + rtol * std::abs(right))) {
      std::printf("check %s: failed (element %zu is %.9g, wanted %.9g)\n", name,
                  i, found, right);
      std::exit(1);
    }
    largest = std::max(largest, error);
  }
  std::printf("check %s: passed (%zu elements, largest error %.3g)\n", name,
              got.size(), largest);
}

// launch() starts kernels on the default stream. It runs twice before it is
// timed.
template <typename Launch>
double time_us(Launch launch, int rounds = 21) {
  cudaEvent_t start, stop;
  MUST(cudaEventCreate(&start));
  MUST(cudaEventCreate(&stop));
  std::vector<float> times(rounds);
  for (int round = -2; round < rounds; ++round) {
    MUST(cudaEventRecord(start));
    launch();
    MUST(cudaEventRecord(stop));
    MUST(cudaGetLastError());
    MUST(cudaEventSynchronize(stop));
    if (round >= 0) MUST(cudaEventElapsedTime(&times[round], start, stop));
  }
  MUST(cudaEventDestroy(start));
  MUST(cudaEventDestroy(stop));
  std::sort(times.begin(), times.end());
  return times[rounds / 2] * 1e3;
}
