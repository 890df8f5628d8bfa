// Matrix products of fragments in the registers of a warp's lanes, in the layouts of PTX's mma (m16n8 and m8n8).
#pragma once
#include <type_traits>

#include "float.h"
#include "tensor_core.h"

namespace vgpu {

constexpr uint32_t kFragmentLanes = 32, kFragmentRows = 16, kFragmentColumns = 8, kMaxDepth = 16;

// Element types.  kCount: elements in a 32-bit register; of(): bits, or for integers the value, of element k.
struct HalfElement : BinaryFormat<5, 10> {
  static constexpr uint32_t kCount = 2;
  static uint32_t of(uint32_t word, uint32_t k) { return word >> (16 * k) & 0xffff; }
};
struct BfloatElement : BinaryFormat<8, 7> {
  static constexpr uint32_t kCount = 2;
  static uint32_t of(uint32_t word, uint32_t k) { return word >> (16 * k) & 0xffff; }
};
struct Tf32Element : BinaryFormat<8, 10> {  // the low 13 bits are ignored
  static constexpr uint32_t kCount = 1;
  static uint32_t of(uint32_t word, uint32_t) { return word >> 13; }
};

template <int kBits, bool kSigned> struct IntegerElement {
  static constexpr uint32_t kCount = 32 / kBits;
  static int32_t of(uint32_t word, uint32_t k) {
    const uint32_t upmost = word << (32 - kBits - kBits * k);
    return kSigned ? static_cast<int32_t>(upmost) >> (32 - kBits) : static_cast<int32_t>(upmost >> (32 - kBits));
  }
};

// Returns element k of row (of A) or column (of B) `line`; four lanes share a line.  row_halves: 2 if A has a register for each
// half of its 16 rows, otherwise 1.
template <class E> auto element(const uint32_t* registers, uint32_t line, uint32_t k, uint32_t row_halves) {
  const uint32_t part = k / (4 * E::kCount), lane = line % 8 * 4 + k / E::kCount % 4;
  return E::of(registers[(row_halves * part + line / 8) * kFragmentLanes + lane], k % E::kCount);
}

// The position of an element of C and D, which have four registers, or (is_packed) two registers of two 16-bit floats each.
struct Accumulator { uint32_t word, shift, mask; };
inline Accumulator accumulator(bool is_packed, uint32_t row, uint32_t column) {
  const uint32_t lane = row % 8 * 4 + column / 2;
  if (is_packed) return {row / 8 * kFragmentLanes + lane, column % 2 * 16, 0xffff};
  return {(row / 8 * 2 + column % 2) * kFragmentLanes + lane, 0, 0xffffffff};
}

// Multiplies floating-point fragments (m16n8).  E: the elements of A and B; Sum: of C and D, FloatSum or HalfSum (tensor_core.h).
// core: how the architecture's tensor cores add products, of which a block is added at once.
template <class E, class Sum>
void multiply_fragments(const TensorCore& core, uint32_t depth, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                        uint32_t* d) {
  uint32_t columns[kFragmentColumns][kMaxDepth], row_elements[kMaxDepth];
  for (uint32_t column = 0; column < kFragmentColumns; column++)
    for (uint32_t k = 0; k < depth; k++) columns[column][k] = element<E>(b, column, k, 1);
  for (uint32_t row = 0; row < kFragmentRows; row++) {
    for (uint32_t k = 0; k < depth; k++) row_elements[k] = element<E>(a, row, k, 2);
    for (uint32_t column = 0; column < kFragmentColumns; column++) {
      const Accumulator position = accumulator(std::is_same_v<Sum, HalfSum>, row, column);
      const uint32_t addend = c[position.word] >> position.shift & position.mask;
      constexpr uint32_t kElementBytes = 4 / E::kCount;
      const uint32_t result = add_products<E, Sum>(core, row_elements, columns[column], depth, kElementBytes, addend);
      d[position.word] = (d[position.word] & ~(position.mask << position.shift)) | result << position.shift;
    }
  }
}

// Multiplies integers with 32-bit accumulators.  rows: 16 or 8.
template <class A, class B>
void multiply_integers(bool saturate, uint32_t rows, uint32_t depth, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                       uint32_t* d) {
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t column = 0; column < kFragmentColumns; column++) {
      const uint32_t position = accumulator(false, row, column).word;
      int64_t sum = static_cast<int32_t>(c[position]);
      for (uint32_t k = 0; k < depth; k++) sum += element<A>(a, row, k, rows / 8) * element<B>(b, column, k, 1);
      d[position] = static_cast<uint32_t>(saturate ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
    }
}

// Multiplies doubles (m8n8k4), whose lower and upper words lie in two registers; each product is added by an fma.
inline void multiply_doubles(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {
  const auto value = [](const uint32_t* words, uint32_t lane) {
    return bit_cast<double>(words[lane] | uint64_t(words[kFragmentLanes + lane]) << 32);
  };
  for (uint32_t row = 0; row < 8; row++)
    for (uint32_t column = 0; column < kFragmentColumns; column++) {
      const uint32_t lane = row * 4 + column / 2, pair = column % 2 * 2 * kFragmentLanes;
      double sum = value(c + pair, lane);
      for (uint32_t k = 0; k < 4; k++) sum = std::fma(value(a, row * 4 + k), value(b, column * 4 + k), sum);
      const uint64_t bits = bit_cast<uint64_t>(canonicalize_nan(sum));
      d[pair + lane] = static_cast<uint32_t>(bits), d[pair + kFragmentLanes + lane] = static_cast<uint32_t>(bits >> 32);
    }
}

}  // namespace vgpu
