// What instructions of PTX do, as its manual describes it, each under its name.
// Pairs, copies and stores of boxes arrive at a random later time. Of products,
// factors are read as late as may be, and results are NaN until they are waited
// for.
#pragma once
#include "cuda.hpp"

namespace ptx {
using namespace machine;

// Several operands in braces: where they lie.
template <class T, int COUNT>
struct List {
  T* at[COUNT];
  // They lie side by side, as the elements of an array do.
  T* array() const {
    for (int i = 1; i < COUNT; ++i)
      if (at[i] != at[0] + i) fail("registers of no array");
    return at[0];
  }
};
template <class T, class... More>
List<T, 1 + sizeof...(More)> outs(T& first, More&... more) {
  return {{&first, &more...}};
}
template <class T, class... More>
List<const T, 1 + sizeof...(More)> ins(const T& first, const More&... more) {
  return {{&first, &more...}};
}

// Barriers that count arrivals and bytes.
struct Phases {
  int arrivals = 0, pending = 0;
  long bytes = 0, past = 0;
};
inline std::map<unsigned, Phases> phases;  // by address

inline Phases& phases_of(unsigned barrier) {
  const auto found = phases.find(barrier);
  if (found == phases.end()) fail("a barrier that is not initialized");
  return found->second;
}
inline void settle(Phases& of) {
  if (of.pending || of.bytes) return;
  ++of.past, ++progress, of.pending = of.arrivals;
}
inline void arrive_at(unsigned barrier, long bytes) {
  if (ended[block_of(barrier)]) fail("arrival at a block that has ended");
  Phases& of = phases_of(barrier);
  if (of.pending == 0) fail("one arrival too many");
  --of.pending, of.bytes += bytes;
  settle(of);
}

inline void mbarrier_init_shared_cta_b64(unsigned barrier, int arrivals) {
  phases[barrier] = {arrivals, arrivals, 0, 0};
}
inline void mbarrier_arrive_shared_cta_b64(unsigned barrier) {
  arrive_at(barrier, 0);
}
inline void mbarrier_arrive_shared_cluster_b64(unsigned barrier) {
  arrive_at(barrier, 0);
}
inline void mbarrier_arrive_expect_tx_shared_cta_b64(unsigned barrier,
                                                     int bytes) {
  arrive_at(barrier, bytes);
}
inline void mbarrier_try_wait_parity_shared_cta_b64(bool& done,
                                                    unsigned barrier,
                                                    int parity) {
  done = (phases_of(barrier).past & 1) != parity;
  if (!done) yield("a barrier");
  if (done && dice() % 4 == 0) yield("nothing");
}

inline void mbarrier_try_wait_parity_acquire_cluster_shared_cta_b64(
    bool& done, unsigned barrier, int parity) {
  mbarrier_try_wait_parity_shared_cta_b64(done, barrier, parity);
}

// Barriers by number, of `count` threads.
inline void bar_sync(int id, int count) {
  meet(named[self->block][id], count, "a named barrier");
}
inline void bar_arrive(int id, int count) {
  Meeting& meeting = named[self->block][id];
  if (++meeting.arrived == count)
    meeting.arrived = 0, ++meeting.past, ++progress;
}

// Clusters. Threads that have ended are not waited for.
inline void barrier_cluster_arrive_release() {
  self->arrived_at = of_cluster.past;
  ++of_cluster.arrived, ++progress;
}
inline void barrier_cluster_arrive_relaxed() {
  barrier_cluster_arrive_release();
}
inline void barrier_cluster_arrive_release_aligned() {
  barrier_cluster_arrive_release();
}
inline void barrier_cluster_wait_acquire() {
  while (of_cluster.past == self->arrived_at) {
    if (of_cluster.arrived >= running)
      of_cluster.arrived = 0, ++of_cluster.past, ++progress;
    if (of_cluster.past == self->arrived_at) yield("its cluster");
  }
}
inline void barrier_cluster_wait_acquire_aligned() {
  barrier_cluster_wait_acquire();
}
inline unsigned cluster_ctarank() { return self->block; }
inline void mapa_shared_cluster_u32(unsigned& there, unsigned address,
                                    int block) {
  there = in_block(address, block);
}
inline void ld_shared_cluster_v2_f32(List<float, 2> words, unsigned from) {
  for (int i = 0; i < 2; ++i) std::memcpy(words.at[i], place(from) + 4 * i, 4);
}

// Pairs on their way to another block's shared memory and barrier.
struct Pair {
  float words[2];
  unsigned to, barrier;
};
inline std::vector<Pair> pairs;

inline void st_async_weak_shared_cluster_mbarrier_complete_tx_bytes_v2_f32(
    unsigned to, List<const float, 2> words, unsigned barrier) {
  if (offset_of(to) % 8) fail("a pair that is not aligned");
  if (block_of(to) != block_of(barrier)) fail("a pair away from its barrier");
  pairs.push_back({{*words.at[0], *words.at[1]}, to, barrier});
}
inline void land_pair() {
  const int number = dice() % pairs.size();
  const Pair pair = pairs[number];
  pairs.erase(pairs.begin() + number);
  std::memcpy(place(pair.to), pair.words, 8);
  Phases& of = phases_of(pair.barrier);
  of.bytes -= 8;
  settle(of);
}

// Fences do nothing, since this machine keeps the order of all accesses; for
// that of products the lanes of a warp meet.
inline void fence_mbarrier_init_release_cluster() {}
inline void fence_proxy_async_shared_cta() {}
inline void fence_acq_rel_gpu() {}
inline void wgmma_fence_sync_aligned() { meet_warp(); }

// Boxes of the TMA, on their way to a barrier or, without one, to memory.
struct Box {
  CUtensorMap map;
  std::vector<int> at;
  unsigned address, barrier;
  Thread* asked_by;
  long group;
  int offsets[2] = {};  // of windows, in im2col mode
};
inline std::vector<Box> copies, stores;

inline unsigned swizzled(unsigned at, int span = 128) {
  return at ^ (at >> 7 & (span / 16 - 1)) << 4;
}

template <int AXES>
Box box(const CUtensorMap* map, const List<const int, AXES>& corner,
        unsigned address, unsigned barrier = 0) {
  if (offset_of(address) % (map->swizzled ? 1024 : 128))
    fail("a box that is not aligned");
  if ((int)map->sizes.size() != AXES) fail("a map of other axes");
  if (map->swizzled && map->box[0] * map->element != map->span)
    fail("a line that is not swizzled as a whole");
  Box it{*map, {}, address, barrier, self, self->stores};
  for (const int* one : corner.at) it.at.push_back(*one);
  return it;
}

// Calls move(shared, global, bytes) for every 16 bytes of a box; `bytes` of
// them lie within the tensor. Returns the bytes of the box.
template <class Move>
long each_piece(const Box& box, Move&& move) {
  const CUtensorMap& map = box.map;
  const int axes = map.sizes.size(), line = map.box[0] * map.element;
  std::vector<int> at = box.at;
  long done = 0;
  while (true) {
    bool inside = true;
    long first = 0;  // element of the line
    for (int i = 0; i < axes; ++i) {
      inside &= i == 0 || (at[i] >= 0 && at[i] < map.sizes[i]);
      first += at[i] * map.pitches[i];
    }
    const long left = inside ? (long)(map.sizes[0] - at[0]) * map.element : 0;
    for (int i = 0; i < line; i += 16, done += 16) {
      const unsigned to = box.address + done;
      move(place(map.swizzled ? swizzled(to) : to),
           (unsigned char*)map.data + first * map.element + i,
           max(0L, min(16L, left - i)));
    }
    int axis = 1;
    for (; axis < axes; ++axis) {
      if (++at[axis] < box.at[axis] + map.box[axis]) break;
      at[axis] = box.at[axis];
    }
    if (axis == axes) return done;
  }
}

// The same, element by element, for boxes that may begin before the tensor, and
// for windows of an image: channels, x, y, image. `offsets` moves all windows.
inline long land_elements(const Box& box) {
  const CUtensorMap& map = box.map;
  const int axes = map.sizes.size(), count = map.windows.count;
  std::vector<int> lines = {count};
  if (!count) lines.assign(map.box.begin() + 1, map.box.end());
  long all = map.box[0];
  for (int n : lines) all *= n;
  std::vector<int> window(box.at.begin(), box.at.end());
  for (long done = 0; done < all; ++done) {
    std::vector<int> at(axes);
    long rest = done / map.box[0];
    const int first = done % map.box[0];
    if (count) {
      if (done && first == 0)  // on to the next window
        for (int i = 0; i < 3; ++i) {
          if (i == 2) {
            ++window[3];
            break;
          }
          window[1 + i] += map.windows.steps[i];
          if (window[1 + i] < map.sizes[1 + i] + map.windows.upper[i]) break;
          window[1 + i] = map.windows.lower[i];
        }
      at = {window[0] + first, window[1] + box.offsets[0],
            window[2] + box.offsets[1], window[3]};
    } else {
      at[0] = box.at[0] + first;
      for (int i = 1; i < axes; ++i)
        at[i] = box.at[i] + rest % map.box[i], rest /= map.box[i];
    }
    bool inside = true;
    long element = 0;
    for (int i = 0; i < axes; ++i) {
      inside &= at[i] >= 0 && at[i] < map.sizes[i];
      element += at[i] * map.pitches[i];
    }
    const unsigned to = box.address + done * map.element;
    unsigned char* const there =
        place(map.swizzled ? swizzled(to, map.span) : to);
    std::memset(there, 0, map.element);
    if (inside)
      std::memcpy(there, (unsigned char*)map.data + element * map.element,
                  map.element);
  }
  return all * map.element;
}

inline Box taken(std::vector<Box>& from) {
  const int number = dice() % from.size();
  const Box box = from[number];
  from.erase(from.begin() + number), ++progress;
  return box;
}
inline void land_copy() {
  const Box box = taken(copies);
  if (ended[block_of(box.address)]) fail("copy into a block that has ended");
  Phases& of = phases_of(box.barrier);
  const bool plain =
      box.at[0] >= 0 && !box.map.windows.count && box.map.span == 128;
  of.bytes -=
      plain
          ? each_piece(box,
                       [](unsigned char* to, unsigned char* from, long bytes) {
                         std::memset(to, 0, 16), std::memcpy(to, from, bytes);
                       })
          : land_elements(box);
  settle(of);
}
inline void land_store() {
  const Box box = taken(stores);
  if (ended[block_of(box.address)]) fail("a store from a block that has ended");
  each_piece(box, [](unsigned char* from, unsigned char* to, long bytes) {
    std::memcpy(to, from, bytes);
  });
}

inline void prefetch_tensormap(const CUtensorMap*) {}
template <int AXES>
inline void copy_to(unsigned to, const CUtensorMap* map,
                    const List<const int, AXES>& corner, unsigned barrier,
                    unsigned blocks) {
  for (int block = 0; block < MOST_BLOCKS; ++block)
    if (blocks >> block & 1)
      copies.push_back(
          box(map, corner, in_block(to, block), in_block(barrier, block)));
}
inline void
cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(
    unsigned to, const CUtensorMap* map, List<const int, 2> corner,
    unsigned barrier) {
  copy_to(to, map, corner, barrier, 1 << block_of(to));
}
inline void
cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(
    unsigned to, const CUtensorMap* map, List<const int, 2> corner,
    unsigned barrier, unsigned short blocks) {
  copy_to(to, map, corner, barrier, blocks);
}
inline void
cp_async_bulk_tensor_5d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(
    unsigned to, const CUtensorMap* map, List<const int, 5> corner,
    unsigned barrier) {
  copy_to(to, map, corner, barrier, 1 << block_of(to));
}
inline void
cp_async_bulk_tensor_5d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(
    unsigned to, const CUtensorMap* map, List<const int, 5> corner,
    unsigned barrier, unsigned short blocks) {
  copy_to(to, map, corner, barrier, blocks);
}
inline void
cp_async_bulk_tensor_3d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(
    unsigned to, const CUtensorMap* map, List<const int, 3> corner,
    unsigned barrier) {
  copy_to(to, map, corner, barrier, 1 << block_of(to));
}
inline void
cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(
    unsigned to, const CUtensorMap* map, List<const int, 4> corner,
    unsigned barrier) {
  copy_to(to, map, corner, barrier, 1 << block_of(to));
}
inline void
cp_async_bulk_tensor_4d_shared_cluster_global_im2col_mbarrier_complete_tx_bytes(
    unsigned to, const CUtensorMap* map, List<const int, 4> corner,
    unsigned barrier, List<const unsigned short, 2> offsets) {
  if (!map->windows.count) fail("a map of boxes for windows");
  copy_to(to, map, corner, barrier, 1 << block_of(to));
  for (int i = 0; i < 2; ++i) copies.back().offsets[i] = *offsets.at[i];
}

// Copies of a thread past its registers, which arrive when they are waited for.
struct Copy {
  unsigned to;
  const void* from;
  int size, bytes;
};
inline std::map<Thread*, std::deque<std::vector<Copy>>> on_the_way;

inline void cp_async_ca_shared_global(unsigned to, const void* from, int size,
                                      int bytes) {
  if (offset_of(to) % size || (bytes && (uintptr_t)from % size))
    fail("a copy that is not aligned");
  auto& groups = on_the_way[self];
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back({to, from, size, bytes});
}
inline void cp_async_commit_group() {
  auto& groups = on_the_way[self];
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}
inline void cp_async_wait_group(int groups) {
  auto& all = on_the_way[self];
  for (; (int)all.size() > groups + 1; all.pop_front())
    for (const Copy& one : all.front()) {
      std::memset(place(one.to), 0, one.size);
      std::memcpy(place(one.to), one.from, one.bytes);
    }
}

// A ticket that counts to `most`, and begins again.
inline void atom_acq_rel_gpu_global_inc_u32(int& before, void* ticket,
                                            int most) {
  unsigned& at = *(unsigned*)ticket;
  before = at, at = at >= (unsigned)most ? 0 : at + 1, ++progress;
}

inline void cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group(
    const CUtensorMap* map, List<const int, 2> corner, unsigned from) {
  stores.push_back(box(map, corner, from));
}
inline void cp_async_bulk_commit_group() { ++self->stores; }
inline void cp_async_bulk_wait_group_read(int groups) {
  const auto left = [&] {
    for (const Box& store : stores)
      if (store.asked_by == self && store.group < self->stores - groups)
        return true;
    return false;
  };
  while (left()) yield("stores");
}

// Flags in global memory, and stores of 16 bytes.
inline void st_release_gpu_global_u32(void* to, unsigned value) {
  *(unsigned*)to = value, ++progress;
}
inline void ld_acquire_gpu_global_u32(unsigned& value, const void* from) {
  value = *(const unsigned*)from;
  if (!value) yield("a flag");
}
inline void st_global_v4_b32(void* to, List<const unsigned, 4> words) {
  std::memcpy(to, words.array(), 16);
}

// The kernels before.
inline void griddepcontrol_launch_dependents() {}
inline void griddepcontrol_wait() {
  while (previous_runs) yield("the kernels before");
  self->knows_previous = true;
}

inline void setmaxnreg_dec_sync_aligned_u32(int) {}
inline void setmaxnreg_inc_sync_aligned_u32(int) {}

// The number of the block.
inline struct {
  unsigned x() const { return first_block + self->block; }
} ctaid;

// Numbers and words.
inline void mov_u32(unsigned& to, unsigned from) { to = from; }
inline void setp_ne_s32(bool& p, int x, int y) { p = x != y; }
inline void setp_ne_b32(bool& p, int x, int y) { p = x != y; }
inline void ex2_approx_ftz_f32(float& y, float x) { y = std::exp2(x); }
inline void rcp_approx_ftz_f32(float& y, float x) { y = 1 / x; }
inline void cvt_rn_bf16x2_f32(unsigned& word, float high, float low) {
  word = rounded(high) << 16 | rounded(low);
}
inline void cvt_rn_f16x2_f32(unsigned& word, float high, float low) {
  word = rounded_half(high) << 16 | rounded_half(low);
}

// Matrices of 8 x 8 elements of 16 bits. Lane i has the address of row i % 8 of
// matrix i / 8.
inline unsigned char* piece_of(unsigned row, int matrix) {
  return place(from_lane(row, 8 * matrix + lane() / 4)) + lane() % 4 * 4;
}
inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(List<unsigned, 4> words,
                                                     unsigned row) {
  for (int i = 0; i < 4; ++i) std::memcpy(words.at[i], piece_of(row, i), 4);
}
inline void stmatrix_sync_aligned_m8n8_x4_shared_b16(
    unsigned row, List<const unsigned, 4> words) {
  for (int i = 0; i < 4; ++i) std::memcpy(piece_of(row, i), words.at[i], 4);
}

// D += A B by a warp, all bf16 but D.
template <int M, int N, int K>
inline void mma_sync_aligned_row_col_f32_bf16_bf16_f32(
    List<float, 4> d, List<const unsigned, 4> a, List<const unsigned, 2> b,
    List<float, 4>) {
  static_assert(M == 16 && N == 8 && K == 16, "the shape that is described");
  const auto of = [](uint64_t word, int half) {
    return widened(word >> 16 * half & 0xffff);
  };
  for (int t = 0; t < 4; ++t)
    for (int part = 0; part < 2; ++part) {  // k = 8 part + 2 t and + 1
      const uint64_t rows = from_lane<uint64_t>(
          (uint64_t)*a.at[2 * part + 1] << 32 | *a.at[2 * part],
          lane() / 4 * 4 + t);
      for (int column = 0; column < 2; ++column) {
        const unsigned words =
            from_lane(*b.at[part], (lane() % 4 * 2 + column) * 4 + t);
        for (int half = 0; half < 2; ++half)
          for (int low = 0; low < 2; ++low)
            *d.at[2 * half + column] +=
                of(rows >> 32 * half, low) * of(words, low);
      }
    }
}

// Products. A factor lies as its descriptor says.
struct Descriptor {
  unsigned start, leading, stride, span;
  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4),
        span(bits >> 62 == 2 ? 64 : 128) {
    if (bits >> 62 != 1 && bits >> 62 != 2)
      fail("a descriptor of another swizzle");
  }
  // The canonical layouts for a swizzle of 128 (or 64) bytes, of elements of
  // `size` bytes; the second of 16-bit elements, for 128.
  template <class T>
  T k_major(int row, int k) const {
    return read<T>(start + row / 8 * stride + row % 8 * span + k * sizeof(T),
                   span);
  }
  uint16_t mn_major(int n, int k) const {
    return read<uint16_t>(start + n / 64 * leading + k / 8 * stride +
                          k % 8 * 128 + n % 64 * 2);
  }
  template <class T>
  static T read(unsigned at, int span = 128) {
    T bits;
    std::memcpy(&bits, shared_memory[self->block] + swizzled(at, span),
                sizeof bits);
    return bits;
  }
};

// The element of A or B at this row of A or column of B.
inline float element(Product::Type type, const Descriptor& factor, bool across,
                     int line, int k) {
  if (type == Product::E4M3) return of_e4m3(factor.k_major<uint8_t>(line, k));
  if (type == Product::TF32)  // the upper 19 bits
    return bits_as<float>(factor.k_major<uint32_t>(line, k) & 0xffffe000);
  const unsigned bits =
      across ? factor.mn_major(line, k) : factor.k_major<uint16_t>(line, k);
  return type == Product::FP16 ? widened_half(bits) : widened(bits);
}

// The same of a factor A in registers of the four lanes that share a row.
inline float element_in_registers(const Product& product, int half, int k) {
  const int quad = self->block * block_threads + self->index / 4 * 4;
  const auto word = [&](int lane, int number) {
    return threads[quad + lane].words.at(product.number)[number];
  };
  if (product.type == Product::E4M3)
    return of_e4m3(word(k % 16 / 4, half + k / 16 * 2) >> k % 4 * 8 & 255);
  const unsigned two = word(k % 8 / 2, half + k / 8 * 2);
  const unsigned bits = k % 2 ? two >> 16 : two & 0xffff;
  return product.type == Product::FP16 ? widened_half(bits) : widened(bits);
}

inline void start(Product product) {
  InFlight& results = self->in_flight[product.d];
  if (results.products++ == 0) {
    results.values.assign(product.d, product.d + product.count);
    std::fill(product.d, product.d + product.count, NAN);
  }
  product.number = self->products++;
  self->words[product.number] = product.words;
  self->open.push_back(product);
}

inline void finish(const Product& product) {
  InFlight& results = self->in_flight.at(product.d);
  const int row = self->index / 32 % 4 * 16 + lane() / 4;
  const int depth = product.type == Product::E4M3   ? 32
                    : product.type == Product::TF32 ? 8
                                                    : 16;
  for (int i = 0; product.words && i < 4; ++i)
    if (product.words[i] != product.started_with[i])
      fail("a factor in registers has changed");
  float a[2][32], b[32];
  for (int half = 0; half < 2; ++half)
    for (int k = 0; k < depth; ++k)
      a[half][k] = product.words ? element_in_registers(product, half, k)
                                 : element(product.type, Descriptor(product.a),
                                           product.a_across, row + half * 8, k);
  const Descriptor of_b(product.b);
  for (int pair = 0; pair < product.count; pair += 4)
    for (int i = pair; i < pair + 2; ++i) {
      const int column = pair * 2 + lane() % 4 * 2 + i % 2;
      for (int k = 0; k < depth; ++k)
        b[k] = element(product.type, of_b, product.b_across, column, k);
      for (int half = 0; half < 2; ++half) {
        float& result = results.values[i + half * 2];
        if (!product.add) result = 0;
        for (int k = 0; k < depth; ++k) result += a[half][k] * b[k];
      }
    }
  if (--results.products) return;
  for (int i = 0; i < product.count; ++i) {
    if (!std::isnan(product.d[i])) fail("results have been touched in flight");
    product.d[i] = results.values[i];
  }
}

template <int M, int N, int K, int COUNT>
void start_product(Product::Type type, const List<float, COUNT>& d,
                   const unsigned* words, uint64_t a, uint64_t b, bool add,
                   bool a_across, bool b_across) {
  static_assert(M == 64 && COUNT == N / 2, "sums of a thread");
  Product product{d.array(), COUNT, words, {},       a,       b,
                  add,       0,     type,  a_across, b_across};
  if (words) std::memcpy(product.started_with, words, 16);
  start(product);
}
template <int M, int N, int K, int COUNT>
inline void wgmma_mma_async_sync_aligned_f32_bf16_bf16(List<float, COUNT> d,
                                                       uint64_t a, uint64_t b,
                                                       bool add, int, int,
                                                       int a_across,
                                                       int b_across) {
  start_product<M, N, K>(Product::BF16, d, nullptr, a, b, add, a_across,
                         b_across);
}
template <int M, int N, int K, int COUNT>
inline void wgmma_mma_async_sync_aligned_f32_bf16_bf16(
    List<float, COUNT> d, List<const unsigned, 4> a, uint64_t b, bool add, int,
    int, int b_across) {
  start_product<M, N, K>(Product::BF16, d, a.array(), 0, b, add, false,
                         b_across);
}
template <int M, int N, int K, int COUNT>
inline void wgmma_mma_async_sync_aligned_f32_f16_f16(List<float, COUNT> d,
                                                     uint64_t a, uint64_t b,
                                                     bool add, int, int,
                                                     int a_across,
                                                     int b_across) {
  start_product<M, N, K>(Product::FP16, d, nullptr, a, b, add, a_across,
                         b_across);
}
template <int M, int N, int K, int COUNT>
inline void wgmma_mma_async_sync_aligned_f32_tf32_tf32(List<float, COUNT> d,
                                                       uint64_t a, uint64_t b,
                                                       bool add, int, int) {
  start_product<M, N, K>(Product::TF32, d, nullptr, a, b, add, false, false);
}
template <int M, int N, int K, int COUNT>
inline void wgmma_mma_async_sync_aligned_f32_e4m3_e4m3(List<float, COUNT> d,
                                                       uint64_t a, uint64_t b,
                                                       bool add, int, int) {
  start_product<M, N, K>(Product::E4M3, d, nullptr, a, b, add, false, false);
}

inline void wgmma_commit_group_sync_aligned() {
  self->groups.push_back(std::move(self->open)), self->open.clear();
}
// A product is one of all four warps: it ends when all have begun it, and then
// for all of them.
inline void wgmma_wait_group_sync_aligned(int groups) {
  meet_warpgroup();
  for (; (int)self->groups.size() > groups; self->groups.pop_front())
    for (const Product& product : self->groups.front()) finish(product);
  meet_warpgroup();
}

}  // namespace ptx
