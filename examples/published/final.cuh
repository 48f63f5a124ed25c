// What the part gemm publishes for kernels: its final product in fp32, of whose
// parts others can be built.
#pragma once
#include "gemm/ladder/final.cu"
