// Maps of written bytes: a byte of 0 or 1 for each byte of memory; nullptr: not tracked, so all count as written.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "shadow.h"

namespace vgpu {

// Accesses of 4 or 8 bytes are the most common, so they avoid a call.
inline bool all_written(const uint8_t* map, uint32_t bytes) {
  if (!map) return true;
  uint32_t word;
  if (bytes == sizeof word) return std::memcpy(&word, map, sizeof word), word == 0x01010101u;
  uint64_t double_word;
  if (bytes == sizeof double_word)
    return std::memcpy(&double_word, map, sizeof double_word), double_word == 0x0101010101010101u;
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
  __m256i all_set = _mm256_set1_epi8(1), any_set = _mm256_setzero_si256();
  for (uint32_t k = 0; k < kLineBytes; k += sizeof(__m256i)) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(map + k));
    all_set = _mm256_and_si256(all_set, bytes), any_set = _mm256_or_si256(any_set, bytes);
  }
  if (_mm256_testc_si256(all_set, _mm256_set1_epi8(1))) return WrittenLine::All;
  return _mm256_testz_si256(any_set, any_set) ? WrittenLine::None : WrittenLine::Some;
}

}  // namespace vgpu
