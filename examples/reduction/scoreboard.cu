// Sums in one thread, so that the order of the additions is known: plain, and
// compensated.

// --8<-- [start:serial]
extern "C" __global__ void sum_serial(const float* __restrict__ in,
                                      float* __restrict__ out, long long n) {
  float sum = 0;
#pragma unroll 8
  for (long long i = 0; i < n; ++i) sum += in[i];
  out[0] = sum;
}
// --8<-- [end:serial]

// --8<-- [start:kahan]
extern "C" __global__ void sum_kahan(const float* __restrict__ in,
                                     float* __restrict__ out, long long n) {
  float sum = 0, lost = 0;  // lost: what the last addition rounded away, with
                            // the opposite sign
#pragma unroll 8
  for (long long i = 0; i < n; ++i) {
    const float term = in[i] - lost;
    const float next = sum + term;
    lost = (next - sum) -
           term;  // 0 in exact arithmetic; nvcc does not simplify it away
    sum = next;
  }
  out[0] = sum;
}
// --8<-- [end:kahan]
