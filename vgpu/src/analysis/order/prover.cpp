// The observer for VGPU_CHECK=order: splits accesses into words, and adds them to the phases of these.
#include "prover.h"

#include <algorithm>
#include <cstring>

#include "rules/commuting_updates.h"
#include "rules/silent_atomic.h"

namespace vgpu {
namespace {

// Loads words by loads of their size: an 8-byte load right after a 4-byte store would stall.
uint64_t value_at(const uint8_t* pointer, uint32_t bytes) {
  if (bytes == kWordBytes) {
    uint32_t word;
    return std::memcpy(&word, pointer, kWordBytes), word;
  }
  uint64_t value = 0;
  return std::memcpy(&value, pointer, std::min(bytes, 8u)), value;
}

// Copies a lane's value in the layout of memory.
void gather(const RegisterValues& values, uint32_t lane, uint32_t bytes, uint8_t* value) {
  if (values.count == 1 && bytes == kWordBytes) {
    std::memcpy(value, values.parts[0] + lane * values.stride, kWordBytes);
    return;
  }
  const uint32_t part = bytes / values.count;
  for (uint32_t k = 0; k < values.count; k++) std::memcpy(value + k * part, values.parts[k] + lane * values.stride, part);
}

// Whether the access is the compare-and-swap of a loop that computes an update.
bool is_update_loop(const Instruction& i, const MemoryAccess& t) {
  return i.update != AtomicOperation::None && t.expected.count;
}

// Returns the operand of the update that a compare-and-swap loop computes.
RegisterValues update_operand(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  RegisterValues operand = t.values;
  for (uint32_t k = 0; k < operand.count; k++) operand.parts[k] = warp.frame + i.vector_registers[k];
  return operand;
}

// Whether the result depends on the type: signed and unsigned sums, for example, have the same bits.
bool is_typed(AtomicOperation operation, ValueType type) {
  return operation == AtomicOperation::Min || operation == AtomicOperation::Max || type >= ValueType::Float;
}

// Whether each lane updates a whole word by an operand that needs no comparison with the values of others.
bool is_word_update(const MemoryAccess& t, const LaneAccess& access) {
  const bool is_bounded_counter = t.operation == AtomicOperation::Increment || t.operation == AtomicOperation::Decrement;
  return t.kind == AccessKind::Atomic && access.kind == PhaseKind::CommutingUpdates && t.bytes == kWordBytes &&
         t.values.count == 1 && !t.expected.count && !is_bounded_counter;
}

bool are_words_equal(const uint8_t* first, const uint8_t* second) {
  return value_at(first, kWordBytes) == value_at(second, kWordBytes);
}

// Compare lines.  Compilers vectorize the count, which each store needs, and not the mask.
uint32_t count_equal_words(const uint8_t* first, const uint8_t* second) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < kLineBytes; k += kWordBytes) count += are_words_equal(first + k, second + k);
  return count;
}
uint32_t equal_words_mask(const uint8_t* first, const uint8_t* second) {
  uint32_t mask = 0;
  for (uint32_t k = 0; k < kWordsPerLine; k++)
    mask |= uint32_t(are_words_equal(first + k * kWordBytes, second + k * kWordBytes)) << k;
  return mask;
}

WarpClock& clock_of(BlockClock& block, uint32_t warp) {
  auto& clock = block.warps[warp];
  if (!clock) clock = std::make_unique<WarpClock>();
  return *clock;
}

// Returns the last lane before turn `turn` of the same instruction that writes to the same address; -1: none.
int earlier_writer(const MemoryAccess& t, uint32_t turn) {
  for (uint32_t k = turn; k--;)
    if (t.addresses[t.lane_order[k]] == t.addresses[t.lane_order[turn]]) return t.lane_order[k];
  return -1;
}

// Whether all 32 lanes read or write consecutive elements from the beginning of a line.
bool are_whole_lines(const WarpContext& warp, const MemoryAccess& t) {
  if (!t.contiguous || t.kind == AccessKind::Atomic || (t.bytes != 4 && t.bytes != 8 && t.bytes != 16)) return false;
  const uint8_t* first = t.addresses[0];
  return (is_shared(warp, first) ? static_cast<uint64_t>(first - warp.shared) : reinterpret_cast<uint64_t>(first)) %
             kLineBytes ==
         0;
}

bool has_known_values(const MemoryAccess& t) {
  return t.kind == AccessKind::Read || (t.values.count && (t.kind == AccessKind::Write || t.bytes <= 8));
}

// Returns what the accesses of all lanes have in common, in parts of at most 8 bytes.
RecordedAccess recorded_access(const Instruction& i, const MemoryAccess& t) {
  RecordedAccess access;
  access.strong = t.is_strong();
  access.value_is_used = t.kind == AccessKind::Read || (t.kind == AccessKind::Atomic && t.returns_old && !i.result_unused);
  const bool is_loop = is_update_loop(i, t), is_vector = t.kind == AccessKind::Write && t.values.count;
  if (has_known_values(t)) access.operation = is_loop ? i.update : t.operation, access.type = is_loop ? i.update_type : t.type;
  access.bytes = static_cast<uint8_t>(std::min(is_vector ? t.bytes / t.values.count : t.bytes, 8u));
  return access;
}

}  // namespace

OrderProver::OrderProver(StreamOrder& order, DeviceMemory& memory, uint64_t capacity, LaunchReport* report)
    : stream_order_(order),
      memory_(memory),
      order_(order),
      phases_(order_, *this),
      shadow_(capacity),
      report_(report),
      histories_(order_) {}

void OrderProver::begin_operation(StreamOrder::Operation operation) {
  operation_ = operation;
  stream_order_.set_current(operation);
  order_.begin_operation();
  ranges_[0] = ranges_[1] = Range();
  findings_.clear();
  // If all operations are before the current one, their accesses do not matter any more.
  if ((full_ || shadow_.used() > shadow_.capacity() / 2) && stream_order_.are_all_before_current())
    shadow_.clear(), full_ = false;
  if (full_) on_unproved(UnprovedReason::CheckMemoryFull, 0, 0);
}

void OrderProver::on_launch_begin(const Launch& launch) {
  begin_operation(launch.operation);
  blocks_.clear(), entered_.clear(), regions_.clear(), kernel_ = launch.program;
  enter_function(*launch.program);
  const uint64_t threads = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2] * launch.threads_per_block();
  // Accesses of other operations are not in the histories.
  histories_.begin_launch(threads <= kMaxExploredThreads && stream_order_.are_all_before_current());
}

void OrderProver::on_unproved(UnprovedReason reason, uint32_t position, uint32_t other_position) {
  const bool is_conflict = reason == UnprovedReason::Race || reason == UnprovedReason::MemoryOrder ||
                           reason == UnprovedReason::OldValue || reason == UnprovedReason::Rounding ||
                           reason == UnprovedReason::HalfSum;
  bool is_kept = is_conflict && histories_.are_kept();
  const uint64_t first = current_address_ / kLocationBytes, last = (current_address_ + current_bytes_ - 1) / kLocationBytes;
  for (uint64_t number = first; is_kept && number <= last; number++)
    is_kept = histories_.keep_conflict({current_space_, number}, reason_name(reason), position, other_position);
  if (!is_kept) findings_.add(reason_name(reason), position, other_position);
}

void OrderProver::on_function_entry(const WarpContext& warp, const DecodedFunction& function) {
  blocks_.of(warp).unspecified[warp.warp].own_memory().begin_call(warp);
  enter_function(function);
}

void OrderProver::enter_function(const DecodedFunction& function) {
  if (!entered_.insert(&function).second) return;
  if (!function.is_provable) on_unproved(UnprovedReason::NotAnalyzable, 0, 0);
  for (const Instruction& i : function.code)
    if (i.schedule_source != ScheduleSource::None && i.schedule_source != ScheduleSource::StaleRead && !i.result_unused)
      on_schedule_source(i, i.schedule_source);
}

void OrderProver::on_schedule_source(const Instruction& i, ScheduleSource source) {
  findings_.add(source_name(source), i.position, 0);
}

// An unspecified value ends the proof if it is used, or at once where it cannot be followed.
void OrderProver::on_shuffle(const WarpContext& warp, const Instruction& i, const ShuffleSources& sources) {
  if (kernel_->flows.empty() || !kernel_->contains(i)) return on_schedule_source(i, ScheduleSource::InactiveLane);
  blocks_.of(warp).unspecified[warp.warp].shuffle(*kernel_, i, warp.active_mask, sources);
}

void OrderProver::on_instruction(const WarpContext& warp, const Instruction& i, uint32_t group_mask) {
  const auto* origin = blocks_.of(warp).unspecified[warp.warp].step(*kernel_, warp, i, group_mask, regions_);
  if (origin) report_unspecified(*origin, i.position);
}

void OrderProver::report_unspecified(const UnspecifiedValues::Origin& origin, uint32_t position) {
  const bool is_load = origin.kind == UnspecifiedValues::Origin::Load;
  findings_.add(is_load ? reason_name(UnprovedReason::Uninitialized) : source_name(ScheduleSource::InactiveLane),
                origin.position, position);
}

// A barrier of only some of the block's threads orders nothing, since the schedule may decide which threads these are.
void OrderProver::on_block_barrier(const WarpContext& warp, bool all_threads) {
  if (all_threads) blocks_.of(warp).epoch++;
}

void OrderProver::on_warp_sync(const WarpContext& warp, uint32_t mask) {
  clock_of(blocks_.of(warp), warp.warp).synchronize(mask);
}

// Orders the active lanes' instruction before the next instruction of all lanes that are converged with them.
void OrderProver::step_in_lockstep(const WarpContext& warp) {
  const Convergence& convergence = *warp.convergence;
  WarpClock& clock = clock_of(blocks_.of(warp), warp.warp);
  if (convergence.lanes_converged_with(warp.active_mask) == convergence.live && !convergence.exited_diverged) {
    clock.lockstep_clock = ++clock.clock;
    return;
  }
  for (uint32_t remaining = warp.active_mask; remaining;) {
    const uint32_t converged = convergence.lanes_converged_with(remaining);
    clock.synchronize(converged);
    remaining &= ~converged;
  }
}

// Called for the first access of an operation to an allocation.
void OrderProver::check_allocation(uint64_t begin) {
  auto entry = allocations_.find(begin);
  if (entry == allocations_.end() || stream_order_.is_before_current(entry->second)) return;
  findings_.add(reason_name(UnprovedReason::AllocationOrder), 0, 0);
}

bool OrderProver::find_global(uint8_t* pointer, ShadowLocation& location) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  if (!recent_->contains(address)) recent_ = recent_ == ranges_ ? ranges_ + 1 : ranges_;
  if (!recent_->contains(address)) {
    const Allocation allocation = memory_.find(address);
    if (!allocation.end) return false;
    *recent_ = {allocation.begin, allocation.end, memory_.written_map(allocation)};
    check_allocation(allocation.begin);
  }
  location.line = shadow_.line(pointer);
  location.offset = address % kLineBytes;
  location.written = recent_->written + (address - recent_->begin);
  location.space = 0, location.address = address;
  if (!location.line) full_ = true, on_unproved(UnprovedReason::CheckMemoryFull, 0, 0);
  return location.line != nullptr;
}

bool OrderProver::find(const WarpContext& warp, BlockClock& block, uint8_t* address, ShadowLocation& location) {
  if (!is_shared(warp, address)) return find_global(address, location);
  const size_t offset = static_cast<size_t>(address - warp.shared);
  location.line = &block.shared[offset / kLineBytes], location.offset = static_cast<uint32_t>(offset % kLineBytes);
  location.written = {block.shared_written.data(), offset};
  location.space = warp.block + 1, location.address = offset;
  return true;
}

LaneAccess OrderProver::describe(const Instruction& i, const MemoryAccess& t) const {
  LaneAccess access;
  access.position = i.position, access.strong = t.is_strong();
  access.reads = t.kind != AccessKind::Write && !(t.kind == AccessKind::Read && i.result_unused);
  access.non_coherent = i.schedule_source == ScheduleSource::StaleRead;
  if (t.kind == AccessKind::Read) return access;
  access.kind = t.values.count ? PhaseKind::WritesOfOneValue : PhaseKind::SingleAccess;
  if (t.kind == AccessKind::Write) return access;
  const bool updates = i.update != AtomicOperation::None && t.operation == AtomicOperation::CompareAndSwap;
  const AtomicOperation operation = updates ? i.update : t.operation;
  const ValueType type = updates ? i.update_type : t.type;
  access.uses_old_value = t.returns_old && !i.result_unused;
  access.family = {operation, is_typed(operation, type) ? type : ValueType::Unsigned, static_cast<uint8_t>(t.bytes), 0,
                   i.block_scope};
  access.kind = PhaseKind::CommutingUpdates;
  if (access.uses_old_value || operation == AtomicOperation::None || operation == AtomicOperation::CompareAndSwap ||
      type == ValueType::Half || !t.values.count)
    access.kind = PhaseKind::SingleAccess;
  else if (operation == AtomicOperation::Exchange) access.kind = PhaseKind::WritesOfOneValue, access.reads = false;
  return access;
}

void OrderProver::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  if (t.kind == AccessKind::Read && i.result_unused) return;
  observe(warp, blocks_.of(warp), i, t);
  if (warp.convergence) step_in_lockstep(warp);
}

void OrderProver::on_local_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  BlockClock& block = blocks_.of(warp);
  for (uint32_t k = 0; k < t.count; k++) access_own_memory(warp, block, i, t, t.lane_order[k]);
}

void OrderProver::access_own_memory(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t,
                                    uint32_t lane) {
  if (t.kind == AccessKind::Read && i.result_unused) return;
  if (!block.unspecified[warp.warp].access_own_memory(*kernel_, warp, i, t, lane))
    on_unproved(UnprovedReason::Uninitialized, i.position, 0);
}

void OrderProver::observe(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t) {
  const WarpClock* clock = block.warps[warp.warp].get();
  Accessor now;
  now.operation = operation_, now.block = warp.block, now.epoch = block.epoch, now.clock = clock ? clock->clock : 0;
  now.lockstep_clock = clock ? clock->lockstep_clock : 0;
  now.warp = static_cast<uint16_t>(warp.warp);
  LaneAccess access = describe(i, t);
  if (histories_.are_kept()) keep_history(warp, block, i, t, now);
  if (access_lines(warp, block, i, t, now, access)) return;
  const bool is_update = is_word_update(t, access);
  for (uint32_t k = 0; k < t.count; k++) {
    const uint32_t lane = t.lane_order[k];
    if (is_update && join_updates(warp, block, t, now, access, lane)) continue;
    now.lane = static_cast<uint8_t>(lane);
    now.synchronized = clock ? clock->known[lane] : nullptr;
    access_lane(warp, block, i, t, now, access, k);
  }
}

// Adds the lanes' accesses to the histories of their locations.
void OrderProver::keep_history(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t,
                               Accessor now) {
  const bool is_loop = is_update_loop(i, t), is_known = has_known_values(t);
  const WarpClock* clock = block.warps[warp.warp].get();
  const UnspecifiedValues& unspecified = block.unspecified[warp.warp];
  RecordedAccess access = recorded_access(i, t);
  const uint32_t part = access.bytes;
  for (uint32_t k = 0; k < t.count; k++) {
    const uint32_t lane = t.lane_order[k];
    now.lane = static_cast<uint8_t>(lane);
    now.synchronized = clock ? clock->known[lane] : nullptr;
    uint8_t value[16] = {}, expected[16] = {};
    if (t.values.count) gather(is_loop ? update_operand(warp, i, t) : t.values, lane, t.bytes, value);
    if (t.expected.count) gather(t.expected, lane, t.bytes, expected);
    // An atomic without an operation is unknown.
    const bool is_specified = t.kind != AccessKind::Write || !unspecified.unspecified_parts(warp, t.values, lane);
    access.kind = is_known && is_specified ? t.kind : AccessKind::Atomic;
    for (uint32_t offset = 0; offset < t.bytes; offset += part) {
      access.operand = value_at(value + offset, part), access.expected = value_at(expected + offset, part);
      keep_access(warp, block, t.addresses[lane] + offset, access, now, i, is_loop);
    }
  }
}

void OrderProver::keep_access(const WarpContext& warp, BlockClock& block, uint8_t* address, RecordedAccess access,
                              const Accessor& now, const Instruction& i, bool is_loop) {
  ShadowLocation location;
  if (!find(warp, block, address, location)) return;
  access.in_shared = location.space != 0;
  if (i.block_scope && !access.in_shared) access.operation = AtomicOperation::None;  // other blocks may divide it: unknown
  access.offset = location.address % kLocationBytes;
  const uint64_t end = access.in_shared ? warp.shared_bytes : recent_->end;
  LocationState state;
  for (uint32_t k = 0; k < kLocationBytes && location.address - access.offset + k < end; k++) {
    state.value |= uint64_t(address[int(k) - access.offset]) << 8 * k;
    const WrittenBytes written{location.written.bits, location.written.first + k - access.offset};
    if (all_written(written, 1)) state.written |= static_cast<uint8_t>(1u << k);
  }
  histories_.add({location.space, location.address / kLocationBytes}, state, access, now, is_loop);
}

void OrderProver::set_current(const ShadowLocation& location, uint32_t bytes) {
  current_space_ = location.space, current_address_ = location.address, current_bytes_ = bytes;
}

// Adds a lane's update of a word that several blocks update.  Returns false, and does nothing, in other cases.
bool OrderProver::join_updates(const WarpContext& warp, BlockClock& block, const MemoryAccess& t, const Accessor& now,
                               LaneAccess& access, uint32_t lane) {
  ShadowLocation location;
  if (!find(warp, block, t.addresses[lane], location) || !location.line->words) return false;
  ShadowWord& word = location.line->words[location.offset / kWordBytes];
  if (word.bytes || !all_written(location.written, kWordBytes)) return false;
  if (is_float_sum(access.family)) access.operand = value_at(t.values.parts[0] + lane * t.values.stride, kWordBytes);
  set_current(location, kWordBytes);
  return phases_.join_unordered_updates(word.whole, now, access);
}

// Adds the access of the lane whose turn it is.
void OrderProver::access_lane(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t,
                              const Accessor& now, LaneAccess access, uint32_t turn) {
  const uint32_t lane = t.lane_order[turn];
  uint8_t* const address = t.addresses[lane];
  ShadowLocation location;
  if (!find(warp, block, address, location)) return access_own_memory(warp, block, i, t, lane);
  access.in_shared = location.space != 0;
  uint8_t value[16], earlier_value[16];
  const uint8_t* current = address;
  if (t.kind != AccessKind::Read && t.values.count) gather(t.values, lane, t.bytes, value);
  if (access.kind == PhaseKind::WritesOfOneValue) {
    const int earlier_lane = earlier_writer(t, turn);
    if (earlier_lane >= 0)
      gather(t.values, static_cast<uint32_t>(earlier_lane), t.bytes, earlier_value), current = earlier_value;
  }
  if (t.kind == AccessKind::Atomic && t.values.count && !describe_atomic(warp, i, t, lane, location.written, access, value))
    return;
  if (t.kind == AccessKind::Write) {
    const UnspecifiedValues& values = block.unspecified[warp.warp];
    const uint32_t parts = values.unspecified_parts(warp, t.values, lane);  // a mask of the stored registers
    if (parts && is_shared(warp, address))
      return store_unspecified(location, now, access, parts, t.values.part_bytes(t.bytes), current, t.bytes);
    if (parts) report_unspecified(values.origin(), i.position);
  }
  if (t.kind == AccessKind::Read) access.tracks_unwritten_bytes = follow_unwritten(warp, i, lane, 0, location.written, t.bytes);
  access_element(location, now, access, current, t.bytes, value);
}

// Completes the description of a lane's atomic, and replaces the stored value by the operand of an update loop.  Returns false for a
// compare-and-swap of such a loop that fails, which does nothing.
bool OrderProver::describe_atomic(const WarpContext& warp, const Instruction& i, const MemoryAccess& t, uint32_t lane,
                                  WrittenBytes written, LaneAccess& access, uint8_t* value) {
  uint8_t expected_bytes[8] = {};
  if (t.expected.count) gather(t.expected, lane, t.bytes, expected_bytes);
  const uint64_t expected = value_at(expected_bytes, t.bytes), old = value_at(t.addresses[lane], t.bytes),
                 operand = value_at(value, t.bytes);
  const bool is_update = is_update_loop(i, t);
  if (is_update && old != expected) return false;
  access.silent = all_written(written, t.bytes) && access.kind != PhaseKind::WritesOfOneValue &&
                  is_silent(t.operation, t.type, t.bytes, old, operand, expected);
  if (is_update) {
    gather(update_operand(warp, i, t), lane, t.bytes, value);
    if (access.kind == PhaseKind::CommutingUpdates) on_rule(Rule::UpdateLoop);
  }
  const bool is_bounded_counter = t.operation == AtomicOperation::Increment || t.operation == AtomicOperation::Decrement;
  if (is_bounded_counter || is_float_sum(access.family)) access.operand = value_at(value, t.bytes);
  return true;
}

// Follows what a lane's load reads of bytes that nothing has written, from byte `begin` of its value on.  Returns whether it can.
bool OrderProver::follow_unwritten(const WarpContext& warp, const Instruction& i, uint32_t lane, uint32_t begin,
                                   WrittenBytes written, uint32_t bytes) {
  if (all_written(written, bytes)) return true;
  UnspecifiedValues& values = blocks_.of(warp).unspecified[warp.warp];
  bool is_followed = true;
  for (uint32_t part = 0; part < bytes; part += kWordBytes) {
    const uint32_t part_bytes = std::min(kWordBytes, bytes - part);
    if (!all_written(written + part, part_bytes)) is_followed &= values.load(*kernel_, i, lane, begin + part, part_bytes);
  }
  return is_followed;
}

// Adds a store to shared memory of which some registers are unspecified: no access may be unordered with it, and their bytes count
// as not written.
void OrderProver::store_unspecified(const ShadowLocation& location, const Accessor& now, LaneAccess access, uint32_t parts,
                                    uint32_t part_bytes, const uint8_t* current, uint32_t bytes) {
  access.kind = PhaseKind::SingleAccess;
  access_element(location, now, access, current, bytes, nullptr);
  for (uint32_t part = 0; part * part_bytes < bytes; part++)
    if (parts >> part & 1) set_unwritten(location.written + part * part_bytes, part_bytes);
}

// Adds one lane's access, word by word.  current: the bytes before it.
void OrderProver::access_element(const ShadowLocation& location, const Accessor& now, LaneAccess access, const uint8_t* current,
                                 uint32_t bytes, const uint8_t* value) {
  set_current(location, bytes);
  const bool initialized = all_written(location.written, bytes);
  if (access.reads && !initialized && !access.tracks_unwritten_bytes)
    on_unproved(UnprovedReason::Uninitialized, access.position, 0);
  const bool is_sum = access.kind == PhaseKind::CommutingUpdates && is_float_sum(access.family);
  for (uint32_t offset = 0; offset < bytes;) {
    const uint32_t word_bytes = std::min(kWordBytes - (location.offset + offset) % kWordBytes, bytes - offset);
    if (access.kind == PhaseKind::WritesOfOneValue)
      access.silent = initialized && !std::memcmp(current + offset, value + offset, word_bytes);
    access.family.offset = static_cast<uint8_t>(offset);
    if (is_sum && offset) access.operand = 0;  // of a double the operand is kept with the first word
    access_word(location, location.offset + offset, word_bytes, now, access, current);
    offset += word_bytes;
  }
  if (access.kind != PhaseKind::UnchangedValue) set_written(location.written, bytes);
}

void OrderProver::access_word(const ShadowLocation& location, uint32_t offset, uint32_t bytes, const Accessor& now,
                              LaneAccess access, const uint8_t* start) {
  ShadowWord* words = shadow_.words(*location.line);
  ShadowWord* word = words ? &words[offset / kWordBytes] : nullptr;
  if (word && word->bytes && bytes == kWordBytes) shadow_.restore_word(*word, now, order_);
  if (word && !word->bytes && bytes == kWordBytes) return phases_.access(word->whole, now, access, start);
  WordPhase* parts = word ? shadow_.bytes(*word) : nullptr;
  if (!parts) return full_ = true, on_unproved(UnprovedReason::CheckMemoryFull, access.position, 0);
  // Updates join each other only as whole words.
  if (access.kind == PhaseKind::CommutingUpdates) access.kind = PhaseKind::SingleAccess;
  for (uint32_t k = 0; k < bytes; k++) phases_.access(parts[offset % kWordBytes + k], now, access, start);
}

// Adds an access of all 32 lanes to consecutive elements from the beginning of a line, the most common case.  Returns false, and
// does nothing, in other cases.  It may change `now` and `access` if it returns true.
bool OrderProver::access_lines(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t,
                               Accessor& now, LaneAccess& access) {
  const bool may_be_unspecified = t.kind == AccessKind::Write && !block.unspecified[warp.warp].empty();
  if (may_be_unspecified || !are_whole_lines(warp, t)) return false;
  uint8_t* const first_address = t.addresses[0];
  const uint32_t lines = t.bytes / kWordBytes, shift = static_cast<uint32_t>(__builtin_ctz(lines));
  if (access.kind != PhaseKind::WritesOfOneValue && access.kind != PhaseKind::UnchangedValue) return false;
  uint8_t gathered[16 * kWarpSize];
  const bool is_contiguous = t.values.count == 1 && t.values.stride == t.bytes;  // of registers, in the layout of memory
  const uint8_t* const value = is_contiguous ? t.values.parts[0] : gathered;
  if (access.kind == PhaseKind::WritesOfOneValue && !is_contiguous)
    for (uint32_t l = 0; l < kWarpSize; l++) gather(t.values, l, t.bytes, gathered + l * t.bytes);
  for (uint32_t k = 0; k < lines; k++) {
    ShadowLocation location;
    uint8_t* const address = first_address + k * kLineBytes;
    if (!find(warp, block, address, location)) return k > 0;  // own memory, or too little memory for shadows
    access.in_shared = location.space != 0;
    now.pattern = line_pattern(shift, k), now.lane = lane_of_word(now.pattern, 0);
    const uint8_t* line_value = value + k * kLineBytes;
    if (access_line(location, now, access, address, line_value)) continue;
    Accessor lane = now;
    const WarpClock* clock = block.warps[warp.warp].get();
    for (uint32_t offset = 0; offset < kLineBytes; offset += kWordBytes) {
      lane.pattern = 0, lane.lane = lane_of_word(now.pattern, offset / kWordBytes);
      lane.synchronized = clock ? clock->known[lane.lane] : nullptr;
      const ShadowLocation at_word = location + offset;
      if (t.kind == AccessKind::Read)
        access.tracks_unwritten_bytes =
            follow_unwritten(warp, i, lane.lane, k * kLineBytes + offset - lane.lane * t.bytes, at_word.written, kWordBytes);
      access_element(at_word, lane, access, address + offset, kWordBytes, line_value + offset);
    }
  }
  if (!is_shared(warp, first_address)) prefetch_next(i, reinterpret_cast<uint64_t>(first_address));
  return true;
}

// Prefetches what is needed for the warp's next access in a loop of constant stride: the processor does not recognize the stride
// among the accesses of the device's code.
void OrderProver::prefetch_next(const Instruction& i, uint64_t address) {
  Visit& visit = visits_[reinterpret_cast<uint64_t>(&i) / sizeof(Instruction) % kVisits];
  const uint64_t next = address + (address - visit.address);
  if (visit.instruction == &i && recent_->contains(next)) {
    shadow_.prefetch(next);
    __builtin_prefetch(reinterpret_cast<const void*>(next));
    if (recent_->written) __builtin_prefetch(recent_->written.bits + (recent_->written.first + next - recent_->begin) / 8, 1);
  }
  visit = {&i, address};
}

// Adds an access of all lanes to a whole line, as the access of the first lane.  Returns false, and does nothing, if the lanes
// have to be treated one by one.
bool OrderProver::access_line(const ShadowLocation& location, const Accessor& now, LaneAccess& access, const uint8_t* address,
                              const uint8_t* value) {
  ShadowLine& line = *location.line;
  if (line.words && !shadow_.restore_line(line, now, order_)) return false;
  if (!ShadowMemory::stays_whole(line, now)) return false;
  const WrittenLine written = written_of_line(location.written);
  const bool initialized = written == WrittenLine::All;
  if (written == WrittenLine::Some || (!initialized && access.reads)) return false;
  if (line.unchanged_words && !order_.is_before(line.whole.current, now)) return false;
  const uint32_t equal_words =
      access.kind == PhaseKind::WritesOfOneValue && initialized ? count_equal_words(address, value) : 0;
  access.silent = equal_words == kWordsPerLine;
  const bool is_partly_unchanged = equal_words && !access.silent;
  // The words begin phases of different kinds, unless some can join the current one.
  if (is_partly_unchanged && !phases_.is_over(line.whole, now, access)) return false;
  set_current(location, kLineBytes);
  if (phases_.access(line.whole, now, access))
    line.unchanged_words = is_partly_unchanged ? equal_words_mask(address, value) : 0;
  if (access.kind != PhaseKind::UnchangedValue) set_written(location.written, kLineBytes);
  return true;
}

void OrderProver::on_launch_end(const Launch& launch, const LaunchResult& result) {
  histories_.end_launch(findings_);
  if (result.fault != KernelFault::None) on_unproved(UnprovedReason::Fault, 0, 0);
  verdict_ = findings_.json();
  if (!report_) findings_.print(launch.program->name);
  findings_.clear();
}

}  // namespace vgpu
