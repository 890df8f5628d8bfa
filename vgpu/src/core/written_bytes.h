// Maps of written bytes: a bit for each byte of memory, of an allocation or of a block's shared memory.
#pragma once
#include <cstdint>
#include <cstring>

namespace vgpu {

// A position in a map.
struct WrittenBytes {
  uint8_t* bits = nullptr;  // nullptr: not tracked, so all bytes count as written
  uint64_t first = 0;  // number of the bit

  explicit operator bool() const { return bits; }
  WrittenBytes operator+(uint64_t bytes) const { return {bits, first + bytes}; }
};

constexpr uint64_t bytes_of_map(uint64_t bytes) { return (bytes + 7) / 8; }

uint64_t first_unwritten(WrittenBytes map, uint64_t bytes);  // returns its number; `bytes` if all are written
void set_written_range(WrittenBytes map, uint64_t bytes, bool written);
void copy_written(WrittenBytes to, WrittenBytes from, uint64_t bytes);  // like memmove

// Returns whether the bytes have their bits in one byte of the map, and the mask of these bits.
inline bool is_in_one_byte(WrittenBytes map, uint64_t bytes, uint32_t& mask) {
  const uint64_t shift = map.first % 8;
  if (shift + bytes > 8) return false;
  mask = ((1u << bytes) - 1) << shift;
  return true;
}

inline bool all_written(WrittenBytes map, uint64_t bytes) {
  if (!map) return true;
  uint32_t mask;
  if (is_in_one_byte(map, bytes, mask)) return (map.bits[map.first / 8] & mask) == mask;
  return first_unwritten(map, bytes) == bytes;
}

inline void set_written(WrittenBytes map, uint64_t bytes) {
  if (!map) return;
  uint32_t mask;
  if (is_in_one_byte(map, bytes, mask)) map.bits[map.first / 8] |= static_cast<uint8_t>(mask);
  else set_written_range(map, bytes, true);
}

inline void set_unwritten(WrittenBytes map, uint64_t bytes) {
  if (map) set_written_range(map, bytes, false);
}

enum class WrittenLine : uint8_t { None, Some, All };

// Returns how many of 128 bytes are written; Some also if their bits do not begin a byte.
inline WrittenLine written_of_line(WrittenBytes map) {
  if (!map) return WrittenLine::All;
  if (map.first % 8) return WrittenLine::Some;
  uint64_t halves[2];
  std::memcpy(halves, map.bits + map.first / 8, sizeof halves);
  if ((halves[0] & halves[1]) == ~0ull) return WrittenLine::All;
  return halves[0] | halves[1] ? WrittenLine::Some : WrittenLine::None;
}

}  // namespace vgpu
