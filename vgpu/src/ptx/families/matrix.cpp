// mma: multiplies two matrices, whose elements are spread over the registers of a warp's lanes, and adds a third matrix.
#include "arithmetic/matrix_fragments.h"
#include "fragments.h"
#include "types.h"

namespace vgpu {
namespace {

// a, e, c: the first registers of A, B and C, whose further registers follow; imm: the columns of A.  The result replaces C.
template <class E, class Sum> void multiply_floats(WarpContext& warp, const Instruction& i) {
  uint32_t* c = lane_values<uint32_t>(warp, i.c);
  multiply_fragments<E, Sum>(tensor_core_of(warp.compute_capability), static_cast<uint32_t>(i.imm),
                             lane_values<uint32_t>(warp, i.a), lane_values<uint32_t>(warp, i.e), c, c);
}

template <class A, class B, bool kSaturated> void multiply_bytes(WarpContext& warp, const Instruction& i) {
  uint32_t* c = lane_values<uint32_t>(warp, i.c);
  multiply_integers<A, B>(kSaturated, kFragmentRows, static_cast<uint32_t>(i.imm), lane_values<uint32_t>(warp, i.a),
                          lane_values<uint32_t>(warp, i.e), c, c);
}

template <class A, class B> Execute byte_product_of(bool saturated) {
  return saturated ? multiply_bytes<A, B, true> : multiply_bytes<A, B, false>;
}
Execute product_of(std::string_view a, std::string_view b, std::string_view result_type, bool saturated) {
  using S8 = IntegerElement<8, true>;
  using U8 = IntegerElement<8, false>;
  if (a == "tf32") return multiply_floats<Tf32Element, FloatSum>;
  if (a == "bf16") return multiply_floats<BfloatElement, FloatSum>;
  if (a == "f16") return result_type == "f16" ? multiply_floats<HalfElement, HalfSum> : multiply_floats<HalfElement, FloatSum>;
  if (a == "s8") return b == "s8" ? byte_product_of<S8, S8>(saturated) : byte_product_of<S8, U8>(saturated);
  return b == "s8" ? byte_product_of<U8, S8>(saturated) : byte_product_of<U8, U8>(saturated);
}

}  // namespace

bool decode_matrix(Decoder& d, const Statement& s, Instruction& i) {
  const std::string_view shape = s.qualifier_of("m16n8k4|m16n8k8|m16n8k16|m16n8k32"), result_type = s.type(3), a = s.type(2),
                         b = s.type(1);
  const uint32_t elements_per_register = 4 / ptx::size_of(a),
                 depth = static_cast<uint32_t>(std::stoi(std::string(shape.substr(6))));
  const size_t b_registers = depth / (4 * elements_per_register), results = result_type == "f16" ? 2 : 4;
  const std::string_view result_register_type = result_type == "f16" ? "b32" : result_type;
  if (s.operands[0].kind != Operand::Vector || s.operands[0].parts.size() != results) return false;
  for (const Operand& element : s.operands[3].parts)
    if (element.kind == Operand::Literal) return false;
  Instruction product = i;
  product.a = gather_fragment(d, s, s.operands[1], "b32", 2 * b_registers, i);
  product.e = gather_fragment(d, s, s.operands[2], "b32", b_registers, i);
  product.c = gather_fragment(d, s, s.operands[3], result_register_type, results, i);
  product.imm = depth;
  product.kind = InstructionKind::WarpSync;  // of all lanes
  product.b = d.constant(kFullMask, 4);
  product.execute = product_of(a, b, result_type, s.has("satfinite"));
  d.emit(product);
  scatter_fragment(d, s.operands[0], result_register_type, product.c, i);
  return true;
}

}  // namespace vgpu
