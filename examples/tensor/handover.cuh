// Work that a producer hands to consumers as it goes along: by stores that a
// barrier counts like the bytes of a copy. Comes after a header with barriers.
#pragma once

// --8<-- [start:handover]
// 16 bytes to shared memory, some time later. A barrier counts them.
__device__ __forceinline__ void store_later(void* to, const uint4& words,
                                            Barrier* barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
      "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(shared_address(to)),
      "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w),
      "r"(shared_address(barrier))
      : "memory");
}

// One thread hands items of 16 or 32 bytes to a warpgroup, through a slot in
// shared memory that holds one. `full` and `empty` are those of a stage.
template <class Item>
struct Slot {
  Item item;
  Barrier full, empty;
};

template <class Item>
__device__ __forceinline__ void init(Slot<Item>& slot) {
  init(&slot.full, 1), init(&slot.empty, 4);
}

// By the thread. `parity` is 0 for the first item, 1 for the second, and so on.
template <class Item>
__device__ __forceinline__ void hand_over(Slot<Item>& slot, const Item& item,
                                          int parity) {
  static_assert(sizeof(Item) % 16 == 0, "whole stores");
  wait(&slot.empty, parity ^ 1);
  arrive_and_expect(&slot.full, sizeof(Item));
#pragma unroll
  for (int i = 0; i < sizeof(Item) / 16; ++i)
    store_later(reinterpret_cast<uint4*>(&slot.item) + i,
                reinterpret_cast<const uint4*>(&item)[i], &slot.full);
}

// By the warpgroup, of which each warp says when it has the item.
template <class Item>
__device__ __forceinline__ Item receive(Slot<Item>& slot, int parity) {
  wait(&slot.full, parity);
  const Item item = slot.item;
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(&slot.empty);
  return item;
}
// --8<-- [end:handover]
