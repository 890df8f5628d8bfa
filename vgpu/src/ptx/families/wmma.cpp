// wmma.mma: multiplies matrices in fragments, whose layout is that of ptx/expansion.h.
#include "arithmetic/matrix_fragments.h"
#include "fragments.h"
#include "ptx/expansion.h"

namespace vgpu {
namespace {

constexpr uint32_t kMaxExtent = 32;

// The extents of the matrices, in Instruction::imm.
struct Extents {
  uint32_t rows, columns, depth;
  static Extents of(const Instruction& i) {
    const auto packed = static_cast<uint64_t>(i.imm);
    return {uint32_t(packed & 0xff), uint32_t(packed >> 8 & 0xff), uint32_t(packed >> 16 & 0xff)};
  }
  int64_t packed() const { return static_cast<int64_t>(rows | columns << 8 | depth << 16); }
};

// Returns an element of a fragment; index: in order of the rows; per_lane: elements of a lane.
template <class E> auto fragment_element(const uint32_t* registers, uint32_t per_lane, uint32_t index) {
  const uint32_t place = index % per_lane;
  return E::of(registers[place / E::kCount * kFragmentLanes + index / per_lane], place % E::kCount);
}
// The elements of a lane in a fragment of A or B: those of halves are eight registers in each shape.
template <class E> uint32_t elements_per_lane(uint32_t elements) {
  return std::is_same_v<E, HalfElement> ? 16 : elements / kFragmentLanes;
}

// a, e, c: the first registers of A, B and C.  The result replaces C.
template <class E, class Sum> void multiply_floats(WarpContext& warp, const Instruction& i) {
  const auto [rows, columns, depth] = Extents::of(i);
  const uint32_t *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.e);
  uint32_t* c = lane_values<uint32_t>(warp, i.c);
  const TensorCore core = tensor_core_of(warp.compute_capability);
  constexpr bool kIsPacked = std::is_same_v<Sum, HalfSum>;
  constexpr uint32_t kSumsPerRegister = kIsPacked ? 2 : 1, kMask = kIsPacked ? 0xffff : 0xffffffff;
  const uint32_t sums_per_lane = rows * columns / kFragmentLanes;
  uint32_t row_elements[kMaxDepth], column_elements[kMaxExtent][kMaxDepth];
  for (uint32_t column = 0; column < columns; column++)
    for (uint32_t k = 0; k < depth; k++)
      column_elements[column][k] = fragment_element<E>(b, elements_per_lane<E>(depth * columns), k * columns + column);
  for (uint32_t row = 0; row < rows; row++) {
    for (uint32_t k = 0; k < depth; k++)
      row_elements[k] = fragment_element<E>(a, elements_per_lane<E>(rows * depth), row * depth + k);
    for (uint32_t column = 0; column < columns; column++) {
      const uint32_t index = row * columns + column, place = index % sums_per_lane;
      uint32_t& word = c[place / kSumsPerRegister * kFragmentLanes + index / sums_per_lane];
      const uint32_t shift = place % kSumsPerRegister * 16;
      const uint32_t sum =
          add_products<E, Sum>(core, row_elements, column_elements[column], depth, 4 / E::kCount, word >> shift & kMask);
      word = (word & ~(kMask << shift)) | sum << shift;
    }
  }
}

template <class E, bool kSaturated> void multiply_bytes(WarpContext& warp, const Instruction& i) {
  const auto [rows, columns, depth] = Extents::of(i);
  const uint32_t *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.e);
  uint32_t* c = lane_values<uint32_t>(warp, i.c);
  const uint32_t sums_per_lane = rows * columns / kFragmentLanes;
  for (uint32_t index = 0; index < rows * columns; index++) {
    uint32_t& word = c[index % sums_per_lane * kFragmentLanes + index / sums_per_lane];
    int64_t sum = static_cast<int32_t>(word);
    for (uint32_t k = 0; k < depth; k++)
      sum += fragment_element<E>(a, rows * depth / kFragmentLanes, index / columns * depth + k) *
             fragment_element<E>(b, depth * columns / kFragmentLanes, k * columns + index % columns);
    word = static_cast<uint32_t>(kSaturated ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
  }
}
template <class E> Execute byte_product_of(bool saturated) {
  return saturated ? multiply_bytes<E, true> : multiply_bytes<E, false>;
}

Execute product_of(std::string_view element, std::string_view sum, bool saturated) {
  if (element == "tf32") return multiply_floats<Tf32Element, FloatSum>;
  if (element == "bf16") return multiply_floats<BfloatElement, FloatSum>;
  if (element == "f16") return sum == "f16" ? multiply_floats<HalfElement, HalfSum> : multiply_floats<HalfElement, FloatSum>;
  return element == "s8" ? byte_product_of<IntegerElement<8, true>>(saturated)
                         : byte_product_of<IntegerElement<8, false>>(saturated);
}

}  // namespace

bool decode_wmma(Decoder& d, const Statement& s, Instruction& i) {
  const std::string_view shape = s.qualifier_of(ptx::kWmmaShapes), sum = s.type();
  const std::string_view element = s.has("tf32") || s.has("bf16") || s.has("s8") || s.has("u8") ? s.type(1) : "f16";
  const ptx::WmmaFragment a = ptx::wmma_fragment("a", shape, element), b = ptx::wmma_fragment("b", shape, element),
                          c = ptx::wmma_fragment("c", shape, sum);
  const std::string_view sum_register = sum == "f16" ? "b32" : sum;
  if (s.operands[0].kind != Operand::Vector || s.operands[0].parts.size() != c.registers) return false;
  Instruction product = i;
  product.a = gather_fragment(d, s, s.operands[1], "b32", a.registers, i);
  product.e = gather_fragment(d, s, s.operands[2], "b32", b.registers, i);
  product.c = gather_fragment(d, s, s.operands[3], sum_register, c.registers, i);
  product.imm = Extents{a.rows, b.columns, a.columns}.packed();
  product.kind = InstructionKind::WarpSync;  // of all lanes
  product.b = d.constant(kFullMask, 4);
  product.execute = product_of(element, sum, s.has("satfinite"));
  d.emit(product);
  scatter_fragment(d, s.operands[0], sum_register, product.c, i);
  return true;
}

}  // namespace vgpu
