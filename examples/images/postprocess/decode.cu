// From what a detector writes to boxes in the pixels of its image.
//
// out[4 + classes][n]: rows of the center's x and y, width and height, in the
// pixels of the network's input, and of a number for each class; the score is
// the sigmoid of the largest.
// --8<-- [start:decode]
// scale, left, top: of the letterbox; width, height: of the image. boxes: x1,
// y1, x2, y2 inside the image. A thread has a box, so that a warp reads 32
// neighbors of each row.
extern "C" __global__ void decode(const float* __restrict__ out, int n,
                                  int classes, float scale, float left,
                                  float top, float width, float height,
                                  float4* __restrict__ boxes,
                                  float* __restrict__ scores,
                                  int* __restrict__ class_of) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float* const mine = out + i;
  const long long row = n;
  const float x = mine[0], y = mine[row];
  const float half_w = 0.5f * mine[2 * row], half_h = 0.5f * mine[3 * row];
  float best = mine[4 * row];
  int which = 0;
#pragma unroll 8
  for (int c = 1; c < classes; ++c) {
    const float number = mine[(4 + c) * row];
    if (number > best) best = number, which = c;
  }
  boxes[i] = {fminf(fmaxf((x - half_w - left) / scale, 0.0f), width),
              fminf(fmaxf((y - half_h - top) / scale, 0.0f), height),
              fminf(fmaxf((x + half_w - left) / scale, 0.0f), width),
              fminf(fmaxf((y + half_h - top) / scale, 0.0f), height)};
  scores[i] = 1.0f / (1.0f + expf(-best));
  class_of[i] = which;
}
// --8<-- [end:decode]
