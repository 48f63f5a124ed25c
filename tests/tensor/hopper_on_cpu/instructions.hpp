// What attention_tma.cuh and attention_wgmma.cuh wrap, as the PTX manual
// describes it. Copies land at a random later time. Of products, factors are
// read as late as may be, and results are NaN until they are waited for.
#pragma once
#include "machine.hpp"

// Barriers that count bytes.
using Barrier = unsigned long long;

struct Phases {
  int arrivals = 0, pending = 0;
  long bytes = 0, past = 0;
};
inline std::map<Barrier*, Phases> phases[MOST_BLOCKS];

// Barriers are known by block and address; in shared memory, by that of block
// 0.
inline Barrier* known(Barrier* barrier) {
  const long at = (unsigned char*)barrier - shared_memory[0];
  const bool inside = at >= 0 && at < (long)sizeof shared_memory;
  return inside ? (Barrier*)(shared_memory[0] + at % sizeof shared_memory[0])
                : barrier;
}

inline void settle(Phases& of) {
  if (of.pending || of.bytes) return;
  ++of.past, ++progress, of.pending = of.arrivals;
}

inline void arrive_at(int block, Barrier* barrier, long bytes) {
  if (ended[block]) fail("arrival at a block that has ended");
  Phases& of = phases[block].at(known(barrier));
  if (of.pending == 0) fail("one arrival too many");
  --of.pending, of.bytes += bytes;
  settle(of);
}

inline void init(Barrier* barrier, int arrivals) {
  phases[self->block][known(barrier)] = {arrivals, arrivals, 0, 0};
}
inline void show_barriers() {}
inline void arrive(Barrier* barrier) { arrive_at(self->block, barrier, 0); }
inline void arrive_in(Barrier* barrier, int block) {
  arrive_at(block, barrier, 0);
}
inline void arrive_and_expect(Barrier* barrier, int bytes) {
  arrive_at(self->block, barrier, bytes);
}

inline void wait(Barrier* barrier, unsigned parity) {
  while ((phases[self->block].at(known(barrier)).past & 1) == parity)
    yield("a barrier");
  if (dice() % 4 == 0) yield("nothing");
}

// Copies of boxes.
struct CUtensorMap {
  const uint16_t* data;
  int tokens, heads, d, box, parts;
  bool words = false;  // a box is 128 words of 32 bits of a line, not swizzled
  int sequences = 1 << 30;  // the TMA has zeros for what lies beyond
};

struct Copy {
  int block;
  unsigned to;
  CUtensorMap map;
  int token, part, head, sequence;
  Barrier* barrier;
};
inline std::vector<Copy> copies;

inline unsigned swizzled(unsigned at) { return at ^ (at >> 7 & 7) << 4; }
inline unsigned shared_address(const void* at) {
  return (const unsigned char*)at - shared_memory[self->block];
}
inline void fetch_map(const CUtensorMap&) {}

inline void copy_box(unsigned to, const CUtensorMap& map, int token, int head,
                     int sequence, Barrier* barrier) {
  if (to % 1024) fail("a tile that is not aligned");
  copies.push_back({self->block, to, map, token, 0, head, sequence, barrier});
}

inline void copy_to_both(unsigned to, const CUtensorMap& map, int token,
                         int part, int head, int sequence, Barrier* barrier) {
  for (int block = 0; block < 2; ++block)
    copies.push_back({block, to, map, token, part, head, sequence, barrier});
}

inline void land(int number) {
  const Copy copy = copies[number];
  const CUtensorMap& map = copy.map;
  copies.erase(copies.begin() + number);
  if (ended[copy.block]) fail("copy into a block that has ended");
  Phases& of = phases[copy.block].at(known(copy.barrier));
  if (map.words) {
    for (int e = 0; e < 128; ++e) {
      const long at = (long)copy.token * map.d + copy.part + e;
      const bool inside = copy.token < map.tokens && copy.part + e < map.d;
      const float value = inside ? ((const float*)map.data)[at] : 0;
      std::memcpy(shared_memory[copy.block] + copy.to + 4 * e, &value, 4);
    }
    of.bytes -= 512;
    settle(of), ++progress;
    return;
  }
  for (int part = 0; part < map.parts; ++part)
    for (int row = 0; row < map.box; ++row)
      for (int e = 0; e < 64; ++e) {
        const int token = copy.token + row;
        const long at =
            (((long)copy.sequence * map.tokens + token) * map.heads +
             copy.head) *
            map.d;
        const int column = (copy.part + part) * 64 + e;
        const bool inside = token >= 0 && token < map.tokens &&
                            copy.sequence >= 0 &&
                            copy.sequence < map.sequences &&
                            copy.head < map.heads && column < map.d;
        const uint16_t value = inside ? map.data[at + column] : 0;
        const unsigned to =
            swizzled(copy.to + (part * map.box + row) * 128 + e * 2);
        std::memcpy(shared_memory[copy.block] + to, &value, 2);
      }
  of.bytes -= map.parts * map.box * 128;
  settle(of), ++progress;
}

// Turns and registers.
inline void wait_for_turn(int id) {
  meet(turns[self->block][id], 256, "its turn");
}
inline void pass_turn(int id) {
  Meeting& turn = turns[self->block][id];
  if (++turn.arrived == 256) turn.arrived = 0, ++turn.past, ++progress;
}

// Work that a warp hands to a warpgroup.
inline void wait_named(int id) {
  meet(turns[self->block][id], 160, "a named barrier");
}
inline void arrive_named(int id) {
  Meeting& meeting = turns[self->block][id];
  if (++meeting.arrived == 160) meeting.arrived = 0, ++meeting.past, ++progress;
}
template <int COUNT>
void give_registers() {}
template <int COUNT>
void take_registers() {}

// Products.
struct Descriptor {
  unsigned start, leading, stride;
  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4) {
    if (bits >> 62 != 1) fail("a descriptor of another swizzle");
  }
  // The canonical layouts for a swizzle of 128 bytes, of 16-bit elements.
  float k_major(int row, int k, bool fp16 = false) const {
    return read(start + row / 8 * stride + row % 8 * 128 + k * 2, fp16);
  }
  float mn_major(int n, int k, bool fp16 = false) const {
    return read(
        start + n / 64 * leading + k / 8 * stride + k % 8 * 128 + n % 64 * 2,
        fp16);
  }
  // The same of 32-bit elements, of which TF32 has the upper 19 bits.
  float k_major_tf32(int row, int k) const {
    const unsigned at = start + row / 8 * stride + row % 8 * 128 + k * 4;
    uint32_t bits;
    std::memcpy(&bits, shared_memory[self->block] + swizzled(at), 4);
    return bits_as<float>(bits & 0xffffe000);
  }
  // And of 8-bit elements, e4m3.
  unsigned k_major_e4m3(int row, int k) const {
    const unsigned at = start + row / 8 * stride + row % 8 * 128 + k;
    return shared_memory[self->block][swizzled(at)];
  }
  static float read(unsigned at, bool fp16) {
    uint16_t bits;
    std::memcpy(&bits, shared_memory[self->block] + swizzled(at), 2);
    return fp16 ? widened_half(bits) : widened(bits);
  }
};

inline float of_e4m3(unsigned code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float size = exponent ? std::ldexp(8 + mantissa, exponent - 10)
                              : std::ldexp(mantissa, -9);
  return (code & 127) == 127 ? NAN : code & 128 ? -size : size;
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

inline void end_of(const Product& product, InFlight& results) {
  if (--results.products) return;
  for (int i = 0; i < product.count; ++i) {
    if (!std::isnan(product.d[i])) fail("results have been touched in flight");
    product.d[i] = results.values[i];
  }
}

inline void finish(const Product& product) {
  InFlight& results = self->in_flight.at(product.d);
  const int quad = self->block * block_threads + self->index / 4 * 4;
  const int row = self->index / 32 % 4 * 16 + lane() / 4;
  const Descriptor b(product.b);
  if (product.tf32) {
    const Descriptor a(product.a);
    for (int i = 0; i < product.count; ++i) {
      float sum = product.add ? results.values[i] : 0;
      for (int k = 0; k < 8; ++k)
        sum += a.k_major_tf32(row + i / 2 % 2 * 8, k) *
               b.k_major_tf32(i / 4 * 8 + lane() % 4 * 2 + i % 2, k);
      results.values[i] = sum;
    }
    end_of(product, results);
    return;
  }
  for (int i = 0; product.words && i < 4; ++i)
    if (product.words[i] != product.started_with[i])
      fail("a factor in registers has changed");
  if (product.e4m3) {
    float a[2][32];
    for (int half = 0; half < 2; ++half)
      for (int k = 0; k < 32; ++k) {
        unsigned code;
        if (product.words)
          code = threads[quad + k % 16 / 4].words.at(
                     product.number)[half + k / 16 * 2] >>
                 k % 4 * 8;
        else
          code = Descriptor(product.a).k_major_e4m3(row + half * 8, k);
        a[half][k] = of_e4m3(code & 255);
      }
    for (int i = 0; i < product.count; ++i) {
      const int column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
      float sum = product.add ? results.values[i] : 0;
      for (int k = 0; k < 32; ++k)
        sum += a[i / 2 % 2][k] * of_e4m3(b.k_major_e4m3(column, k));
      results.values[i] = sum;
    }
    end_of(product, results);
    return;
  }
  float a[2][16];
  for (int half = 0; half < 2; ++half)
    for (int k = 0; k < 16; ++k) {
      if (!product.words) {
        const Descriptor of_a(product.a);
        a[half][k] = product.a_across
                         ? of_a.mn_major(row + half * 8, k, product.fp16)
                         : of_a.k_major(row + half * 8, k, product.fp16);
        continue;
      }
      const unsigned word =
          threads[quad + k % 8 / 2].words.at(product.number)[half + k / 8 * 2];
      a[half][k] = widened(k % 2 ? word >> 16 : word & 0xffff);
    }
  for (int i = 0; i < product.count; ++i) {
    const int column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
    float sum = product.add ? results.values[i] : 0;
    for (int k = 0; k < 16; ++k)
      sum += a[i / 2 % 2][k] * (product.words || product.b_across
                                    ? b.mn_major(column, k, product.fp16)
                                    : b.k_major(column, k, product.fp16));
    results.values[i] = sum;
  }
  end_of(product, results);
}

inline void begin_products() { meet_warp(); }
inline void end_group() {
  self->groups.push_back(std::move(self->open)), self->open.clear();
}
template <int GROUPS>
void wait_for_groups() {
  meet_warp();
  for (; (int)self->groups.size() > GROUPS; self->groups.pop_front())
    for (const Product& product : self->groups.front()) finish(product);
  meet_warp();
}
template <class T, int COUNT>
void arrived(T (&)[COUNT]) {}
template <int COUNT>
void multiply(float (&d)[COUNT], unsigned long long a, unsigned long long b,
              int add) {
  start({d, COUNT, nullptr, {}, a, b, add != 0, 0});
}
template <int COUNT>
void multiply(float (&d)[COUNT], const unsigned* a, unsigned long long b,
              int add) {
  start({d, COUNT, a, {a[0], a[1], a[2], a[3]}, 0, b, add != 0, 0});
}
