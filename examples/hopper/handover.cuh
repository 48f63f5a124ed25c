// Work that a producer hands to consumers as it goes along. This header comes
// after one with barriers.
//
//   Slot, init          a place for one item, and its barriers
//   hand_over, receive  put an item there, and take it
#pragma once

// --8<-- [start:handover]
// One thread hands items to a warpgroup, through a slot in shared memory that
// holds one item. `full` and `empty` are like the barriers of a stage: they put
// writing and reading in order. Words are nevertheless written and read by
// atomic operations, since racecheck of CUDA 13.0 does not follow this order,
// and two atomic operations on a word are no race in any order. Item: a struct
// of up to 32 words.
template <class Item>
struct Slot {
  static constexpr int WORDS = sizeof(Item) / 4;
  static_assert(sizeof(Item) % 4 == 0 && WORDS <= 32, "a word for each lane");
  unsigned words[WORDS];
  Barrier full, empty;
};

template <class Item>
__device__ __forceinline__ void init(Slot<Item>& slot) {
  init(&slot.full, 1), init(&slot.empty, 4);
}

// The thread calls this. `parity` is 0 for the first item, 1 for the second, 0
// for the third, and so on.
template <class Item>
__device__ __forceinline__ void hand_over(Slot<Item>& slot, const Item& item,
                                          int parity) {
  unsigned words[Slot<Item>::WORDS];
  memcpy(words, &item, sizeof item);
  wait(&slot.empty, parity ^ 1);
#pragma unroll
  for (int i = 0; i < Slot<Item>::WORDS; ++i)
    atomicExch(&slot.words[i], words[i]);
  arrive(&slot.full);
}

// The warpgroup calls this; each of its warps says when it has the item. Each
// lane reads one word, and gives it to the other lanes.
template <class Item>
__device__ __forceinline__ Item receive(Slot<Item>& slot, int parity) {
  constexpr int WORDS = Slot<Item>::WORDS;
  const int lane = threadIdx.x % 32;
  wait(&slot.full, parity);
  const unsigned word = lane < WORDS ? atomicOr(&slot.words[lane], 0) : 0;
  __syncwarp();
  if (lane == 0) arrive(&slot.empty);
  unsigned words[WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = __shfl_sync(~0u, word, i);
  Item item;
  memcpy(&item, words, sizeof item);
  return item;
}
// --8<-- [end:handover]
