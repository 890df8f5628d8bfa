// Bits of a buffer: from its first bit on, or backwards from a mark in its last byte, as entropy coders write them.
#pragma once
#include <cstdint>
#include <string_view>

#include "invalid_image.h"

namespace vgpu {

class ForwardBits {
 public:
  explicit ForwardBits(std::string_view from) : from_(from) {}
  uint32_t read(uint32_t count) {
    const uint32_t value = peek(count);
    at_ += count;
    return value;
  }
  uint32_t peek(uint32_t count) const {  // behind the end lie zeros, which a caller finds out by bytes()
    uint64_t word = 0;
    for (uint64_t k = 0; k < 5; k++)
      if (at_ / 8 + k < from_.size()) word |= uint64_t(static_cast<uint8_t>(from_[at_ / 8 + k])) << (8 * k);
    return static_cast<uint32_t>(word >> (at_ % 8) & ((uint64_t(1) << count) - 1));
  }
  void skip(uint32_t count) { at_ += count; }
  size_t bytes() const {  // that were begun
    const size_t begun = (at_ + 7) / 8;
    if (begun > from_.size()) throw InvalidImage("damaged zstd data: it ends too soon");
    return begun;
  }

 private:
  std::string_view from_;
  uint64_t at_ = 0;
};

class BackwardBits {
 public:
  explicit BackwardBits(std::string_view from) : from_(from) {
    if (from.empty() || !from.back()) throw InvalidImage("damaged zstd data: a bit stream without a mark");
    const uint32_t last = static_cast<uint8_t>(from.back());
    left_ = static_cast<int64_t>(from.size()) * 8 - (__builtin_clz(last) - 24) - 1;
  }
  // As if zeros lay before the first bit; is_overrun() tells.
  uint64_t read(uint32_t count) {
    left_ -= count;
    return peek_at(left_, count);
  }
  uint64_t peek(uint32_t count) const { return peek_at(left_ - count, count); }
  void skip(uint32_t count) { left_ -= count; }
  bool is_finished() const { return left_ == 0; }
  bool is_overrun() const { return left_ < 0; }

 private:
  uint64_t peek_at(int64_t at, uint32_t count) const {
    if (!count || at <= -int64_t(count)) return 0;
    if (at < 0) return peek_at(0, static_cast<uint32_t>(count + at)) << -at;
    uint64_t low = 0, high = 0;
    const size_t byte = static_cast<size_t>(at / 8);
    for (size_t k = 0; k < 8 && byte + k < from_.size(); k++) low |= uint64_t(static_cast<uint8_t>(from_[byte + k])) << (8 * k);
    if (byte + 8 < from_.size()) high = static_cast<uint8_t>(from_[byte + 8]);
    const uint32_t shift = at % 8;
    const uint64_t word = shift ? low >> shift | high << (64 - shift) : low;
    return count == 64 ? word : word & ((uint64_t(1) << count) - 1);
  }

  std::string_view from_;
  int64_t left_;  // bits
};

}  // namespace vgpu
