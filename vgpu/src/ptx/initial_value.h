// Writes the initial value of a module's variable.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "module.h"

namespace vgpu {

class InitialValue {
 public:
  // Returns 0 if there is no such name.  is_variable: the name must be a variable's, not a function's.
  using AddressOf = std::function<uint64_t(const std::string& name, bool is_variable)>;

  InitialValue(const ptx::Declaration& declaration, AddressOf address_of)
      : declaration_(declaration), tokens_(declaration.initial), address_of_(std::move(address_of)) {}

  // Writes to `memory`, which has the declaration's size and is zero.  Throws Unsupported, with the line, if the value is invalid.
  void write(uint8_t* memory);

 private:
  void write_level(size_t level, uint8_t* memory, uint32_t bytes);
  void write_value(uint8_t* memory);
  uint64_t parse_number();
  uint64_t parse_address();
  bool has_type(std::initializer_list<std::string_view> types) const;
  bool is(std::string_view text) const { return at_ < tokens_.size() && tokens_[at_].text == text; }
  void expect(std::string_view text);
  [[noreturn]] void reject(const char* why) const;

  const ptx::Declaration& declaration_;
  const std::vector<ptx::Token>& tokens_;
  AddressOf address_of_;
  size_t at_ = 0;
};

}  // namespace vgpu
