// mma: a product of matrices whose elements lie spread over the registers of a warp's lanes, added to a third matrix.
//
// PTX leaves the order of the sum open, and how it is rounded on the way: here it is one sum in double, the third matrix'
// element first, rounded once.
#include <algorithm>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

constexpr uint32_t kRows = 16, kColumns = 8;

// How many elements a register of 32 bits holds, and which number the k-th is.
struct Tf32 {  // the 13 bits that it does not have are left out
  static constexpr uint32_t kCount = 1;
  static double of(uint32_t word, uint32_t) { return bit_cast<float>(word & ~0x1fffu); }
};
struct Half {
  static constexpr uint32_t kCount = 2;
  static double of(uint32_t word, uint32_t k) { return half_to_float(static_cast<uint16_t>(word >> (16 * k))); }
};
struct Bfloat {
  static constexpr uint32_t kCount = 2;
  static double of(uint32_t word, uint32_t k) { return bfloat16_to_float(static_cast<uint16_t>(word >> (16 * k))); }
};
template <class T> struct Byte {
  static constexpr uint32_t kCount = 4;
  static double of(uint32_t word, uint32_t k) { return static_cast<T>(word >> (8 * k)); }
};

// Element k of row (of A) or column (of B) `line`: four lanes share a line.  A has a register for each half of its rows.
template <class E> double element(const uint32_t* registers, uint32_t line, uint32_t k, uint32_t halves) {
  const uint32_t block = k / (4 * E::kCount), lane = line % 8 * 4 + k / E::kCount % 4;
  return E::of(registers[(halves * block + line / 8) * kWarpSize + lane], k % E::kCount);
}

// Accumulators: four registers, or two of two halves each.
struct Single {
  static double load(const uint32_t* c, uint32_t row, uint32_t column) { return bit_cast<float>(c[place(row, column)]); }
  static void store(uint32_t* d, uint32_t row, uint32_t column, double sum) {
    d[place(row, column)] = bit_cast<uint32_t>(canonicalize_nan(static_cast<float>(sum)));
  }
  static uint32_t place(uint32_t row, uint32_t column) {
    return (row / 8 * 2 + column % 2) * kWarpSize + row % 8 * 4 + column / 2;
  }
};
template <bool kHeld> struct Integer {  // sums of products of bytes are exact in double
  static double load(const uint32_t* c, uint32_t row, uint32_t column) {
    return static_cast<int32_t>(c[Single::place(row, column)]);
  }
  static void store(uint32_t* d, uint32_t row, uint32_t column, double sum) {
    if (kHeld) sum = std::clamp<double>(sum, INT32_MIN, INT32_MAX);
    d[Single::place(row, column)] = static_cast<uint32_t>(static_cast<int64_t>(sum));
  }
};
struct TwoHalves {
  static double load(const uint32_t* c, uint32_t row, uint32_t column) { return Half::of(c[place(row, column)], column % 2); }
  static void store(uint32_t* d, uint32_t row, uint32_t column, double sum) {
    uint32_t& word = d[place(row, column)];
    const uint32_t shift = column % 2 * 16;
    word = (word & ~(0xffffu << shift)) | uint32_t(to_half(sum)) << shift;
  }
  static uint32_t place(uint32_t row, uint32_t column) { return row / 8 * kWarpSize + row % 8 * 4 + column / 2; }
};

// a, e, c: the first registers of A, B and C, of which each lies behind the one before; imm: columns of A.  Into c.
template <class A, class B, class C> void multiply(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.e),
                 depth = static_cast<uint32_t>(i.imm);
  uint32_t* c = lane_values<uint32_t>(warp, i.c);
  for (uint32_t row = 0; row < kRows; row++)
    for (uint32_t column = 0; column < kColumns; column++) {
      double sum = C::load(c, row, column);
      for (uint32_t k = 0; k < depth; k++) sum += element<A>(a, row, k, 2) * element<B>(b, column, k, 1);
      C::store(c, row, column, sum);
    }
}

template <class A, class B> Execute of_bytes(bool held) {
  return held ? multiply<A, B, Integer<true>> : multiply<A, B, Integer<false>>;
}
Execute product_of(std::string_view a, std::string_view b, std::string_view into, bool held) {
  if (a == "tf32") return multiply<Tf32, Tf32, Single>;
  if (a == "bf16") return multiply<Bfloat, Bfloat, Single>;
  if (a == "f16") return into == "f16" ? multiply<Half, Half, TwoHalves> : multiply<Half, Half, Single>;
  if (a == "s8") return b == "s8" ? of_bytes<Byte<int8_t>, Byte<int8_t>>(held) : of_bytes<Byte<int8_t>, Byte<uint8_t>>(held);
  return b == "s8" ? of_bytes<Byte<uint8_t>, Byte<int8_t>>(held) : of_bytes<Byte<uint8_t>, Byte<uint8_t>>(held);
}

void copy(WarpContext& warp, const Instruction& i) {
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  const uint32_t* a = lane_values<uint32_t>(warp, i.a);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return a[l]; });
}

// A vector's registers, one behind the other.
uint32_t gathered(Decoder& d, const Statement& s, const Operand& o, std::string_view type, size_t count, Instruction i) {
  if (o.kind != Operand::Vector || o.parts.size() != count) d.reject(s, "a fragment of another size");
  uint32_t first = 0;
  i.execute = copy;
  for (size_t k = 0; k < count; k++) {
    i.a = d.exact_operand(o.parts[k], type);
    i.d = d.scratch_register(4);
    if (!k) first = i.d;
    d.emit(i);
  }
  return first;
}

}  // namespace

bool decode_matrix(Decoder& d, const Statement& s, Instruction& i) {
  const std::string_view shape = s.qualifier_of("m16n8k4|m16n8k8|m16n8k16|m16n8k32"), into = s.type(3), a = s.type(2),
                         b = s.type(1);
  const uint32_t per_register = 4 / ptx::size_of(a), depth = static_cast<uint32_t>(std::atoi(shape.substr(6).data()));
  const size_t blocks = depth / (4 * per_register), results = into == "f16" ? 2 : 4;
  const std::string_view held = into == "f16" ? "b32" : into;
  if (s.operands[0].kind != Operand::Vector || s.operands[0].parts.size() != results) return false;
  for (const Operand& one : s.operands[3].parts)
    if (one.kind == Operand::Literal) return false;
  Instruction product = i, fetch = i;
  product.a = gathered(d, s, s.operands[1], "b32", 2 * blocks, i);
  product.e = gathered(d, s, s.operands[2], "b32", blocks, i);
  product.c = gathered(d, s, s.operands[3], held, results, i);
  product.imm = depth;
  product.kind = InstructionKind::WarpSync;  // of all lanes
  product.b = d.constant(kFullMask, 4);
  product.execute = product_of(a, b, into, s.has("satfinite"));
  d.emit(product);
  fetch.execute = copy;
  for (size_t k = 0; k < results; k++) {
    fetch.a = product.c + static_cast<uint32_t>(k) * kWarpSize * 4;
    fetch.d = d.result(s.operands[0].parts[k], held);
    d.emit(fetch);
  }
  return true;
}

}  // namespace vgpu
