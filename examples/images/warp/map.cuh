// Where in the image the center of an output pixel lies. Here the center of
// pixel x is at x.
#pragma once

// --8<-- [start:float]
// The inverse map in fp32: column = a x + b y + c, row = d x + e y + f.
struct Matrix {
  float a, b, c, d, e, f;
};
// --8<-- [end:float]

// --8<-- [start:fixed]
// The same in integers, of which the last 32 bits are the fraction: sums of
// them are exact, and a shift rounds down, also below 0.
struct Fixed {
  long long a, b, c, d, e, f;
};

struct Position {
  int whole;      // rounded down
  float between;  // 0 to 1
};

__device__ __forceinline__ Position split(long long at) {
  return {(int)(at >> 32), (unsigned)at * 0x1p-32f};
}

__device__ __forceinline__ long long along(long long a, long long b,
                                           long long c, int x, int y) {
  return a * x + b * y + c;
}
// --8<-- [end:fixed]
