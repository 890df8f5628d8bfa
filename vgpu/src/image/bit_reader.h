// Readers of bit streams: forward from the first bit, or backward from a marker bit in the last byte.
#pragma once
#include <cstdint>
#include <string_view>

#include "invalid_image.h"

namespace vgpu {

class ForwardBits {
 public:
  explicit ForwardBits(std::string_view data) : data_(data) {}
  uint32_t read(uint32_t count) {
    const uint32_t value = peek(count);
    position_ += count;
    return value;
  }
  uint32_t peek(uint32_t count) const {  // zeros behind the end; bytes() detects it
    uint64_t word = 0;
    for (uint64_t k = 0; k < 5; k++)
      if (position_ / 8 + k < data_.size()) word |= uint64_t(static_cast<uint8_t>(data_[position_ / 8 + k])) << (8 * k);
    return static_cast<uint32_t>(word >> (position_ % 8) & ((uint64_t(1) << count) - 1));
  }
  void skip(uint32_t count) { position_ += count; }
  size_t bytes() const {  // read so far, the last one perhaps in part
    const size_t count = (position_ + 7) / 8;
    if (count > data_.size()) throw InvalidImage("damaged zstd data: it ends too soon");
    return count;
  }

 private:
  std::string_view data_;
  uint64_t position_ = 0;
};

class BackwardBits {
 public:
  explicit BackwardBits(std::string_view data) : data_(data) {
    if (data.empty() || !data.back()) throw InvalidImage("damaged zstd data: a bit stream without a mark");
    const uint32_t last = static_cast<uint8_t>(data.back());
    remaining_ = static_cast<int64_t>(data.size()) * 8 - (__builtin_clz(last) - 24) - 1;
  }
  // Reads zeros before the first bit; is_overrun() detects it.
  uint64_t read(uint32_t count) {
    remaining_ -= count;
    return peek_at(remaining_, count);
  }
  uint64_t peek(uint32_t count) const { return peek_at(remaining_ - count, count); }
  void skip(uint32_t count) { remaining_ -= count; }
  bool is_finished() const { return remaining_ == 0; }
  bool is_overrun() const { return remaining_ < 0; }

 private:
  uint64_t peek_at(int64_t position, uint32_t count) const {
    if (!count || position <= -int64_t(count)) return 0;
    if (position < 0) return peek_at(0, static_cast<uint32_t>(count + position)) << -position;
    uint64_t low = 0, high = 0;
    const size_t byte = static_cast<size_t>(position / 8);
    for (size_t k = 0; k < 8 && byte + k < data_.size(); k++) low |= uint64_t(static_cast<uint8_t>(data_[byte + k])) << (8 * k);
    if (byte + 8 < data_.size()) high = static_cast<uint8_t>(data_[byte + 8]);
    const uint32_t shift = position % 8;
    const uint64_t word = shift ? low >> shift | high << (64 - shift) : low;
    return count == 64 ? word : word & ((uint64_t(1) << count) - 1);
  }

  std::string_view data_;
  int64_t remaining_;  // bits
};

}  // namespace vgpu
