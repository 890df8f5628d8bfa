// Which bytes of a place were written: a byte of 0 or 1 for each, or no map at all where that is not known.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "shadow.h"

namespace vgpu {

// Most accesses are of 4 or 8 bytes, for which no call is worth its time.
inline bool all_written(const uint8_t* map, uint32_t bytes) {
  if (!map) return true;
  uint32_t four;
  if (bytes == sizeof four) return std::memcpy(&four, map, sizeof four), four == 0x01010101u;
  uint64_t eight;
  if (bytes == sizeof eight) return std::memcpy(&eight, map, sizeof eight), eight == 0x0101010101010101u;
  return !std::memchr(map, 0, bytes);
}

inline void set_written(uint8_t* map, uint32_t bytes) {
  if (!map) return;
  constexpr uint64_t kOnes = 0x0101010101010101u;
  if (bytes == 4) std::memcpy(map, &kOnes, 4);
  else if (bytes == 8) std::memcpy(map, &kOnes, 8);
  else std::memset(map, 1, bytes);
}

enum class WrittenLine : uint8_t { None, Some, All };

inline WrittenLine written_of_line(const uint8_t* map) {
  if (!map) return WrittenLine::All;
  __m256i every = _mm256_set1_epi8(1), any = _mm256_setzero_si256();
  for (uint32_t k = 0; k < kLineBytes; k += sizeof(__m256i)) {
    const __m256i held = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(map + k));
    every = _mm256_and_si256(every, held), any = _mm256_or_si256(any, held);
  }
  if (_mm256_testc_si256(every, _mm256_set1_epi8(1))) return WrittenLine::All;
  return _mm256_testz_si256(any, any) ? WrittenLine::None : WrittenLine::Some;
}

}  // namespace vgpu
