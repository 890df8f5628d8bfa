// Atomics and reductions.  A warp's lanes execute in an order that the schedule chooses.
//
// Operands are first gathered from registers to arrays of 64 bits per lane.  The schedule may defer an atomic, so that another
// at its address executes first; without a result, its lane continues, and the atomic is performed late.
#include <cstring>

#include "address.h"
#include "arithmetic/atomic_operation.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

using Op = AtomicOperation;
using HalfPair = PackedHalves<HalfFormat, uint32_t>;

template <class T> constexpr ValueType value_type() {
  if (!std::is_arithmetic_v<T>) return ValueType::Half;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? ValueType::Float : ValueType::Double;
  return std::is_signed_v<T> ? ValueType::Signed : ValueType::Unsigned;
}

// Describes the access of the executing lanes for observers.  b, c: their operands.
template <class T, Op kOp> MemoryAccess describe(const Instruction& i, uint8_t* const* addresses, const uint8_t* order,
                                                 uint32_t count, const RegisterValues& b, const RegisterValues& c) {
  MemoryAccess access = {AccessKind::Atomic,
                         i.variant,
                         order_sensitivity_of(kOp, std::is_integral_v<T>, i.count),
                         sizeof(T),
                         addresses,
                         order,
                         count};
  access.operation = kOp, access.type = value_type<T>(), access.returns_old = i.count != 0;
  access.values = kOp == Op::CompareAndSwap ? c : b;
  if (kOp == Op::CompareAndSwap) access.expected = b;
  return access;
}

template <class T> T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Performs one atomic; returns whether memory has changed.
template <class T, Op kOp> bool perform_at(const WarpContext& warp, uint8_t* address, uint64_t b, uint64_t c, T& old) {
  std::memcpy(&old, address, sizeof old);
  const T result = apply_atomic_in<T, kOp>(is_shared(warp, address), old, from_bits<T>(b), from_bits<T>(c));
  std::memcpy(address, &result, sizeof result);
  return !bits_equal(old, result);
}

// Performs a late atomic, whose old value is unused.
template <class T, Op kOp> void perform_late(WarpContext& warp, const Instruction& i, uint8_t* address, uint32_t lane,
                                             uint64_t b, uint64_t c) {
  if (warp.observer) {
    uint8_t* addresses[kWarpSize] = {};
    addresses[lane] = address;
    const uint8_t number = static_cast<uint8_t>(lane);
    uint64_t operands_b[kWarpSize] = {}, operands_c[kWarpSize] = {};
    operands_b[lane] = b, operands_c[lane] = c;
    const auto as_values = [](const uint64_t* lanes) {
      return RegisterValues{{reinterpret_cast<const uint8_t*>(lanes)}, 1, sizeof *lanes};
    };
    notify_access(warp, i, describe<T, kOp>(i, addresses, &number, 1, as_values(operands_b), as_values(operands_c)));
  }
  T old;
  *warp.visible_writes += perform_at<T, kOp>(warp, address, b, c, old);
}

// The result of an atomic: none, the old value, or 1 if a compare-and-swap has stored (CAST).
enum Result : uint8_t { kNoResult, kOldValue, kWasSwapped };

// result_changed: a thread that waits in a loop gets the same result until another one writes.
template <class T> void write_result(WarpContext& warp, const Instruction& i, uint32_t lane, const T& old, uint64_t expected) {
  uint32_t* d = lane_words(warp, i.d);
  uint64_t bits = 0;
  std::memcpy(&bits, &old, sizeof old);
  if (i.count == kWasSwapped) bits = bits == expected;
  warp.result_changed |= d[lane] != static_cast<uint32_t>(bits);
  d[lane] = static_cast<uint32_t>(bits);
  if (sizeof(T) == 4) return;
  warp.result_changed |= d[lane + kWarpSize] != static_cast<uint32_t>(bits >> 32);
  d[lane + kWarpSize] = static_cast<uint32_t>(bits >> 32);
}

// c, e: the registers of the operands.
template <class T, Op kOp> void perform(WarpContext& warp, const Instruction& i, uint8_t* const addresses[kWarpSize]) {
  alignas(64) uint64_t b[kWarpSize], c[kWarpSize];
  const uint32_t *words_b = lane_words(warp, i.c), *words_c = lane_words(warp, i.e);
  const auto value_of = [](const uint32_t* words, uint32_t lane) {
    return sizeof(T) == 8 ? pair_of(words, lane) : words[lane];
  };
  VGPU_INDEPENDENT
  for (uint32_t lane = 0; lane < kWarpSize; lane++) {
    b[lane] = value_of(words_b, lane);
    c[lane] = kOp == Op::CompareAndSwap ? value_of(words_c, lane) : 0;
  }
  if (warp.deferred && is_deferrable(i)) {
    warp.deferred->arrive_or_defer(warp, i, addresses, reinterpret_cast<const uint8_t*>(b), reinterpret_cast<const uint8_t*>(c),
                                   8, perform_late<T, kOp>);
    warp.atomics += static_cast<uint32_t>(__builtin_popcount(warp.active_mask));
    return;
  }
  uint8_t order[kWarpSize];
  const uint32_t n = warp.deferred ? warp.deferred->select_arriving(warp, i, addresses, order)
                                   : warp.schedule->permute_lanes(warp.active_mask, order);
  if (warp.observer)
    notify_access(warp, i,
                  describe<T, kOp>(i, addresses, order, n, register_values(warp, i.c, sizeof(T) / 4),
                                   register_values(warp, i.e, sizeof(T) / 4)));
  bool has_changed = false;  // a failed compare-and-swap is not a visible write
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t lane = order[k];
    T old;
    has_changed |= perform_at<T, kOp>(warp, addresses[lane], b[lane], c[lane], old);
    if (i.count != kNoResult) write_result(warp, i, lane, old, b[lane]);
  }
  *warp.visible_writes += has_changed;
  warp.atomics += n;
}

template <class T, Op kOp, Space kSpace> void atomic(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (find_addresses(warp, i, kSpace, sizeof(T), addresses, true)) perform<T, kOp>(warp, i, addresses);
}

// Executes only lanes with global addresses, and writes a predicate with them; the code that follows handles the other lanes.
template <class T, Op kOp> void atomic_where_global(WarpContext& warp, const Instruction& i) {
  uint64_t address[kWarpSize];
  generic_addresses(warp, i, address);
  const uint32_t active = warp.active_mask;
  const uint32_t global =
      lanes_where([&](uint32_t l) { return !is_in_shared_window(address[l]) && !is_in_local_window(address[l]); });
  write_predicate(warp, i.vector_registers[kFirstWritten], global);
  warp.active_mask = active & global;
  if (warp.active_mask) atomic<T, kOp, Space::Global>(warp, i);
  warp.active_mask = active;
}

void count_shared(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!find_addresses(warp, i, Space::Shared, 4, addresses, true)) return;
  perform<uint32_t, Op::Add>(warp, i, addresses);  // i.c is a register of ones
}

template <class T, Op kOp> Execute in_space(Space space, bool writes_predicate) {
  if (space == Space::Shared) return atomic<T, kOp, Space::Shared>;
  if (space == Space::Global) return atomic<T, kOp, Space::Global>;
  return writes_predicate ? atomic_where_global<T, kOp> : atomic<T, kOp, Space::Generic>;
}

template <class T> Execute operation(std::string_view name, Space space, bool writes_predicate) {
  if (name == "ADD") return in_space<T, Op::Add>(space, writes_predicate);
  if constexpr (std::is_integral_v<T>) {
    if (name == "MIN") return in_space<T, Op::Min>(space, writes_predicate);
    if (name == "MAX") return in_space<T, Op::Max>(space, writes_predicate);
    if (name == "INC") return in_space<T, Op::Increment>(space, writes_predicate);
    if (name == "DEC") return in_space<T, Op::Decrement>(space, writes_predicate);
    if (name == "AND") return in_space<T, Op::And>(space, writes_predicate);
    if (name == "OR") return in_space<T, Op::Or>(space, writes_predicate);
    if (name == "XOR") return in_space<T, Op::Xor>(space, writes_predicate);
    if (name == "EXCH") return in_space<T, Op::Exchange>(space, writes_predicate);
  }
  return nullptr;
}

Execute operation_of_type(std::string_view name, std::string_view type, Space space, bool writes_predicate) {
  if (type.empty()) return operation<uint32_t>(name, space, writes_predicate);
  if (type == "S32") return operation<int32_t>(name, space, writes_predicate);
  if (type == "64") return operation<uint64_t>(name, space, writes_predicate);
  if (type == "S64") return operation<int64_t>(name, space, writes_predicate);
  if (type == "F32.FTZ.RN") return operation<float>(name, space, writes_predicate);
  if (type == "F64.RN") return operation<double>(name, space, writes_predicate);
  return type == "F16x2.RN" ? operation<HalfPair>(name, space, writes_predicate) : nullptr;
}

void select_common(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  i.kind = InstructionKind::SchedulingPoint, i.variant = kStrong;
  i.block_scope = c.modifier(77) == "STRONG.SM";
  i.c = i.e = d.read_register(c.bits(32, 8));
}

void set_result(Instruction& i, uint8_t result) {
  i.count = result, i.old_value = result == kNoResult ? OldValue::Unused : OldValue::Used;
}

bool select_atomic(FunctionDecoder& d, const Decoded& c, Instruction& i, Space space) {
  select_common(d, c, i);
  set_result(i, c.bits(16, 8) == kRZ ? kNoResult : kOldValue);
  const bool writes_predicate = space == Space::Generic && c.bits(81, 3) != kPT;
  i.execute = operation_of_type(c.modifier(87), c.modifier(73), space, writes_predicate);
  return i.execute != nullptr;
}

bool select_swap(FunctionDecoder& d, const Decoded& c, Instruction& i, Space space) {
  select_common(d, c, i);
  i.e = d.read_register(c.bits(64, 8));
  set_result(i, c.bits(16, 8) == kRZ ? kNoResult : c.has("CAST.SPIN") ? kWasSwapped : kOldValue);
  const bool writes_predicate = space == Space::Generic && c.bits(81, 3) != kPT;
  i.execute = c.modifier(73) == "64" ? in_space<uint64_t, Op::CompareAndSwap>(space, writes_predicate)
                                     : in_space<uint32_t, Op::CompareAndSwap>(space, writes_predicate);
  return true;
}

}  // namespace

bool select_reduction(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_common(d, c, i);
  set_result(i, kNoResult);
  i.execute = operation_of_type(c.modifier(87), c.modifier(73), Space::Global, false);
  return i.execute != nullptr;
}
bool select_atomic_global(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  return select_atomic(d, c, i, Space::Global);
}
bool select_atomic_generic(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  return select_atomic(d, c, i, Space::Generic);
}
bool select_atomic_shared(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  return select_atomic(d, c, i, Space::Shared);
}
bool select_swap_global(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_swap(d, c, i, Space::Global); }
bool select_swap_generic(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_swap(d, c, i, Space::Generic); }
bool select_swap_shared(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_swap(d, c, i, Space::Shared); }

bool select_count_shared(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_common(d, c, i);
  i.c = i.e = d.constant(1);
  set_result(i, c.bits(16, 8) == kRZ ? kNoResult : kOldValue), i.execute = count_shared;
  return true;
}

}  // namespace vgpu::sm80
