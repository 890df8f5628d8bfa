// The observer behind VGPU_CHECK=order: takes accesses apart into words and asks the rules.
#include "prover.h"

#include <algorithm>
#include <cstring>

#include "rules/commuting.h"
#include "rules/silent_atomic.h"
#include "written_bytes.h"

namespace vgpu {
namespace {

// Words by a load of their size: a load of eight bytes behind a store of four waits for the store.
uint64_t value_at(const uint8_t* at, uint32_t bytes) {
  if (bytes == kWordBytes) {
    uint32_t word;
    return std::memcpy(&word, at, kWordBytes), word;
  }
  uint64_t value = 0;
  return std::memcpy(&value, at, std::min(bytes, 8u)), value;
}

// A lane's value, as it lies in memory.
void gather(const RegisterValues& values, uint32_t lane, uint32_t bytes, uint8_t* to) {
  if (values.count == 1 && bytes == kWordBytes) {
    std::memcpy(to, values.parts[0] + lane * values.stride, kWordBytes);
    return;
  }
  const uint32_t part = bytes / values.count;
  for (uint32_t k = 0; k < values.count; k++) std::memcpy(to + k * part, values.parts[k] + lane * values.stride, part);
}

// The operand of a compare-and-swap's update.
RegisterValues update_operand(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  RegisterValues made = t.values;
  for (uint32_t k = 0; k < made.count; k++) made.parts[k] = warp.frame + i.vector_registers[k];
  return made;
}

bool is_typed(AtomicOperation operation, ValueType type) {
  return operation == AtomicOperation::Min || operation == AtomicOperation::Max || type >= ValueType::Float;
}

WarpClock& clock_of(BlockClock& block, uint32_t warp) {
  auto& clock = block.warps[warp];
  if (!clock) clock = std::make_unique<WarpClock>();
  return *clock;
}

// An earlier lane of the same instruction that writes the same place, in the order in which they come.
int earlier_writer(const MemoryAccess& t, uint32_t turn) {
  for (uint32_t k = turn; k--;)
    if (t.addresses[t.lane_order[k]] == t.addresses[t.lane_order[turn]]) return t.lane_order[k];
  return -1;
}

}  // namespace

OrderProver::OrderProver(StreamOrder& order, DeviceMemory& memory, uint64_t capacity, LaunchReport* report)
    : stream_order_(order), memory_(memory), order_(order), phases_(order_, *this), shadow_(capacity), report_(report) {}

void OrderProver::begin_operation(StreamOrder::Operation operation) {
  operation_ = operation;
  stream_order_.set_current(operation);
  order_.begin_operation();
  recent_ = Range();
  findings_.clear();
  // Whatever all operations have done is over for whoever comes from here on.
  if ((full_ || shadow_.used() > shadow_.capacity() / 2) && stream_order_.are_all_before_current())
    shadow_.clear(), full_ = false;
  if (full_) on_unproved(Reason::Capacity, 0, 0);
}

void OrderProver::on_launch_begin(const Launch& launch) {
  begin_operation(launch.operation);
  blocks_.clear(), entered_.clear();
  on_function_entry(*launch.program);
}

void OrderProver::on_function_entry(const DecodedFunction& function) {
  if (!entered_.insert(&function).second) return;
  if (!function.is_provable) on_unproved(Reason::InstructionSet, 0, 0);
  for (const Instruction& i : function.code)
    if (i.source != ScheduleSource::None && i.source != ScheduleSource::StaleRead && !i.result_unused)
      on_schedule_source(i, i.source);
}

void OrderProver::on_schedule_source(const Instruction& i, ScheduleSource source) {
  findings_.add(source_name(source), i.line, 0);
}

// One of some of the block's threads orders nothing, for who meets whom may be a choice.
void OrderProver::on_block_barrier(const WarpContext& warp, bool whole) {
  if (whole) blocks_.of(warp).epoch++;
}

void OrderProver::on_warp_sync(const WarpContext& warp, uint32_t mask) { clock_of(blocks_.of(warp), warp.warp).meet(mask); }

// What the lanes did is before what any lane that is surely with them does next.
void OrderProver::step_in_lockstep(const WarpContext& warp) {
  const Convergence& convergence = *warp.convergence;
  WarpClock& clock = clock_of(blocks_.of(warp), warp.warp);
  if (convergence.mates(warp.active_mask) == convergence.live && !convergence.ended_apart) {
    clock.everyone = ++clock.clock;
    return;
  }
  for (uint32_t left = warp.active_mask; left;) {
    const uint32_t mates = convergence.mates(left);
    clock.meet(mates);
    left &= ~mates;
  }
}

bool OrderProver::find_global(uint8_t* at, Place& place) {
  const uint64_t address = reinterpret_cast<uint64_t>(at);
  if (address < recent_.begin || address >= recent_.end) {
    const Allocation found = memory_.find(address);
    if (!found.end) return false;
    recent_ = {found.begin, found.end, memory_.written_map(found)};
  }
  place.line = shadow_.line(at);
  place.offset = address % kLineBytes;
  place.written = recent_.written ? recent_.written + (address - recent_.begin) : nullptr;
  if (!place.line) full_ = true, on_unproved(Reason::Capacity, 0, 0);
  return place.line != nullptr;
}

bool OrderProver::find(const WarpContext& warp, BlockClock& block, uint8_t* at, Place& place) {
  if (!is_shared(warp, at)) return find_global(at, place);
  const size_t offset = static_cast<size_t>(at - warp.shared);
  place = {&block.shared[offset / kLineBytes], static_cast<uint32_t>(offset % kLineBytes), &block.shared_written[offset]};
  return true;
}

PlaceAccess OrderProver::describe(const Instruction& i, const MemoryAccess& t) const {
  PlaceAccess made;
  made.line = i.line, made.strong = t.strong();
  made.reads = t.kind != AccessKind::Write && !(t.kind == AccessKind::Read && i.result_unused);
  made.non_coherent = i.source == ScheduleSource::StaleRead;
  if (t.kind == AccessKind::Read) return made;
  made.kind = t.values.count ? PhaseKind::Written : PhaseKind::Alone;
  if (t.kind == AccessKind::Write) return made;
  const bool updates = i.update != AtomicOperation::None && t.operation == AtomicOperation::CompareAndSwap;
  const AtomicOperation operation = updates ? i.update : t.operation;
  const ValueType type = updates ? i.update_type : t.type;
  const bool uses_old = t.returns_old && !i.result_unused;
  made.family = {operation, is_typed(operation, type) ? type : ValueType::Unsigned, static_cast<uint8_t>(t.bytes), 0};
  made.kind = PhaseKind::Commuting;
  if (uses_old || operation == AtomicOperation::None || operation == AtomicOperation::CompareAndSwap ||
      type == ValueType::Half || !t.values.count)
    made.kind = PhaseKind::Alone;
  else if (operation == AtomicOperation::Exchange) made.kind = PhaseKind::Written, made.reads = false;
  return made;
}

void OrderProver::on_access(const WarpContext& warp, const Instruction& i, const MemoryAccess& t) {
  if (t.kind == AccessKind::Read && i.result_unused) return;
  observe(warp, blocks_.of(warp), i, t);
  if (warp.convergence) step_in_lockstep(warp);
}

void OrderProver::observe(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t) {
  const WarpClock* clock = block.warps[warp.warp].get();
  Accessor now;
  now.operation = operation_, now.block = warp.block, now.epoch = block.epoch, now.clock = clock ? clock->clock : 0;
  now.everyone = clock ? clock->everyone : 0;
  now.warp = static_cast<uint16_t>(warp.warp);
  const PlaceAccess access = describe(i, t);
  if (access_rows(warp, block, t, now, access)) return;
  for (uint32_t k = 0; k < t.count; k++) {
    const uint32_t lane = t.lane_order[k];
    now.lane = static_cast<uint8_t>(lane);
    now.synchronized = clock ? clock->known[lane] : nullptr;
    access_lane(warp, block, i, t, now, access, k);
  }
}

// By the lane whose turn it is.
void OrderProver::access_lane(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t,
                              const Accessor& now, PlaceAccess access, uint32_t turn) {
  const uint32_t lane = t.lane_order[turn];
  uint8_t* const at = t.addresses[lane];
  Place place;
  if (!find(warp, block, at, place)) return;
  uint8_t value[16], before[16];
  const uint8_t* current = at;
  if (t.kind != AccessKind::Read && t.values.count) gather(t.values, lane, t.bytes, value);
  if (access.kind == PhaseKind::Written) {
    const int earlier = earlier_writer(t, turn);
    if (earlier >= 0) gather(t.values, static_cast<uint32_t>(earlier), t.bytes, before), current = before;
  }
  if (t.kind == AccessKind::Atomic && t.values.count) {
    uint64_t expected = 0;
    if (t.expected.count) {
      uint8_t bytes[8] = {};
      gather(t.expected, lane, t.bytes, bytes), expected = value_at(bytes, t.bytes);
    }
    const uint64_t old = value_at(at, t.bytes), operand = value_at(value, t.bytes);
    const bool initialized = all_written(place.written, t.bytes);
    const bool updates = i.update != AtomicOperation::None && t.expected.count;
    if (updates && old != expected) return;  // a try in vain
    access.silent =
        initialized && access.kind != PhaseKind::Written && is_silent(t.operation, t.type, t.bytes, old, operand, expected);
    if (updates) {
      gather(update_operand(warp, i, t), lane, t.bytes, value);
      if (access.kind == PhaseKind::Commuting) on_rule(Rule::UpdateLoop);
    }
    const bool bounded = t.operation == AtomicOperation::Increment || t.operation == AtomicOperation::Decrement;
    if (bounded || is_float_sum(access.family)) access.operand = value_at(value, t.bytes);
  }
  access_element(place, now, access, current, t.bytes, value);
}

// One lane's access, word by word.  current: what is there before it.
void OrderProver::access_element(const Place& place, const Accessor& now, PlaceAccess access, const uint8_t* current,
                                 uint32_t bytes, const uint8_t* value) {
  const bool initialized = all_written(place.written, bytes);
  if (access.reads && !initialized) on_unproved(Reason::Uninitialized, access.line, 0);
  const bool sums = access.kind == PhaseKind::Commuting && is_float_sum(access.family);
  for (uint32_t done = 0; done < bytes;) {
    const uint32_t some = std::min(kWordBytes - (place.offset + done) % kWordBytes, bytes - done);
    if (access.kind == PhaseKind::Written) access.silent = initialized && !std::memcmp(current + done, value + done, some);
    access.family.offset = static_cast<uint8_t>(done);
    if (sums && done) access.operand = 0;  // of a double the first word stands for both
    access_word(place, place.offset + done, some, now, access, current);
    done += some;
  }
  if (access.kind != PhaseKind::Same) set_written(place.written, bytes);
}

void OrderProver::access_word(const Place& place, uint32_t offset, uint32_t bytes, const Accessor& now, PlaceAccess access,
                              const uint8_t* start) {
  ShadowWord* words = shadow_.words(*place.line);
  ShadowWord* word = words ? &words[offset / kWordBytes] : nullptr;
  if (word && word->bytes && bytes == kWordBytes) shadow_.restore_word(*word, now, order_);
  if (word && !word->bytes && bytes == kWordBytes) return phases_.access(word->whole, now, access, start);
  Phase* parts = word ? shadow_.bytes(*word) : nullptr;
  if (!parts) return full_ = true, on_unproved(Reason::Capacity, access.line, 0);
  if (access.kind == PhaseKind::Commuting) access.kind = PhaseKind::Alone;
  for (uint32_t k = 0; k < bytes; k++) phases_.access(parts[offset % kWordBytes + k], now, access, start);
}

// All 32 lanes one behind the other, from the beginning of a line on: what most kernels do.  false: nothing was done.
bool OrderProver::access_rows(const WarpContext& warp, BlockClock& block, const MemoryAccess& t, Accessor now,
                              PlaceAccess access) {
  if (t.count != kWarpSize || t.kind == AccessKind::Atomic || (t.bytes != 4 && t.bytes != 8 && t.bytes != 16)) return false;
  uint8_t* const first = t.addresses[0];
  if (!is_contiguous(kFullMask, t.addresses, t.bytes)) return false;
  const uint64_t from = is_shared(warp, first) ? static_cast<uint64_t>(first - warp.shared) : reinterpret_cast<uint64_t>(first);
  if (from % kLineBytes) return false;
  const uint32_t lines = t.bytes / kWordBytes, shift = static_cast<uint32_t>(__builtin_ctz(lines));
  uint8_t value[16 * kWarpSize];
  if (access.kind == PhaseKind::Written)
    for (uint32_t l = 0; l < kWarpSize; l++) gather(t.values, l, t.bytes, value + l * t.bytes);
  else if (access.kind != PhaseKind::Same) return false;
  for (uint32_t k = 0; k < lines; k++) {
    Place place;
    uint8_t* const at = first + k * kLineBytes;
    if (!find(warp, block, at, place)) return true;
    now.pattern = row_pattern(shift, k), now.lane = row_lane(now.pattern, 0);
    const uint8_t* given = value + k * kLineBytes;
    if (access_row(place, now, access, at, given)) continue;
    Accessor lane = now;
    const WarpClock* clock = block.warps[warp.warp].get();
    for (uint32_t word = 0; word < kWordsPerLine; word++) {
      lane.pattern = 0, lane.lane = row_lane(now.pattern, word);
      lane.synchronized = clock ? clock->known[lane.lane] : nullptr;
      const uint32_t offset = word * kWordBytes;
      access_element({place.line, offset, place.written ? place.written + offset : nullptr}, lane, access, at + offset,
                     kWordBytes, given + offset);
    }
  }
  return true;
}

// What holds of the first lane holds of all.  false: it is not so, and nothing was done.
bool OrderProver::access_row(const Place& place, const Accessor& now, PlaceAccess& access, const uint8_t* at,
                             const uint8_t* value) {
  ShadowLine& line = *place.line;
  if (line.words && !shadow_.restore_row(line, now, order_)) return false;
  if (!ShadowMemory::keeps_row(line, now)) return false;
  const WrittenLine written = written_of_line(place.written);
  const bool initialized = written == WrittenLine::All;
  if (written == WrittenLine::Some || (!initialized && access.reads)) return false;
  access.silent = false;
  if (access.kind == PhaseKind::Written) {
    uint32_t same = 0;
    for (uint32_t k = 0; k < kWordsPerLine; k++) same += !std::memcmp(at + k * kWordBytes, value + k * kWordBytes, kWordBytes);
    if (same && same != kWordsPerLine && initialized) return false;
    access.silent = initialized && same;
  }
  phases_.access(line.row, now, access, at);
  if (access.kind != PhaseKind::Same) set_written(place.written, kLineBytes);
  return true;
}

void OrderProver::on_launch_end(const Launch& launch, const LaunchResult& outcome) {
  if (outcome.fault != KernelFault::None) on_unproved(Reason::Fault, 0, 0);
  verdict_ = findings_.json();
  if (!report_) findings_.print(launch.program->name.c_str(), launch.program->position);
  findings_.clear();
}

}  // namespace vgpu
