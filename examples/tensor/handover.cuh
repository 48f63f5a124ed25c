// Work that a producer hands to consumers as it goes along: by ordinary stores
// and loads, between named barriers of the hardware.
#pragma once

// --8<-- [start:handover]
// One warp hands items to one warpgroup, through a slot in shared memory that
// holds one. Two named barriers order this, of 32 + 128 threads each: `id` and
// `id` + 1, of the 16 that a block has (0 is that of __syncthreads). Who
// arrives goes on at once; who waits goes on when all have come.
__device__ __forceinline__ void arrive_named(int id) {
  asm volatile("bar.arrive %0, 160;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void wait_named(int id) {
  asm volatile("bar.sync %0, 160;" ::"r"(id) : "memory");
}

// The warp, when the slot has been emptied; its first lane has the item.
template <class Item>
__device__ __forceinline__ void hand_over(Item* slot, const Item& item,
                                          int id) {
  wait_named(id + 1);
  if (threadIdx.x % 32 == 0) *slot = item;
  arrive_named(id);
}

// The warpgroup. It says that the slot is empty before the first item and, once
// it has one, if another shall come.
__device__ __forceinline__ void say_empty(int id) { arrive_named(id + 1); }

template <class Item>
__device__ __forceinline__ Item receive(const Item* slot, int id) {
  wait_named(id);
  return *slot;
}
// --8<-- [end:handover]
