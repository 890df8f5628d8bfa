// Atomics and reductions.  One warp's lanes come one after the other, in an order that the schedule chooses.
//
// Values are gathered from pairs of registers into one array of 64 bits a lane before anything is done.
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

// What an observer is told of the lanes that come.  b, c: where their operands lie.
template <class T, Op kOp> MemoryAccess describe(const Instruction& i, uint8_t* const* at, const uint8_t* order, uint32_t count,
                                                 const RegisterValues& b, const RegisterValues& c) {
  MemoryAccess made = {
      AccessKind::Atomic, i.variant, order_sensitivity_of(kOp, std::is_integral_v<T>, i.count), sizeof(T), at, order, count};
  made.operation = kOp, made.type = value_type<T>(), made.returns_old = i.count != 0;
  made.values = kOp == Op::CompareAndSwap ? c : b;
  if (kOp == Op::CompareAndSwap) made.expected = b;
  return made;
}

template <class T> T take(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Does one; has anything changed?
template <class T, Op kOp> bool perform_at(const WarpContext& warp, uint8_t* at, uint64_t b, uint64_t c, T& old) {
  std::memcpy(&old, at, sizeof old);
  const T made = apply_atomic_in<T, kOp>(is_shared(warp, at), old, take<T>(b), take<T>(c));
  std::memcpy(at, &made, sizeof made);
  return !bits_equal(old, made);
}

// A lane's atomic whose old value nobody wants, which may come late.
template <class T, Op kOp> void perform_late(WarpContext& warp, const Instruction& i, uint8_t* at, uint32_t lane, uint64_t b,
                                             uint64_t c) {
  if (warp.observer) {
    uint8_t* places[kWarpSize] = {};
    places[lane] = at;
    const uint8_t number = static_cast<uint8_t>(lane);
    uint64_t first[kWarpSize] = {}, second[kWarpSize] = {};
    first[lane] = b, second[lane] = c;
    const auto in = [](const uint64_t* lanes) {
      return RegisterValues{{reinterpret_cast<const uint8_t*>(lanes)}, 1, sizeof *lanes};
    };
    notify_access(warp, i, describe<T, kOp>(i, places, &number, 1, in(first), in(second)));
  }
  T old;
  *warp.visible_writes += perform_at<T, kOp>(warp, at, b, c, old);
}

// How the old value is given back: as it is, as 1 where it was swapped (CAST), or not at all.
enum Result : uint8_t { kNoResult, kOldValue, kWasSwapped };

template <class T> void write_result(WarpContext& warp, const Instruction& i, uint32_t lane, const T& old, uint64_t expected) {
  uint32_t* d = words(warp, i.d);
  uint64_t bits = 0;
  std::memcpy(&bits, &old, sizeof old);
  if (i.count == kWasSwapped) bits = bits == expected;
  warp.observed_change |= d[lane] != static_cast<uint32_t>(bits);
  d[lane] = static_cast<uint32_t>(bits);
  if (sizeof(T) == 4) return;
  warp.observed_change |= d[lane + kWarpSize] != static_cast<uint32_t>(bits >> 32);
  d[lane + kWarpSize] = static_cast<uint32_t>(bits >> 32);
}

// c, e: the registers of the operands.
template <class T, Op kOp> void perform(WarpContext& warp, const Instruction& i, uint8_t* const at[kWarpSize]) {
  uint64_t b[kWarpSize] = {}, c[kWarpSize] = {};
  const uint32_t *first = words(warp, i.c), *second = words(warp, i.e);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    b[l] = sizeof(T) == 8 ? pair_of(first, l) : first[l];
    if (kOp == Op::CompareAndSwap) c[l] = sizeof(T) == 8 ? pair_of(second, l) : second[l];
  });
  uint8_t order[kWarpSize];
  uint32_t n = warp.schedule->permute_lanes(warp.active_mask, order);
  if (warp.deferred && i.count == kNoResult && i.variant == kStrong) {
    warp.deferred->arrive_or_defer(warp, i, at, order, n, reinterpret_cast<const uint8_t*>(b),
                                   reinterpret_cast<const uint8_t*>(c), 8, perform_late<T, kOp>);
    warp.atomics += n;
    return;
  }
  if (warp.deferred) n = warp.deferred->select_arriving(warp, at, order, n);
  if (warp.observer)
    notify_access(warp, i,
                  describe<T, kOp>(i, at, order, n, values_in(warp, i.c, sizeof(T) / 4), values_in(warp, i.e, sizeof(T) / 4)));
  bool changed = false;  // a try in vain tells nobody anything
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t l = order[k];
    T old;
    changed |= perform_at<T, kOp>(warp, at[l], b[l], c[l], old);
    if (i.count != kNoResult) write_result(warp, i, l, old, b[l]);
  }
  *warp.visible_writes += changed;
  warp.atomics += n;
}

template <class T, Op kOp, Space kSpace> void atomic(WarpContext& warp, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (find_addresses(warp, i, kSpace, sizeof(T), at, true)) perform<T, kOp>(warp, i, at);
}

// Of generic addresses with a predicate: the lanes whose address is global; code behind does the others' work.
template <class T, Op kOp> void atomic_where_global(WarpContext& warp, const Instruction& i) {
  uint64_t address[kWarpSize];
  generic_addresses(warp, i, address);
  const uint32_t all = warp.active_mask;
  const uint32_t global =
      lanes_where([&](uint32_t l) { return !is_in_shared_window(address[l]) && !is_in_local_window(address[l]); });
  write_predicate(warp, i.vector_registers[kFirstWritten], global);
  warp.active_mask = all & global;
  if (warp.active_mask) atomic<T, kOp, Space::Global>(warp, i);
  warp.active_mask = all;
}

void count_shared(WarpContext& warp, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (!find_addresses(warp, i, Space::Shared, 4, at, true)) return;
  perform<uint32_t, Op::Add>(warp, i, at);  // of a register of ones
}

template <class T, Op kOp> Execute in_space(Space space, bool tells) {
  if (space == Space::Shared) return atomic<T, kOp, Space::Shared>;
  if (space == Space::Global) return atomic<T, kOp, Space::Global>;
  return tells ? atomic_where_global<T, kOp> : atomic<T, kOp, Space::Generic>;
}

template <class T> Execute operation(std::string_view name, Space space, bool tells) {
  if (name == "ADD") return in_space<T, Op::Add>(space, tells);
  if constexpr (std::is_integral_v<T>) {
    if (name == "MIN") return in_space<T, Op::Min>(space, tells);
    if (name == "MAX") return in_space<T, Op::Max>(space, tells);
    if (name == "INC") return in_space<T, Op::Increment>(space, tells);
    if (name == "DEC") return in_space<T, Op::Decrement>(space, tells);
    if (name == "AND") return in_space<T, Op::And>(space, tells);
    if (name == "OR") return in_space<T, Op::Or>(space, tells);
    if (name == "XOR") return in_space<T, Op::Xor>(space, tells);
    if (name == "EXCH") return in_space<T, Op::Exchange>(space, tells);
  }
  return nullptr;
}

Execute operation_of_type(std::string_view name, std::string_view type, Space space, bool tells) {
  if (type.empty()) return operation<uint32_t>(name, space, tells);
  if (type == "S32") return operation<int32_t>(name, space, tells);
  if (type == "64") return operation<uint64_t>(name, space, tells);
  if (type == "S64") return operation<int64_t>(name, space, tells);
  if (type == "F32.FTZ.RN") return operation<float>(name, space, tells);
  if (type == "F64.RN") return operation<double>(name, space, tells);
  return type == "F16x2.RN" ? operation<HalfPair>(name, space, tells) : nullptr;
}

void select_common(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  i.kind = InstructionKind::SchedulingPoint, i.variant = kStrong;
  i.c = i.e = d.read_register(c.bits(32, 8));
}

bool select_atomic(FunctionDecoder& d, const Decoded& c, Instruction& i, Space space) {
  select_common(d, c, i);
  i.count = c.bits(16, 8) == kRZ ? kNoResult : kOldValue;
  const bool tells = space == Space::Generic && c.bits(81, 3) != kPT;
  i.execute = operation_of_type(c.modifier(87), c.modifier(73), space, tells);
  return i.execute != nullptr;
}

bool select_swap(FunctionDecoder& d, const Decoded& c, Instruction& i, Space space) {
  select_common(d, c, i);
  i.e = d.read_register(c.bits(64, 8));
  i.count = c.bits(16, 8) == kRZ ? kNoResult : c.has("CAST.SPIN") ? kWasSwapped : kOldValue;
  const bool tells = space == Space::Generic && c.bits(81, 3) != kPT;
  i.execute = c.modifier(73) == "64" ? in_space<uint64_t, Op::CompareAndSwap>(space, tells)
                                     : in_space<uint32_t, Op::CompareAndSwap>(space, tells);
  return true;
}

}  // namespace

bool select_reduction(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_common(d, c, i);
  i.count = kNoResult;
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
  i.count = c.bits(16, 8) == kRZ ? kNoResult : kOldValue, i.execute = count_shared;
  return true;
}

}  // namespace vgpu::sm80
