// bit_cast, as std::bit_cast of C++20, and the integers that have a float's bits.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace vgpu {

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T> using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;  // of a float or double

}  // namespace vgpu
