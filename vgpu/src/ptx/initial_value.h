// What a module's variable holds at first, as its declaration says.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "module.h"

namespace vgpu {

class Initial {
 public:
  using AddressOf = std::function<uint64_t(const std::string& name, bool with_offset)>;  // 0: nothing has it

  Initial(const ptx::Declaration& one, AddressOf address_of)
      : one_(one), tokens_(one.initial), address_of_(std::move(address_of)) {}

  // Into one.size bytes that are zero.  Unsupported, with the line: what is not understood.
  void write(uint8_t* at);

 private:
  void fill(size_t level, uint8_t* at, uint32_t bytes);
  void value(uint8_t* at);
  uint64_t number();
  uint64_t address();
  bool is(std::string_view text) const { return at_ < tokens_.size() && tokens_[at_].text == text; }
  void need(std::string_view text);
  [[noreturn]] void reject(const char* why) const;

  const ptx::Declaration& one_;
  const std::vector<ptx::Token>& tokens_;
  AddressOf address_of_;
  size_t at_ = 0;
};

}  // namespace vgpu
