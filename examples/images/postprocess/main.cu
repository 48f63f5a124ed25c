// From what a detector writes to its boxes, and of boxes that overlap, the one
// with the best score stays.
#include "cpp/host.cuh"
#define BY_TILES 1  // the words of a tile's boxes lie side by side
#include "images/postprocess/decode.cu"
#include "images/postprocess/nms.cu"

// As the kernel has it. No product and sum are made one: a product of two
// floats is exact in fp64.
bool overlap(float4 a, float4 b, float limit) {
  const auto times = [](float x, float y) { return (float)((double)x * y); };
  const float w = std::max(std::min(a.z, b.z) - std::max(a.x, b.x), 0.0f);
  const float h = std::min(a.w, b.w) - std::max(a.y, b.y);
  const float both = times(w, h), of_a = times(a.z - a.x, a.w - a.y),
              of_b = times(b.z - b.x, b.w - b.y);
  return times(limit, of_a + of_b - both) - both < 0;
}

int main() {
  const int n = 20'011, classes = 13, block = 256;
  const float scale = 1.25f, left = 3, top = 0, width = 507, height = 512;
  const float least = 0.9f, limit = 0.5f;
  // Boxes around a hundred things.
  std::vector<float> out = uniform((size_t)(4 + classes) * n, 1);
  for (int i = 0; i < n; ++i) {
    float* const box = &out[i];
    const int thing = i * 7 % 100;
    box[0] = thing % 10 * 64 + 32 + 12 * box[0];
    box[n] = thing / 10 * 64 + 32 + 12 * box[n];
    box[2 * n] = 60 + 20 * box[2 * n];
    box[3 * n] = 60 + 20 * box[3 * n];
    for (int c = 0; c < classes; ++c) box[(4 + c) * n] *= 3;
  }
  Array<float> numbers(out), scores(n);
  Array<float4> boxes(n), in_order(n);
  Array<int> class_of(n), their_classes(n), kept(n), kept_count(1), count(1);
  const unsigned grid = (n + block - 1) / block;
  const auto decoding = [&] {
    decode<<<grid, block>>>(numbers, n, classes, scale, left, top, width,
                            height, boxes, scores, class_of);
  };
  decoding();
  MUST(cudaGetLastError());
  std::vector<double> corners, right;
  std::vector<float> got;
  std::vector<int> best;
  const std::vector<float4> found = boxes.host();
  for (int i = 0; i < n; ++i) {
    const float* const box = &out[i];
    int c = 0;
    for (int k = 1; k < classes; ++k)
      if (box[(4 + k) * n] > box[(4 + c) * n]) c = k;
    best.push_back(c);
    right.push_back(1 / (1 + std::exp(-(double)box[(4 + c) * n])));
    for (int side : {-1, 1}) {
      const double x = (box[0] + side * 0.5 * box[2 * n] - left) / scale,
                   y = (box[n] + side * 0.5 * box[3 * n] - top) / scale;
      corners.push_back(std::min(std::max(x, 0.0), (double)width));
      corners.push_back(std::min(std::max(y, 0.0), (double)height));
    }
    got.insert(got.end(), {found[i].x, found[i].y, found[i].z, found[i].w});
  }
  check("classes", class_of.host(), best);
  check("scores", scores.host(), right, 4 * 0x1p-24);
  check("corners", got, corners, 4 * 0x1p-24 * 700);  // four roundings

  // Sorted on the host: how the GPU does it is a chapter of its own.
  Array<unsigned> keys(n), indices(n), order(n);
  count.zero();
  score_keys<<<grid, block>>>(scores, n, least, keys, indices, count);
  MUST(cudaGetLastError());
  const std::vector<unsigned> key = keys.host();
  std::vector<unsigned> sorted = indices.host();
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](unsigned a, unsigned b) { return key[a] < key[b]; });
  MUST(cudaMemcpy(order, sorted.data(), order.bytes(), cudaMemcpyHostToDevice));

  const int tiles = (n + TILE - 1) / TILE;
  Array<Word> mask((size_t)tiles * TILE * tiles), state(1 + 2 * tiles);
  const auto suppressing = [&] {
    sorted_boxes<<<grid, block>>>(boxes, class_of, order, count, in_order,
                                  their_classes);
    pair_mask<<<dim3((tiles + COLUMNS - 1) / COLUMNS, tiles), TILE>>>(
        in_order, their_classes, count, tiles, limit, mask);
    MUST(cudaMemsetAsync(state, 0, state.bytes()));
    keep_together<<<tiles, EACH, tiles>>>(mask, count, tiles, state);
    list_kept<<<tiles, TILE>>>(state, count, tiles, order, kept, kept_count);
  };
  suppressing();
  MUST(cudaGetLastError());
  const std::vector<float> score = scores.host();
  std::vector<int> candidates, stay;
  for (int i = 0; i < n; ++i)
    if (score[i] >= least) candidates.push_back(i);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int a, int b) { return score[a] > score[b]; });
  for (int i : candidates)
    if (std::none_of(stay.begin(), stay.end(), [&](int k) {
          return best[k] == best[i] && overlap(found[k], found[i], limit);
        }))
      stay.push_back(i);
  check("how many stay", kept_count.host(), std::vector<int>{(int)stay.size()});
  std::vector<int> first = kept.host();
  first.resize(stay.size());
  check("which stay", first, stay);
  const double us = time_us(decoding);
  std::printf("decode      %8.1f us, %5.0f GB/s\n", us,
              numbers.bytes() / us / 1e3);
  std::printf("suppression %8.1f us, %zu of %zu boxes stay\n",
              time_us(suppressing), stay.size(), candidates.size());
}
