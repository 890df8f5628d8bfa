// atom and red.  A warp's lanes execute in an order that the schedule chooses.  A deferred atomic lets another one at its
// address execute first; if it is relaxed and its old value is unused, its lane continues at once and it is performed late.
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

template <class T, Op kOp, AccessSpace kSpace> T new_value(const WarpContext& warp, const uint8_t* address, T old, T b, T c) {
  return apply_atomic_in<T, kOp>(kSpace != AccessSpace::Generic || is_shared(warp, address), old, b, c);
}

template <class T> RegisterValues as_values(const void* lanes) { return {{static_cast<const uint8_t*>(lanes)}, 1, sizeof(T)}; }

// Notifies observers of the executing lanes' access.  b and c: their operands.
template <class T> void notify(WarpContext& warp, const Instruction& i, OrderSensitivity sensitivity, Op op, ValueType type,
                               uint8_t* const* addresses, const uint8_t* order, uint32_t count, const T* b, const T* c) {
  MemoryAccess access = {AccessKind::Atomic, i.variant, sensitivity, sizeof(T), addresses, order, count};
  access.operation = op, access.type = type, access.returns_old = i.count != 0;
  access.values = as_values<T>(op == kCas ? c : b);
  if (op == kCas) access.expected = as_values<T>(b);
  notify_access(warp, i, access);
}
// Notifies observers of one lane's access.
template <class T> void notify_lane(WarpContext& warp, const Instruction& i, OrderSensitivity sensitivity, Op op,
                                    ValueType type, uint8_t* address, uint32_t lane, T b, T c) {
  if (!warp.observer) return;
  uint8_t* addresses[kWarpSize] = {};
  T values[2][kWarpSize] = {};
  addresses[lane] = address, values[0][lane] = b, values[1][lane] = c;
  const uint8_t number = static_cast<uint8_t>(lane);
  notify(warp, i, sensitivity, op, type, addresses, &number, 1, values[0], values[1]);
}

// Executes or defers atomics whose old values are unused.
void arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const void* b, const void* c,
                     uint32_t bytes, DeferredAtomics::Perform perform) {
  warp.deferred->arrive_or_defer(warp, i, addresses, static_cast<const uint8_t*>(b), static_cast<const uint8_t*>(c), bytes,
                                 perform);
  warp.atomics += static_cast<uint32_t>(__builtin_popcount(warp.active_mask));
}

// Determines the lanes that execute now, and their order; returns their number.
uint32_t order_lanes(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, uint8_t order[kWarpSize]) {
  if (warp.deferred) return warp.deferred->select_arriving(warp, i, addresses, order);
  return warp.schedule->permute_lanes(warp.active_mask, order);
}

// Performs a late atomic of one lane, whose old value is unused.
template <class T, Op kOp, AccessSpace kSpace> void perform_late(WarpContext& warp, const Instruction& i, uint8_t* address,
                                                                 uint32_t lane, uint64_t b, uint64_t c) {
  T old, operands[2];
  std::memcpy(&old, address, sizeof old);
  std::memcpy(&operands[0], &b, sizeof(T)), std::memcpy(&operands[1], &c, sizeof(T));
  notify_lane(warp, i, order_sensitivity_of(kOp, std::is_integral_v<T>, i.count), kOp, value_type<T>(), address, lane,
              operands[0], operands[1]);
  T result = new_value<T, kOp, kSpace>(warp, address, old, operands[0], operands[1]);
  std::memcpy(address, &result, sizeof result);
  *warp.visible_writes += !bits_equal(old, result);
}

// count: whether the old value is returned; variant: the memory order.
template <class T, Op kOp, AccessSpace kSpace> void atom(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!resolve_addresses(warp, i, kSpace, sizeof(T), addresses, true)) return;
  T* d = i.count ? lane_values<T>(warp, i.d) : nullptr;
  const T *b = lane_values<T>(warp, i.b), *c = lane_values<T>(warp, i.c);
  if (warp.deferred && is_deferrable(i))
    return arrive_or_defer(warp, i, addresses, b, c, sizeof(T), perform_late<T, kOp, kSpace>);
  uint8_t order[kWarpSize];
  uint32_t n = order_lanes(warp, i, addresses, order);
  if (warp.observer)
    notify(warp, i, order_sensitivity_of(kOp, std::is_integral_v<T>, d), kOp, value_type<T>(), addresses, order, n, b, c);
  bool has_changed = false;  // a failed compare-and-swap is not a visible write
  for (uint32_t k = 0; k < n; k++) {
    uint32_t l = order[k];
    T old;
    std::memcpy(&old, addresses[l], sizeof old);
    T result = new_value<T, kOp, kSpace>(warp, addresses[l], old, b[l], c[l]);
    std::memcpy(addresses[l], &result, sizeof result);
    has_changed |= !bits_equal(old, result);
    if (!d) continue;
    warp.result_changed |= !bits_equal(d[l], old);  // so a loop around it does more than wait
    d[l] = old;
  }
  *warp.visible_writes += has_changed;
  warp.atomics += n;
}

template <class H, class T> T add_halves(T old, T b) { return add_values(PackedHalves<H, T>{old}, PackedHalves<H, T>{b}).bits; }

template <class H, class T> void perform_late_half(WarpContext& warp, const Instruction& i, uint8_t* address, uint32_t lane,
                                                   uint64_t b, uint64_t) {
  notify_lane(warp, i, OrderSensitivity::Rounding, kAdd, ValueType::Half, address, lane, static_cast<T>(b), T(0));
  T old;
  std::memcpy(&old, address, sizeof old);
  const T result = add_halves<H>(old, static_cast<T>(b));
  std::memcpy(address, &result, sizeof result);
  ++*warp.visible_writes;
}

// Adds one half or two packed halves; packed ones are separate atomics.
template <class H, class T, AccessSpace kSpace> void add_half(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!resolve_addresses(warp, i, kSpace, sizeof(T), addresses, true)) return;
  T* d = i.count ? lane_values<T>(warp, i.d) : nullptr;
  const T* b = lane_values<T>(warp, i.b);
  if (warp.deferred && is_deferrable(i)) return arrive_or_defer(warp, i, addresses, b, b, sizeof(T), perform_late_half<H, T>);
  uint8_t order[kWarpSize];
  uint32_t n = order_lanes(warp, i, addresses, order);
  if (warp.observer) notify(warp, i, OrderSensitivity::Rounding, kAdd, ValueType::Half, addresses, order, n, b, b);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t l = order[k];
    T old;
    std::memcpy(&old, addresses[l], sizeof old);
    const T result = add_halves<H>(old, b[l]);
    std::memcpy(addresses[l], &result, sizeof result);
    if (d) d[l] = old;
  }
  ++*warp.visible_writes;
  warp.atomics += n;
}

template <class T, Op kOp> Execute in_space(AccessSpace space) {
  if (space == AccessSpace::Shared) return atom<T, kOp, AccessSpace::Shared>;
  return space == AccessSpace::Generic ? atom<T, kOp, AccessSpace::Generic> : nullptr;
}
template <class T> Execute atomic_for_op(std::string_view o, AccessSpace space) {
  if (o == "add") return in_space<T, kAdd>(space);
  if (o == "min") return in_space<T, kMin>(space);
  if (o == "max") return in_space<T, kMax>(space);
  if (o == "exch") return in_space<T, kExch>(space);
  if (o == "cas") return in_space<T, kCas>(space);
  if constexpr (std::is_integral_v<T>) {
    if (o == "and") return in_space<T, kAnd>(space);
    if (o == "or") return in_space<T, kOr>(space);
    if (o == "xor") return in_space<T, kXor>(space);
    if (o == "inc") return in_space<T, kInc>(space);
    if (o == "dec") return in_space<T, kDec>(space);
  }
  return nullptr;
}
template <class H, class T> Execute half_in_space(AccessSpace space) {
  if (space == AccessSpace::Shared) return add_half<H, T, AccessSpace::Shared>;
  return space == AccessSpace::Generic ? add_half<H, T, AccessSpace::Generic> : nullptr;
}
Execute atomic_for_type(std::string_view o, std::string_view t, AccessSpace space) {
  if (o == "add" && t == "f16") return half_in_space<HalfFormat, uint16_t>(space);
  if (o == "add" && t == "f16x2") return half_in_space<HalfFormat, uint32_t>(space);
  if (o == "add" && t == "bf16") return half_in_space<BfloatFormat, uint16_t>(space);
  if (o == "add" && t == "bf16x2") return half_in_space<BfloatFormat, uint32_t>(space);
  if (Execute execute =
          for_float(t, [=](auto tag) -> Execute { return atomic_for_op<typename decltype(tag)::type>(o, space); }))
    return execute;
  return for_integer(t, [=](auto tag) -> Execute { return atomic_for_op<typename decltype(tag)::type>(o, space); });
}

std::string_view op_of(const Statement& s) { return s.qualifier_of("add|min|max|and|or|xor|exch|cas|inc|dec"); }

bool has_known_qualifiers(const Statement& s) {
  return s.allows_only({"relaxed|acquire|release|acq_rel", "cta|cluster|gpu|sys", "global|shared|shared::cta",
                        "add|min|max|and|or|xor|exch|cas|inc|dec", "noftz", "v2|v4|v8", "L2::cache_hint"});
}

// Returns the type, which for vectors may come before or behind the operation.
std::string_view type_of(const Statement& s) {
  auto type = std::find_if(s.qualifiers.begin(), s.qualifiers.end(),
                           [](std::string_view qualifier) { return ptx::size_of(qualifier); });
  return type == s.qualifiers.end() ? std::string_view() : *type;
}

// Decodes a vector as separate atomics of its elements.
bool decode_elements(Decoder& d, const Statement& s, Instruction& i, std::string_view t) {
  bool returns_old = s.op == "atom";
  const Operand &old = s.operands[0], &operand = s.operands[returns_old ? 2 : 1];
  size_t count = s.has("v8") ? 8 : s.has("v4") ? 4 : 2;
  bool has_valid_lists = operand.kind == Operand::Vector && operand.parts.size() == count;
  if (returns_old) has_valid_lists = has_valid_lists && old.kind == Operand::Vector && old.parts.size() == count;
  if (!has_valid_lists || count * ptx::size_of(t) > 16 || t[0] == 'u' || t[0] == 's') return false;
  i.count = returns_old, i.old_value = returns_old ? OldValue::Used : OldValue::Unused;
  for (size_t k = 0; k < count; k++, i.imm += ptx::size_of(t)) {
    if (returns_old) i.d = d.result(old.parts[k], t, true);
    i.b = i.c = d.source(operand.parts[k], t);
    d.emit(i);
  }
  return true;
}

}  // namespace

bool decode_atomic(Decoder& d, const Statement& s, Instruction& i) {
  bool returns_old = s.op == "atom";
  std::string_view o = op_of(s), t = type_of(s);
  size_t first = returns_old ? 1 : 0;
  size_t expected_operands = first + (o == "cas" ? 3 : 2) + s.has("L2::cache_hint");
  if (!has_known_qualifiers(s) || s.operands.size() != expected_operands) return false;
  AccessSpace space = access_space_of(s);
  decode_address(d, s, s.operands[first], space, i);
  i.execute = atomic_for_type(o, t, space);
  if (!i.execute) return false;
  i.kind = InstructionKind::SchedulingPoint;
  i.variant = memory_order_of(s) | kStrong;
  i.block_scope = s.has("cta") || s.has("cluster");  // there are no clusters of several blocks
  if (!s.qualifier_of("v2|v4|v8").empty()) return space == AccessSpace::Generic && decode_elements(d, s, i, t);
  i.count = returns_old && s.operands[0].text != "_", i.old_value = i.count ? OldValue::Used : OldValue::Unused;
  if (i.count) i.d = d.result(s.operands[0], t);
  i.b = d.source(s.operands[first + 1], t);
  i.c = o == "cas" ? d.source(s.operands.at(first + 2), t) : i.b;
  d.emit(i);
  return true;
}

}  // namespace vgpu
