// bit_cast, as std::bit_cast of C++20.
#pragma once
#include <cstring>

namespace vgpu {

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace vgpu
