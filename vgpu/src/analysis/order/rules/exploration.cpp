// Performs the recorded accesses to one location in every order that happens-before leaves open, and compares each value that the
// program uses, and the bytes at the end, with those of the observed run.
#include "exploration.h"

#include <cstring>
#include <set>
#include <utility>

#include "arithmetic/atomic_operation.h"

namespace vgpu {
namespace {

constexpr size_t kMaxStates = 20000;

uint64_t mask_of(uint32_t bytes) { return bytes >= 8 ? ~0ull : (1ull << 8 * bytes) - 1; }

template <class T, AtomicOperation kOp>
uint64_t apply(const RecordedAccess& access, uint64_t old) {
  T values[3];
  std::memcpy(&values[0], &old, sizeof(T)), std::memcpy(&values[1], &access.operand, sizeof(T));
  const T result = apply_atomic_in<T, kOp>(access.in_shared, values[0], values[1], values[2] = {});
  uint64_t bits = 0;
  return std::memcpy(&bits, &result, sizeof(T)), bits;
}

template <AtomicOperation kOp>
uint64_t apply_of_type(const RecordedAccess& access, uint64_t old) {
  const bool wide = access.bytes == 8;
  constexpr bool kIsArithmetic = kOp == AtomicOperation::Add || kOp == AtomicOperation::Min || kOp == AtomicOperation::Max;
  if constexpr (kIsArithmetic) {
    if (access.type == ValueType::Float) return apply<float, kOp>(access, old);
    if (access.type == ValueType::Double) return apply<double, kOp>(access, old);
    if (access.type == ValueType::Signed) return wide ? apply<int64_t, kOp>(access, old) : apply<int32_t, kOp>(access, old);
  }
  return wide ? apply<uint64_t, kOp>(access, old) : apply<uint32_t, kOp>(access, old);
}

uint64_t new_value(const RecordedAccess& access, uint64_t old) {
  if (access.kind == AccessKind::Write) return access.operand;
  switch (access.operation) {
    case AtomicOperation::Exchange: return access.operand;
    case AtomicOperation::CompareAndSwap: return old == access.expected ? access.operand : old;
    case AtomicOperation::Add: return apply_of_type<AtomicOperation::Add>(access, old);
    case AtomicOperation::Min: return apply_of_type<AtomicOperation::Min>(access, old);
    case AtomicOperation::Max: return apply_of_type<AtomicOperation::Max>(access, old);
    case AtomicOperation::And: return apply_of_type<AtomicOperation::And>(access, old);
    case AtomicOperation::Or: return apply_of_type<AtomicOperation::Or>(access, old);
    case AtomicOperation::Xor: return apply_of_type<AtomicOperation::Xor>(access, old);
    case AtomicOperation::Increment: return apply_of_type<AtomicOperation::Increment>(access, old);
    case AtomicOperation::Decrement: return apply_of_type<AtomicOperation::Decrement>(access, old);
    case AtomicOperation::None: break;
  }
  return old;
}

// Whether CUDA defines the effect of these two accesses if they are unordered.
bool is_defined(const RecordedAccess& first, const RecordedAccess& second) {
  const bool overlaps = first.offset < second.offset + second.bytes && second.offset < first.offset + first.bytes;
  if (!overlaps || (first.kind == AccessKind::Read && second.kind == AccessKind::Read)) return true;
  if (first.offset != second.offset || first.bytes != second.bytes) return false;
  const bool has_atomic = first.kind == AccessKind::Atomic || second.kind == AccessKind::Atomic;
  const bool has_read = first.kind == AccessKind::Read || second.kind == AccessKind::Read;
  return !has_atomic || has_read || (first.strong && second.strong);
}

bool are_defined(const std::vector<RecordedAccess>& accesses) {
  for (size_t k = 0; k < accesses.size(); k++)
    for (size_t j = 0; j < k; j++)
      if (!(accesses[k].predecessors >> j & 1) && !is_defined(accesses[j], accesses[k])) return false;
  return true;
}

bool needs_initialized(const RecordedAccess& access) { return access.value_is_used || access.kind == AccessKind::Atomic; }

}  // namespace

uint64_t RecordedAccess::value_in(const LocationState& state) const { return state.value >> 8 * offset & mask_of(bytes); }

bool RecordedAccess::is_written_in(const LocationState& state) const {
  const uint32_t needed = (1u << bytes) - 1;
  return (state.written >> offset & needed) == needed;
}

LocationState RecordedAccess::perform(const LocationState& state) const {
  if (kind == AccessKind::Read) return state;
  const uint64_t mask = mask_of(bytes), value = new_value(*this, value_in(state)) & mask;
  LocationState result = state;
  result.value = (state.value & ~(mask << 8 * offset)) | value << 8 * offset;
  result.written |= static_cast<uint8_t>(((1u << bytes) - 1) << offset);
  return result;
}

bool can_perform(const RecordedAccess& access) {
  if (access.kind != AccessKind::Atomic) return true;
  if (access.operation == AtomicOperation::None || access.type == ValueType::Half) return false;
  const bool any_width = access.operation == AtomicOperation::Exchange || access.operation == AtomicOperation::CompareAndSwap;
  return any_width || access.bytes == 4 || access.bytes == 8;
}

bool all_orders_agree(const LocationState& initial, const std::vector<RecordedAccess>& accesses) {
  if (!are_defined(accesses)) return false;
  std::vector<uint64_t> values;  // of each access in the observed run
  LocationState end = initial;
  for (const RecordedAccess& access : accesses) values.push_back(access.value_in(end)), end = access.perform(end);
  using State = std::pair<uint32_t, LocationState>;  // the accesses that were performed, and what they leave
  const uint32_t all = (1u << accesses.size()) - 1;
  std::set<State> visited;
  std::vector<State> pending{{0, initial}};
  while (!pending.empty()) {
    const State state = pending.back();
    pending.pop_back();
    if (!visited.insert(state).second) continue;
    if (visited.size() > kMaxStates || (state.first == all && !(state.second == end))) return false;
    for (size_t k = 0; k < accesses.size(); k++) {
      const RecordedAccess& access = accesses[k];
      if (state.first >> k & 1 || access.predecessors & ~state.first) continue;
      if (needs_initialized(access) && !access.is_written_in(state.second)) return false;
      if (access.value_is_used && access.value_in(state.second) != values[k]) return false;
      pending.emplace_back(state.first | 1u << k, access.perform(state.second));
    }
  }
  return true;
}

}  // namespace vgpu
