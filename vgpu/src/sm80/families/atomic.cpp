// Atomics and reductions.  One warp's lanes come one after the other, in an order that the schedule chooses.
//
// Values are gathered from pairs of registers into one array of 64 bits a lane before anything is done.
#include <cstring>

#include "address.h"
#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

enum class Op : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor, Exchange, Swap };

struct HalfPair { uint32_t bits; };

template <class T> bool have_same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;  // NOLINT(bugprone-suspicious-memory-comparison): zeros of two signs differ
}

// Of single precision sums in global memory flush what is subnormal; those in shared memory do not.
template <class T> T add(T old, T b, bool flushes) {
  if constexpr (std::is_same_v<T, HalfPair>) {
    const auto half = [&](uint32_t shift) -> uint32_t {
      const double sum = double(half_to_float(uint16_t(old.bits >> shift))) + half_to_float(uint16_t(b.bits >> shift));
      return uint32_t(to_half(sum)) << shift;
    };
    return {half(0) | half(16)};
  } else if constexpr (std::is_same_v<T, float>) {
    if (!flushes) return canonicalize_nan(old + b);
    return flush_subnormal(canonicalize_nan(flush_subnormal(old) + flush_subnormal(b)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return canonicalize_nan(old + b);
  } else {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
  }
}

template <class T, Op kOp> T combine(T old, T b, T c, bool flushes) {
  if constexpr (kOp == Op::Exchange) return b;
  else if constexpr (kOp == Op::Swap) return have_same_bits(old, b) ? c : old;
  else if constexpr (kOp == Op::Add) return add(old, b, flushes);
  else if constexpr (kOp == Op::Min) return std::min(old, b);
  else if constexpr (kOp == Op::Max) return std::max(old, b);
  else if constexpr (kOp == Op::And) return old & b;
  else if constexpr (kOp == Op::Or) return old | b;
  else if constexpr (kOp == Op::Xor) return old ^ b;
  else if constexpr (kOp == Op::Inc) return old >= b ? T(0) : static_cast<T>(old + 1);
  else return old == 0 || old > b ? b : static_cast<T>(old - 1);
}

template <class T, Op kOp> OrderSensitivity sensitivity(bool wants_old) {
  if (kOp == Op::Exchange || kOp == Op::Swap) return OrderSensitivity::LastWriterWins;
  if (kOp == Op::Add && !std::is_integral_v<T>) return OrderSensitivity::Rounding;
  return wants_old ? OrderSensitivity::ReturnsOldValue : OrderSensitivity::Nothing;
}

template <class T> T take(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Does one; has anything changed?
template <class T, Op kOp> bool perform_at(const WarpContext& w, uint8_t* at, uint64_t b, uint64_t c, T& old) {
  std::memcpy(&old, at, sizeof old);
  const T made = combine<T, kOp>(old, take<T>(b), take<T>(c), !is_shared(w, at));
  std::memcpy(at, &made, sizeof made);
  return !have_same_bits(old, made);
}

// A lane's atomic whose old value nobody wants, which may come late.
template <class T, Op kOp> void perform_late(WarpContext& w, const Instruction& i, uint8_t* at, uint32_t lane, uint64_t b,
                                             uint64_t c) {
  if (w.observer) {
    uint8_t* places[kWarpSize] = {};
    places[lane] = at;
    const uint8_t number = static_cast<uint8_t>(lane);
    notify_access(w, i, {AccessKind::Atomic, i.variant, sensitivity<T, kOp>(false), sizeof(T), places, &number, 1});
  }
  T old;
  *w.visible_writes += perform_at<T, kOp>(w, at, b, c, old);
}

// How the old value is given back: as it is, as 1 where it was swapped (CAST), or not at all.
enum Result : uint8_t { kNoResult, kOldValue, kWasSwapped };

template <class T> void write_result(WarpContext& w, const Instruction& i, uint32_t lane, const T& old, uint64_t expected) {
  uint32_t* d = words(w, i.d);
  uint64_t bits = 0;
  std::memcpy(&bits, &old, sizeof old);
  if (i.count == kWasSwapped) bits = bits == expected;
  w.observed_change |= d[lane] != static_cast<uint32_t>(bits);
  d[lane] = static_cast<uint32_t>(bits);
  if (sizeof(T) == 4 || i.count == kWasSwapped) return;
  w.observed_change |= d[lane + kWarpSize] != static_cast<uint32_t>(bits >> 32);
  d[lane + kWarpSize] = static_cast<uint32_t>(bits >> 32);
}

// c, e: the registers of the operands.
template <class T, Op kOp> void perform(WarpContext& w, const Instruction& i, uint8_t* const at[kWarpSize]) {
  uint64_t b[kWarpSize] = {}, c[kWarpSize] = {};
  const uint32_t *first = words(w, i.c), *second = words(w, i.e);
  for_each_lane(w.active_mask, [&](uint32_t l) {
    b[l] = sizeof(T) == 8 ? pair_of(first, l) : first[l];
    if (kOp == Op::Swap) c[l] = sizeof(T) == 8 ? pair_of(second, l) : second[l];
  });
  uint8_t order[kWarpSize];
  uint32_t n = w.schedule->permute_lanes(w.active_mask, order);
  if (w.deferred && i.count == kNoResult && i.variant == kStrong) {
    w.deferred->arrive_or_defer(w, i, at, order, n, reinterpret_cast<const uint8_t*>(b), reinterpret_cast<const uint8_t*>(c), 8,
                                perform_late<T, kOp>);
    w.atomics += n;
    return;
  }
  if (w.deferred) n = w.deferred->select_arriving(w, at, order, n);
  if (w.observer) notify_access(w, i, {AccessKind::Atomic, i.variant, sensitivity<T, kOp>(i.count), sizeof(T), at, order, n});
  bool changed = false;  // a try in vain tells nobody anything
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t l = order[k];
    T old;
    changed |= perform_at<T, kOp>(w, at[l], b[l], c[l], old);
    if (i.count != kNoResult) write_result(w, i, l, old, b[l]);
  }
  *w.visible_writes += changed;
  w.atomics += n;
}

template <class T, Op kOp, Space kSpace> void atomic(WarpContext& w, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (find_addresses(w, i, kSpace, sizeof(T), at, true)) perform<T, kOp>(w, i, at);
}

// Of generic addresses with a predicate: the lanes whose address is global; code behind does the others' work.
template <class T, Op kOp> void atomic_where_global(WarpContext& w, const Instruction& i) {
  uint64_t address[kWarpSize];
  generic_addresses(w, i, address);
  const uint32_t all = w.active_mask;
  const uint32_t global =
      lanes_where([&](uint32_t l) { return !is_in_shared_window(address[l]) && !is_in_local_window(address[l]); });
  write_predicate(w, i.vector_registers[kFirstWritten], global);
  w.active_mask = all & global;
  if (w.active_mask) atomic<T, kOp, Space::Global>(w, i);
  w.active_mask = all;
}

void count_shared(WarpContext& w, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (!find_addresses(w, i, Space::Shared, 4, at, true)) return;
  perform<uint32_t, Op::Add>(w, i, at);  // of a register of ones
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
    if (name == "INC") return in_space<T, Op::Inc>(space, tells);
    if (name == "DEC") return in_space<T, Op::Dec>(space, tells);
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
  i.execute = c.modifier(73) == "64" ? in_space<uint64_t, Op::Swap>(space, tells) : in_space<uint32_t, Op::Swap>(space, tells);
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
