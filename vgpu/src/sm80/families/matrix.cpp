// Matrix products of tensor cores, whose elements are distributed over a warp's registers, and loading of matrices.
// modifier(n): the text of the modifier whose bits begin at bit n of the instruction.
#include <cstring>

#include "address.h"
#include "arithmetic/matrix_fragments.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

// a, b, c: the first registers; imm: columns of A.
template <class E, class Sum> void multiply(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  alignas(64) uint32_t results[4 * kWarpSize] = {};  // the destination may overlap with A, B or C
  const TensorCore core = tensor_core_of(warp.compute_capability);
  multiply_fragments<E, Sum>(core, static_cast<uint32_t>(i.imm), lane_words(warp, i.a), lane_words(warp, i.b),
                             lane_words(warp, i.c), results);
  std::memcpy(lane_words(warp, i.d), results, (Sum::kFraction == HalfSum::kFraction ? 2 : 4) * kWarpRegisterBytes);
}

// i.count: rows; i.imm: columns of A.
template <class A, class B, bool kSaturated> void multiply_integers(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  alignas(64) uint32_t results[4 * kWarpSize];
  const auto depth = static_cast<uint32_t>(i.imm);
  vgpu::multiply_integers<A, B>(kSaturated, i.count, depth, lane_words(warp, i.a), lane_words(warp, i.b), lane_words(warp, i.c),
                                results);
  std::memcpy(lane_words(warp, i.d), results, i.count / 4 * kWarpRegisterBytes);
}

void multiply_doubles(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  alignas(64) uint32_t results[4 * kWarpSize];
  vgpu::multiply_doubles(lane_words(warp, i.a), lane_words(warp, i.b), lane_words(warp, i.c), results);
  std::memcpy(lane_words(warp, i.d), results, sizeof results);
}

// Loads matrices of 8 rows of 16 bytes; 8 lanes have the addresses of a matrix's rows.  count: number of matrices.
template <bool kTransposed> void load_matrix(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  const uint32_t addressed = i.count == 4 ? kFullMask : (1u << (8 * i.count)) - 1;
  uint8_t* addresses[kWarpSize];
  warp.active_mask = addressed;
  const bool is_ok = find_addresses(warp, i, Space::Shared, 16, addresses);
  if (is_ok) prepare_access(warp, i, AccessKind::Read, 16, addresses, is_contiguous(warp.active_mask, addresses, 16));
  warp.active_mask = kFullMask;
  if (!is_ok) return;
  uint32_t* d = lane_words(warp, i.d);
  for (uint32_t m = 0; m < i.count; m++) {
    uint16_t rows[8][8];
    for (uint32_t row = 0; row < 8; row++) std::memcpy(rows[row], addresses[8 * m + row], sizeof rows[row]);
    for (uint32_t l = 0; l < kWarpSize; l++) {
      const uint32_t row = l / 4, column = l % 4 * 2;
      const uint16_t low = kTransposed ? rows[column][row] : rows[row][column];
      const uint16_t high = kTransposed ? rows[column + 1][row] : rows[row][column + 1];
      d[m * kWarpSize + l] = low | uint32_t(high) << 16;
    }
  }
}

// Transposes a matrix of 8 x 8 elements of 16 bits, of which each lane has two neighbours of a row.
void transpose(WarpContext& warp, const Instruction& i) {
  if (warp.active_mask != kFullMask) return warp.set_fault(KernelFault::IllegalInstruction, 0);
  uint32_t source[kWarpSize];
  std::memcpy(source, lane_words(warp, i.a), sizeof source);
  uint32_t* d = lane_words(warp, i.d);
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint32_t column = l / 4, row = l % 4 * 2, shift = column % 2 * 16;
    const uint32_t low = source[row * 4 + column / 2] >> shift, high = source[(row + 1) * 4 + column / 2] >> shift;
    d[l] = (low & 0xffff) | high << 16;
  }
}

template <class A, class B> Execute integer_product(bool saturated) {
  return saturated ? multiply_integers<A, B, true> : multiply_integers<A, B, false>;
}
template <int kBits> Execute integer_product(bool left_signed, bool right_signed, bool saturated) {
  using Signed = IntegerElement<kBits, true>;
  using Unsigned = IntegerElement<kBits, false>;
  if (left_signed)
    return right_signed ? integer_product<Signed, Signed>(saturated) : integer_product<Signed, Unsigned>(saturated);
  return right_signed ? integer_product<Unsigned, Signed>(saturated) : integer_product<Unsigned, Unsigned>(saturated);
}

void read_matrices(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8)), i.b = d.read_register(c.bits(32, 8)), i.c = d.read_register(c.bits(64, 8));
}

}  // namespace

bool select_matrix_multiply(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  read_matrices(d, c, i);
  const bool floats = c.modifier(76) == "F32";
  const std::string_view shape = c.modifier(75), type = c.modifier(82);  // shape: 16816 is m16n8k16
  i.imm = shape == "16816" ? 16 : shape == "1688" ? 8 : 4;
  if (type == "TF32" ? i.imm == 16 : i.imm == 4) return false;
  if (type.empty()) i.execute = floats ? multiply<HalfElement, FloatSum> : multiply<HalfElement, HalfSum>;
  else i.execute = type == "BF16" ? multiply<BfloatElement, FloatSum> : multiply<Tf32Element, FloatSum>;
  return floats || type.empty();
}

bool select_integer_matrix_multiply(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const std::string_view shape = c.modifier(75), left = c.modifier(76), right = c.modifier(78);
  const bool bytes = left[1] == '8';
  if (left[1] != right[1]) return false;
  i.count = shape.substr(0, 2) == "16" ? 16 : 8;
  i.imm = std::stoi(std::string(shape.substr(i.count == 16 ? 3 : 2)));
  const int64_t min_depth = bytes ? 16 : 32;
  if (i.imm != min_depth && !(i.count == 16 && i.imm == 2 * min_depth)) return false;
  read_matrices(d, c, i);
  const auto product = bytes ? integer_product<8> : integer_product<4>;
  i.execute = product(left[0] == 'S', right[0] == 'S', c.has("SAT"));
  return true;
}

bool select_double_matrix_multiply(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  read_matrices(d, c, i);
  i.execute = multiply_doubles;
  return true;
}

bool select_transpose(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8));
  return i.execute = transpose, true;
}

bool select_load_matrix(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  const std::string_view count = c.modifier(72);
  i.count = count.empty() ? 1 : count == "2" ? 2 : 4;
  i.execute = c.has("16.MT88") ? load_matrix<true> : load_matrix<false>;
  return true;
}

}  // namespace vgpu::sm80
