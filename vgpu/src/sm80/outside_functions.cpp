// vprintf, malloc, free and assertions, called from machine code.
#include "outside_functions.h"

#include <cstdio>

#include "core/instruction_set.h"
#include "families/operands.h"
#include "launch_bank.h"

namespace vgpu::sm80 {
namespace {

using Function = void (*)(WarpContext& warp, const Instruction& i);

// Returns a 64-bit argument that begins at register `number` of the arguments.
uint64_t argument(WarpContext& warp, const Instruction& i, uint32_t lane, uint32_t number = 0) {
  return pair_of(lane_words(warp, i.b) + number * kWarpSize, lane);
}

// Returns the host address of a generic address, which may lie in the lane's local memory.
uint64_t to_host(const WarpContext& warp, uint32_t lane, uint64_t address) {
  const uint64_t offset = address - kLocalWindowBegin;
  if (offset >= warp.local_bytes) return address;
  return reinterpret_cast<uint64_t>(warp.local + size_t(lane) * warp.local_bytes) + offset;
}

void write_result(WarpContext& warp, const Instruction& i, uint32_t lane, uint64_t value) {
  uint32_t* d = lane_words(warp, i.d);
  d[lane] = static_cast<uint32_t>(value), d[lane + kWarpSize] = static_cast<uint32_t>(value >> 32);
}

void allocate(WarpContext& warp, const Instruction& i) {
  notify_schedule_source(warp, i, ScheduleSource::Heap);
  for_each_in_schedule_order(warp,
                             [&](uint32_t lane) { write_result(warp, i, lane, warp.heap->allocate(argument(warp, i, lane))); });
}
void deallocate(WarpContext& warp, const Instruction& i) {
  notify_schedule_source(warp, i, ScheduleSource::Heap);
  if (warp.deferred) warp.deferred->settle_all();  // deferred atomics may access this memory
  for_each_in_schedule_order(warp, [&](uint32_t lane) {
    const uint64_t address = argument(warp, i, lane);
    if (address && !warp.heap->deallocate(address)) warp.set_fault(KernelFault::OutOfBounds, address);
  });
}

void print(WarpContext& warp, const Instruction& i) {
  notify_schedule_source(warp, i, ScheduleSource::Print);
  for_each_in_schedule_order(warp, [&](uint32_t lane) {
    const int32_t fields = print_formatted(warp, lane, argument(warp, i, lane), argument(warp, i, lane, 2), to_host);
    lane_words(warp, i.d)[lane] = static_cast<uint32_t>(fields);
  });
}

// Arguments: message, file, line.
void fail_assertion(WarpContext& warp, const Instruction& i) {
  const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(warp.active_mask));
  const std::string message = read_text(warp, lane, argument(warp, i, lane), to_host);
  const std::string file = read_text(warp, lane, argument(warp, i, lane, 2), to_host);
  const uint32_t line = lane_words(warp, i.b)[4 * kWarpSize + lane];
  std::fprintf(stderr, "%s:%u: assertion `%s` failed\n", file.c_str(), line, message.c_str());
  warp.set_fault(KernelFault::Assertion, 0);
}

struct OutsideFunction {
  const char* name;
  Function run;
};
constexpr OutsideFunction kFunctions[] = {
    {"vprintf", print}, {"__assertfail", fail_assertion}, {"malloc", allocate}, {"free", deallocate}};
constexpr uint64_t kStep = 16;  // between their addresses

}  // namespace

uint64_t outside_address(const std::string& name) {
  for (size_t k = 0; k < std::size(kFunctions); k++)
    if (name == kFunctions[k].name) return kOutsideBegin + k * kStep;
  return 0;
}

void call_outside(WarpContext& warp, const Instruction& i) {
  const uint32_t active = warp.active_mask;
  for (uint32_t remaining = active; remaining && warp.fault == KernelFault::None;) {
    const uint64_t address = pair_of(lane_words(warp, i.a), static_cast<uint32_t>(__builtin_ctz(remaining)));
    const uint32_t same = remaining & lanes_where([&](uint32_t l) { return pair_of(lane_words(warp, i.a), l) == address; });
    const uint64_t index = (address - kOutsideBegin) / kStep;
    remaining &= ~same;
    warp.active_mask = same;
    if (address < kOutsideBegin || index >= std::size(kFunctions)) warp.set_fault(KernelFault::IllegalInstruction, address);
    else kFunctions[index].run(warp, i);
  }
  warp.active_mask = active;
}

}  // namespace vgpu::sm80
