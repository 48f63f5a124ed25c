// Sums in one thread, so that the order of the additions is known: plain, and
// compensated. And what a short sum takes besides adding up.

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

// Every thread waits for 16 elements; one stores a number.
extern "C" __global__ void wait_and_store(const float* __restrict__ in,
                                          float* __restrict__ out) {
  const float4* vectors = reinterpret_cast<const float4*>(in);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float4 v = vectors[k * blockDim.x + threadIdx.x];
    sum += v.x + v.y + v.z + v.w;
  }
  // A sum of random elements is not that large: only thread 0 stores.
  if (threadIdx.x == 0 || sum == 1e30f) out[0] = sum;
}
