// The same functions as a module of Python, by nanobind. g++ compiles it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

#include "saxpy.hpp"

namespace nb = nanobind;
using namespace nb::literals;

// --8<-- [start:arrays]
// Arrays on the GPU, of CuPy or PyTorch: others are refused, with a TypeError.
using In =
    nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cuda>;
using Out = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cuda>;

void of_arrays(float a, In x, Out y) {
  if (x.shape(0) != y.shape(0)) throw std::invalid_argument("lengths differ");
  const int n = static_cast<int>(y.shape(0));
  if (const int error = saxpy_launch(a, x.data(), y.data(), n, nullptr))
    throw std::runtime_error(saxpy_error(error));
}
// --8<-- [end:arrays]

// --8<-- [start:addresses]
using Address = std::uintptr_t;

template <int function(float, const float*, float*, int, void*)>
int of_addresses(float a, Address x, Address y, int n, Address stream) {
  return function(a, reinterpret_cast<const float*>(x),
                  reinterpret_cast<float*>(y), n,
                  reinterpret_cast<void*>(stream));
}

NB_MODULE(saxpy_nb, m) {
  m.def("launch", of_addresses<saxpy_launch>);
  m.def("nothing", of_addresses<saxpy_nothing>);
  // noconvert: float64 is refused, and not made a float32 array that is lost.
  m.def("saxpy", of_arrays, "a"_a, "x"_a.noconvert(), "y"_a.noconvert());
  m.def("saxpy_converting", of_arrays);
}
// --8<-- [end:addresses]
