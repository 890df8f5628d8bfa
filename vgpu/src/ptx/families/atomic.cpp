// atom and red.  One warp's lanes come one after the other, in an order that the schedule chooses.
#include <algorithm>
#include <cstring>

#include "address.h"
#include "arithmetic/atomic_operation.h"
#include "core/instruction_set.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

using Op = AtomicOperation;
constexpr Op kAdd = Op::Add, kMin = Op::Min, kMax = Op::Max, kAnd = Op::And, kOr = Op::Or, kXor = Op::Xor, kExch = Op::Exchange,
             kCas = Op::CompareAndSwap, kInc = Op::Increment, kDec = Op::Decrement;

template <class T> constexpr ValueType value_type() {
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? ValueType::Float : ValueType::Double;
  return std::is_signed_v<T> ? ValueType::Signed : ValueType::Unsigned;
}

template <class T, Op kOp, AccessSpace kWhere> T changed(const WarpContext& warp, const uint8_t* at, T old, T b, T c) {
  return apply_atomic_in<T, kOp>(kWhere != AccessSpace::Generic || is_shared(warp, at), old, b, c);
}

template <class T> RegisterValues values_in(const void* lanes) { return {{static_cast<const uint8_t*>(lanes)}, 1, sizeof(T)}; }

// Who looks on is told of the lanes that come.  b and c: their operands.
template <class T> void tell(const WarpContext& warp, const Instruction& i, OrderSensitivity sensitivity, Op op, ValueType type,
                             uint8_t* const* at, const uint8_t* order, uint32_t count, const T* b, const T* c) {
  MemoryAccess access = {AccessKind::Atomic, i.variant, sensitivity, sizeof(T), at, order, count};
  access.operation = op, access.type = type, access.returns_old = i.count != 0;
  access.values = values_in<T>(op == kCas ? c : b);
  if (op == kCas) access.expected = values_in<T>(b);
  notify_access(warp, i, access);
}
// Of one lane's.
template <class T> void tell_one(const WarpContext& warp, const Instruction& i, OrderSensitivity sensitivity, Op op,
                                 ValueType type, uint8_t* at, uint32_t lane, T b, T c) {
  if (!warp.observer) return;
  uint8_t* places[kWarpSize] = {};
  T values[2][kWarpSize] = {};
  places[lane] = at, values[0][lane] = b, values[1][lane] = c;
  const uint8_t number = static_cast<uint8_t>(lane);
  tell(warp, i, sensitivity, op, type, places, &number, 1, values[0], values[1]);
}

// Where an atomic may let others go first and nobody wants the old value.
void each_by_itself(WarpContext& warp, const Instruction& i, uint8_t* const* at, const void* b, const void* c, uint32_t bytes,
                    DeferredAtomics::Perform perform) {
  uint8_t order[kWarpSize];
  const uint32_t n = warp.schedule->permute_lanes(warp.active_mask, order);
  warp.deferred->arrive_or_defer(warp, i, at, order, n, static_cast<const uint8_t*>(b), static_cast<const uint8_t*>(c), bytes,
                                 perform);
  warp.atomics += n;
}

// The lanes that come now, in their order; how many.
uint32_t order_lanes(WarpContext& warp, uint8_t* const* at, uint8_t order[kWarpSize]) {
  uint32_t n = warp.schedule->permute_lanes(warp.active_mask, order);
  return warp.deferred ? warp.deferred->select_arriving(warp, at, order, n) : n;
}

// A lane's atomic whose old value nobody wants.
template <class T, Op kOp, AccessSpace kWhere> void one(WarpContext& warp, const Instruction& i, uint8_t* at, uint32_t lane,
                                                        uint64_t b, uint64_t c) {
  T old, given[2];
  std::memcpy(&old, at, sizeof old);
  std::memcpy(&given[0], &b, sizeof(T)), std::memcpy(&given[1], &c, sizeof(T));
  tell_one(warp, i, order_sensitivity_of(kOp, std::is_integral_v<T>, false), kOp, value_type<T>(), at, lane, given[0],
           given[1]);
  T made = changed<T, kOp, kWhere>(warp, at, old, given[0], given[1]);
  std::memcpy(at, &made, sizeof made);
  *warp.visible_writes += !bits_equal(old, made);
}

// count: is the old value wanted?
template <class T, Op kOp, AccessSpace kWhere> void atom(WarpContext& warp, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (!resolve_addresses(warp, i, kWhere, sizeof(T), at, true)) return;
  T* d = i.count ? lane_values<T>(warp, i.d) : nullptr;
  const T *b = lane_values<T>(warp, i.b), *c = lane_values<T>(warp, i.c);
  if (warp.deferred && !d && i.variant == kStrong) return each_by_itself(warp, i, at, b, c, sizeof(T), one<T, kOp, kWhere>);
  uint8_t order[kWarpSize];
  uint32_t n = order_lanes(warp, at, order);
  if (warp.observer)
    tell(warp, i, order_sensitivity_of(kOp, std::is_integral_v<T>, d), kOp, value_type<T>(), at, order, n, b, c);
  bool news = false;  // a try in vain tells nobody anything
  for (uint32_t k = 0; k < n; k++) {
    uint32_t l = order[k];
    T old;
    std::memcpy(&old, at[l], sizeof old);
    T made = changed<T, kOp, kWhere>(warp, at[l], old, b[l], c[l]);
    std::memcpy(at[l], &made, sizeof made);
    news |= !bits_equal(old, made);
    if (!d) continue;
    warp.observed_change |= !bits_equal(d[l], old);
    d[l] = old;
  }
  *warp.visible_writes += news;
  warp.atomics += n;
}

template <class H, class T> T half_sums(T old, T b) { return add_values(PackedHalves<H, T>{old}, PackedHalves<H, T>{b}).bits; }

template <class H, class T> void one_half(WarpContext& warp, const Instruction& i, uint8_t* at, uint32_t lane, uint64_t b,
                                          uint64_t) {
  tell_one(warp, i, OrderSensitivity::Rounding, kAdd, ValueType::Half, at, lane, static_cast<T>(b), T(0));
  T old;
  std::memcpy(&old, at, sizeof old);
  const T made = half_sums<H>(old, static_cast<T>(b));
  std::memcpy(at, &made, sizeof made);
  ++*warp.visible_writes;
}

// Sums of halves, of one or of the two of a register; the two are two atomics.
template <class H, class T, AccessSpace kWhere> void add_half(WarpContext& warp, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (!resolve_addresses(warp, i, kWhere, sizeof(T), at, true)) return;
  T* d = i.count ? lane_values<T>(warp, i.d) : nullptr;
  const T* b = lane_values<T>(warp, i.b);
  if (warp.deferred && !d && i.variant == kStrong) return each_by_itself(warp, i, at, b, b, sizeof(T), one_half<H, T>);
  uint8_t order[kWarpSize];
  uint32_t n = order_lanes(warp, at, order);
  if (warp.observer) tell(warp, i, OrderSensitivity::Rounding, kAdd, ValueType::Half, at, order, n, b, b);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t l = order[k];
    T old;
    std::memcpy(&old, at[l], sizeof old);
    const T made = half_sums<H>(old, b[l]);
    std::memcpy(at[l], &made, sizeof made);
    if (d) d[l] = old;
  }
  ++*warp.visible_writes;
  warp.atomics += n;
}

template <class T, Op kOp> Execute in_space(AccessSpace where) {
  if (where == AccessSpace::Shared) return atom<T, kOp, AccessSpace::Shared>;
  return where == AccessSpace::Generic ? atom<T, kOp, AccessSpace::Generic> : nullptr;
}
template <class T> Execute atomic_for_op(std::string_view o, AccessSpace where) {
  if (o == "add") return in_space<T, kAdd>(where);
  if (o == "min") return in_space<T, kMin>(where);
  if (o == "max") return in_space<T, kMax>(where);
  if (o == "exch") return in_space<T, kExch>(where);
  if (o == "cas") return in_space<T, kCas>(where);
  if constexpr (std::is_integral_v<T>) {
    if (o == "and") return in_space<T, kAnd>(where);
    if (o == "or") return in_space<T, kOr>(where);
    if (o == "xor") return in_space<T, kXor>(where);
    if (o == "inc") return in_space<T, kInc>(where);
    if (o == "dec") return in_space<T, kDec>(where);
  }
  return nullptr;
}
template <class H, class T> Execute half_in(AccessSpace where) {
  if (where == AccessSpace::Shared) return add_half<H, T, AccessSpace::Shared>;
  return where == AccessSpace::Generic ? add_half<H, T, AccessSpace::Generic> : nullptr;
}
Execute atomic_for_type(std::string_view o, std::string_view t, AccessSpace where) {
  if (o == "add" && t == "f16") return half_in<HalfFormat, uint16_t>(where);
  if (o == "add" && t == "f16x2") return half_in<HalfFormat, uint32_t>(where);
  if (o == "add" && t == "bf16") return half_in<BfloatFormat, uint16_t>(where);
  if (o == "add" && t == "bf16x2") return half_in<BfloatFormat, uint32_t>(where);
  if (Execute found = for_float(t, [=](auto tag) -> Execute { return atomic_for_op<typename decltype(tag)::type>(o, where); }))
    return found;
  return for_integer(t, [=](auto tag) -> Execute { return atomic_for_op<typename decltype(tag)::type>(o, where); });
}

std::string_view op_of(const Statement& s) { return s.qualifier_of("add|min|max|and|or|xor|exch|cas|inc|dec"); }

bool has_known_qualifiers(const Statement& s) {
  return s.allows_only({"relaxed|acquire|release|acq_rel", "cta|cluster|gpu|sys", "global|shared|shared::cta",
                        "add|min|max|and|or|xor|exch|cas|inc|dec", "noftz", "v2|v4|v8", "L2::cache_hint"});
}

// Of vectors it stands before the operation in some texts, and behind it in others.
std::string_view type_of(const Statement& s) {
  auto found = std::find_if(s.qualifiers.begin(), s.qualifiers.end(), [](std::string_view word) { return ptx::size_of(word); });
  return found == s.qualifiers.end() ? std::string_view() : *found;
}

// Of a vector each element is an atomic by itself: others may come between.
bool decode_elements(Decoder& d, const Statement& s, Instruction& i, std::string_view t) {
  bool wants_old = s.op == "atom";
  const Operand &old = s.operands[0], &given = s.operands[wants_old ? 2 : 1];
  size_t count = s.has("v8") ? 8 : s.has("v4") ? 4 : 2;
  bool listed = given.kind == Operand::Vector && given.parts.size() == count;
  if (wants_old) listed = listed && old.kind == Operand::Vector && old.parts.size() == count;
  if (!listed || count * ptx::size_of(t) > 16 || t[0] == 'u' || t[0] == 's') return false;
  i.count = wants_old;
  for (size_t k = 0; k < count; k++, i.imm += ptx::size_of(t)) {
    if (wants_old) i.d = d.result(old.parts[k], t, true);
    i.b = i.c = d.exact_operand(given.parts[k], t);
    d.emit(i);
  }
  return true;
}

}  // namespace

bool decode_atomic(Decoder& d, const Statement& s, Instruction& i) {
  bool wants_old = s.op == "atom";
  std::string_view o = op_of(s), t = type_of(s);
  size_t first = wants_old ? 1 : 0;
  size_t wanted = first + (o == "cas" ? 3 : 2) + s.has("L2::cache_hint");
  if (!has_known_qualifiers(s) || s.operands.size() != wanted) return false;
  AccessSpace where = access_space_of(s);
  decode_address(d, s, s.operands[first], where, i);
  i.execute = atomic_for_type(o, t, where);
  if (!i.execute) return false;
  i.kind = InstructionKind::SchedulingPoint;
  i.variant = memory_order_of(s) | kStrong;
  if (!s.qualifier_of("v2|v4|v8").empty()) return where == AccessSpace::Generic && decode_elements(d, s, i, t);
  i.count = wants_old && s.operands[0].text != "_";
  if (i.count) i.d = d.result(s.operands[0], t);
  i.b = d.exact_operand(s.operands[first + 1], t);
  i.c = o == "cas" ? d.exact_operand(s.operands.at(first + 2), t) : i.b;
  d.emit(i);
  return true;
}

}  // namespace vgpu
