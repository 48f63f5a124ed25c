// Kernels that set the condition of a graph, which needs CUDA 12.4.
//
//   decide   whether a graph goes round again
//   ask      whether a graph does what follows
//   step     of 3x + 1, for an exercise

// --8<-- [start:decide]
// A cudaGraphConditionalHandle is an unsigned long long. most: rounds, so that
// a mistake cannot go on for ever.
extern "C" __global__ void decide(unsigned long long handle, int* changed,
                                  int* rounds, int most) {
  *rounds += 1;
  const bool again = *changed && *rounds < most;
  *changed = 0;
  cudaGraphSetConditional(handle, again);
}
// --8<-- [end:decide]

// --8<-- [start:ask]
extern "C" __global__ void ask(unsigned long long handle, const int* wanted) {
  cudaGraphSetConditional(handle, *wanted != 0);
}
// --8<-- [end:ask]

// --8<-- [start:step]
extern "C" __global__ void step(unsigned long long handle, int* x, int* count) {
  if (*x != 1) {
    *x = *x % 2 ? 3 * *x + 1 : *x / 2;
    *count += 1;
  }
  cudaGraphSetConditional(handle, *x != 1 && *count < 1000);
}
// --8<-- [end:step]
