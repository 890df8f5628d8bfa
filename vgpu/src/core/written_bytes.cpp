// Ranges of the maps of written bytes.
#include "written_bytes.h"

#include <algorithm>
#include <vector>

namespace vgpu {
namespace {

// Calls f(byte of the map, mask of its bits, number of the first of these) for each byte of the map that has bits of the range,
// until f returns false.
template <class F>
void for_each_map_byte(WrittenBytes map, uint64_t bytes, F f) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t shift = (map.first + done) % 8, count = std::min(8 - shift, bytes - done);
    if (!f(map.bits[(map.first + done) / 8], static_cast<uint8_t>(((1u << count) - 1) << shift), done)) return;
    done += count;
  }
}

void assign_bits(uint8_t& byte, uint8_t mask, uint8_t bits) { byte = static_cast<uint8_t>((byte & ~mask) | (bits & mask)); }

// Returns the bits from `first` on, at most 8, in the low bits; `count`: how many are needed.
uint8_t bits_at(WrittenBytes map, uint32_t count) {
  const uint8_t* byte = map.bits + map.first / 8;
  const uint64_t shift = map.first % 8;
  const uint32_t second = shift + count > 8 ? byte[1] : 0u;
  return static_cast<uint8_t>((*byte | second << 8) >> shift);
}

}  // namespace

uint64_t first_unwritten(WrittenBytes map, uint64_t bytes) {
  uint64_t first = bytes;
  if (map)
    for_each_map_byte(map, bytes, [&](uint8_t byte, uint8_t mask, uint64_t number) {
      const uint32_t unwritten = static_cast<uint32_t>(~byte & mask);
      if (unwritten) first = number + static_cast<uint32_t>(__builtin_ctz(unwritten) - __builtin_ctz(mask));
      return !unwritten;
    });
  return first;
}

void set_written_range(WrittenBytes map, uint64_t bytes, bool written) {
  const uint8_t value = written ? 0xff : 0;
  const uint64_t head = std::min((8 - map.first % 8) % 8, bytes), whole = (bytes - head) / 8;
  const auto assign = [&](uint8_t& byte, uint8_t mask, uint64_t) { return assign_bits(byte, mask, value), true; };
  for_each_map_byte(map, head, assign);
  std::memset(map.bits + (map.first + head) / 8, value, whole);
  for_each_map_byte(map + head + 8 * whole, bytes - head - 8 * whole, assign);
}

void copy_written(WrittenBytes to, WrittenBytes from, uint64_t bytes) {
  std::vector<uint8_t> copy;  // of the source's bits, if the ranges may overlap
  if (to.bits == from.bits) {
    copy.assign(from.bits + from.first / 8, from.bits + bytes_of_map(from.first + bytes));
    from = {copy.data(), from.first % 8};
  }
  for_each_map_byte(to, bytes, [&](uint8_t& byte, uint8_t mask, uint64_t number) {
    const auto count = static_cast<uint32_t>(__builtin_popcount(mask));
    const uint32_t bits = bits_at(from + number, count);
    return assign_bits(byte, mask, static_cast<uint8_t>(bits << __builtin_ctz(mask))), true;
  });
}

}  // namespace vgpu
