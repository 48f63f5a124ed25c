// The map of a matrix, by which the TMA finds its boxes.
#pragma once
#include <cuda.h>

#include "cpp/host.cuh"

// A row-major matrix of floats on the GPU, and how large a box is. Rows begin
// at multiples of 16 bytes; a box has up to 256 rows and columns, and what lies
// beyond the matrix arrives as zeros.
inline CUtensorMap tensor_map(float* matrix, int rows, int columns,
                              int box_rows, int box_columns) {
  // A function of the driver, found without being linked with it.
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  MUST(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                        12000, cudaEnableDefault, &found));
  const auto encode = (decltype(&cuTensorMapEncodeTiled))function;

  CUtensorMap map;
  const cuuint64_t extents[] = {(cuuint64_t)columns, (cuuint64_t)rows};
  const cuuint64_t row_bytes[] = {columns * sizeof(float)};
  const cuuint32_t box[] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows};
  const cuuint32_t every[] = {1, 1};  // and not each second word
  if (found != cudaDriverEntryPointSuccess ||
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, extents,
             row_bytes, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    std::fprintf(stderr, "no tensor map of %d x %d\n", rows, columns);
    std::exit(2);
  }
  return map;
}
