// The two consumers end their last tiles one after the other.
//
//   wait_for_other_consumer  waits until the other one lets it go on
//   let_other_consumer       lets the other one go on
#pragma once
#include "ptx/named_barrier.cuh"

// --8<-- [start:turns]
// Barrier 3 of the hardware; barriers 1 and 2 belong to one consumer each. One
// consumer waits here until the other lets it go on; the other one does not
// wait.
__device__ __forceinline__ void wait_for_other_consumer() { sync_at<256>(3); }
__device__ __forceinline__ void let_other_consumer() { arrive_at<256>(3); }
// --8<-- [end:turns]
