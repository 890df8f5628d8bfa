// PTX's special registers by name.
#pragma once
#include <cstdint>
#include <string_view>

namespace vgpu {

// The source of a special register's value: a register of the core (core/special_registers.h), or a constant.
struct SpecialSource {
  int32_t core_register;  // a SpecialRegister; -1: the constant `value`
  uint32_t value;
  uint32_t width;      // bytes that mov and cvt read
  bool narrow, wide;   // whether mov may read it as 16 bits, as 64 bits
};

// Returns nullptr if there is no such register, or if each reading computes it anew, as `%clock`.
const SpecialSource* special_register_of(std::string_view name);

// Returns whether the name is that of a vector of four components, such as `%tid`.
bool is_special_vector(std::string_view name);

}  // namespace vgpu
