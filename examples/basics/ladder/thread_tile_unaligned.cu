// thread_tile.cu without its promises of alignment: does the compiler need them
// to read four words at a time?
#undef __align__
#define __align__(bytes)
#include "thread_tile.cu"
