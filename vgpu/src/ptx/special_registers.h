// PTX's names of special registers.
#pragma once
#include <cstdint>
#include <string_view>

namespace vgpu {

// Where a special register's value comes from: one of core's (core/special_registers.h), or what it always is here.
struct SpecialSource {
  int32_t which;       // -1: always `value`
  uint32_t value;
  uint32_t width;      // bytes that mov and cvt read
  bool narrow, wide;   // may mov read 16 bits of it; 64 bits?
};

// nullptr: none of that name, or none that a frame holds.
const SpecialSource* special_register_of(std::string_view name);

// `%tid.x` and the like have three components and a fourth: is this the name of all four?
bool is_special_vector(std::string_view name);

}  // namespace vgpu
