// What C++, ctypes and nanobind see of saxpy.cu. No word of it is CUDA's.
#pragma once

// Each returns 0, or the number of an error of CUDA.
extern "C" {
// --8<-- [start:calls]
// y = a * x + y, of arrays on the GPU; stream: 0 is the default one.
int saxpy_launch(float a, const float* x, float* y, int n, void* stream);
// --8<-- [end:calls]
// The same so many times: the loop is here and not in Python.
int saxpy_launches(float a, const float* x, float* y, int n, void* stream,
                   int count);
// Takes the same and does nothing.
int saxpy_nothing(float a, const float* x, float* y, int n, void* stream);
// The same sum of arrays of the host: copied there, computed, copied back.
int saxpy_of_host(float a, const float* x, float* y, int n);
// Until the GPU can be used, which takes a while once in a process.
int saxpy_wake(void);
const char* saxpy_error(int error);
}
