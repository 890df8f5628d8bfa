// Tensor cores: products of matrices whose elements lie spread over a warp's registers, and how these are loaded.
//
// The order of a card's sum is not documented: here it is one sum in double, the third matrix' element first, rounded once,
// as PTX's mma is.
#include <cstring>

#include "address.h"
#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kRows = 16, kColumns = 8, kMaxDepth = 16;

struct HalfElement {
  static constexpr uint32_t kCount = 2;  // in a register
  static double of(uint32_t word, uint32_t k) { return half_to_float(static_cast<uint16_t>(word >> (16 * k))); }
};
struct BfloatElement {
  static constexpr uint32_t kCount = 2;
  static double of(uint32_t word, uint32_t k) { return bfloat16_to_float(static_cast<uint16_t>(word >> (16 * k))); }
};
struct Tf32Element {  // the 13 bits that it does not have are left out
  static constexpr uint32_t kCount = 1;
  static double of(uint32_t word, uint32_t) { return bit_cast<float>(word & ~0x1fffu); }
};

// Element k of a row of A, or of a column of B: four lanes share one.  A has a register for each half of its rows.
template <class E> double element(const uint32_t* registers, uint32_t line, uint32_t k, uint32_t halves) {
  const uint32_t part = k / (4 * E::kCount), lane = line % 8 * 4 + k / E::kCount % 4;
  return E::of(registers[(halves * part + line / 8) * kWarpSize + lane], k % E::kCount);
}

// Accumulators of floats: four registers; of halves: two.
uint32_t float_place(uint32_t row, uint32_t column) {
  return (row / 8 * 2 + column % 2) * kWarpSize + row % 8 * 4 + column / 2;
}
uint32_t half_place(uint32_t row, uint32_t column) { return row / 8 * kWarpSize + row % 8 * 4 + column / 2; }

double load_sum(bool floats, const uint32_t* c, uint32_t row, uint32_t column) {
  if (floats) return bit_cast<float>(c[float_place(row, column)]);
  return half_to_float(static_cast<uint16_t>(c[half_place(row, column)] >> (column % 2 * 16)));
}
void store_sum(bool floats, uint32_t* d, uint32_t row, uint32_t column, double sum) {
  if (floats) {
    d[float_place(row, column)] = bit_cast<uint32_t>(canonicalize_nan(static_cast<float>(sum)));
    return;
  }
  uint32_t& word = d[half_place(row, column)];
  const uint32_t shift = column % 2 * 16;
  word = (word & ~(0xffffu << shift)) | uint32_t(to_half(sum)) << shift;
}

// a, b, c: the first registers; imm: columns of A; variant: are the sums floats?
template <class E> void multiply(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b), *c = words(warp, i.c), depth = static_cast<uint32_t>(i.imm);
  const bool floats = i.variant != 0;
  double left[kRows][kMaxDepth], right[kMaxDepth][kColumns];
  for (uint32_t k = 0; k < depth; k++) {
    for (uint32_t row = 0; row < kRows; row++) left[row][k] = element<E>(a, row, k, 2);
    for (uint32_t column = 0; column < kColumns; column++) right[k][column] = element<E>(b, column, k, 1);
  }
  alignas(64) uint32_t made[4 * kWarpSize];
  for (uint32_t row = 0; row < kRows; row++) {
    double sums[kColumns];
    for (uint32_t column = 0; column < kColumns; column++) sums[column] = load_sum(floats, c, row, column);
    for (uint32_t k = 0; k < depth; k++)
      for (uint32_t column = 0; column < kColumns; column++) sums[column] += left[row][k] * right[k][column];
    for (uint32_t column = 0; column < kColumns; column++) store_sum(floats, made, row, column, sums[column]);
  }
  std::memcpy(words(warp, i.d), made, (floats ? 4 : 2) * kRowBytes);
}

// Matrices of 8 rows of 16 bytes, whose addresses 8 lanes have.  count: how many.
template <bool kTransposed> void load_matrix(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  const uint32_t addressed = i.count == 4 ? kFullMask : (1u << (8 * i.count)) - 1;
  uint8_t* at[kWarpSize];
  warp.active_mask = addressed;
  const bool fine = find_addresses(warp, i, Space::Shared, 16, at);
  if (fine) announce(warp, i, AccessKind::Read, 16, at);
  warp.active_mask = kFullMask;
  if (!fine) return;
  uint32_t* d = words(warp, i.d);
  for (uint32_t m = 0; m < i.count; m++) {
    uint16_t rows[8][8];
    for (uint32_t row = 0; row < 8; row++) std::memcpy(rows[row], at[8 * m + row], sizeof rows[row]);
    for (uint32_t l = 0; l < kWarpSize; l++) {
      const uint32_t row = l / 4, column = l % 4 * 2;
      const uint16_t low = kTransposed ? rows[column][row] : rows[row][column];
      const uint16_t high = kTransposed ? rows[column + 1][row] : rows[row][column + 1];
      d[m * kWarpSize + l] = low | uint32_t(high) << 16;
    }
  }
}

}  // namespace

bool select_matrix_multiply(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8)), i.b = d.read_register(c.bits(32, 8)), i.c = d.read_register(c.bits(64, 8));
  i.variant = c.modifier(76) == "F32";
  i.imm = c.modifier(75) == "16816" ? 16 : 8;
  const std::string_view type = c.modifier(82);
  i.execute = type.empty() ? multiply<HalfElement> : type == "BF16" ? multiply<BfloatElement> : multiply<Tf32Element>;
  return i.variant || type.empty();
}

bool select_load_matrix(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  const std::string_view count = c.modifier(72);
  i.count = count.empty() ? 1 : count == "2" ? 2 : 4;
  i.execute = c.has("16.MT88") ? load_matrix<true> : load_matrix<false>;
  return true;
}

}  // namespace vgpu::sm80
