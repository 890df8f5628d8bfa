#include "outside_functions.h"

#include <cstdio>

#include "core/instruction_set.h"
#include "families/operands.h"
#include "launch_bank.h"

namespace vgpu::sm80 {
namespace {

using Function = void (*)(WarpContext& w, const Instruction& i);

// An argument of 64 bits, whose first register is `number` registers behind the first one of all.
uint64_t argument(WarpContext& w, const Instruction& i, uint32_t lane, uint32_t number = 0) {
  return pair_of(words(w, i.b) + number * kWarpSize, lane);
}

uint64_t to_host(const WarpContext& w, uint32_t lane, uint64_t address) {
  const uint64_t offset = address - kLocalWindowBegin;
  if (offset >= w.local_bytes) return address;
  return reinterpret_cast<uint64_t>(w.local + size_t(lane) * w.local_bytes) + offset;
}

void write_result(WarpContext& w, const Instruction& i, uint32_t lane, uint64_t value) {
  uint32_t* d = words(w, i.d);
  d[lane] = static_cast<uint32_t>(value), d[lane + kWarpSize] = static_cast<uint32_t>(value >> 32);
}

void allocate(WarpContext& w, const Instruction& i) {
  for_each_in_schedule_order(w, [&](uint32_t lane) { write_result(w, i, lane, w.heap->allocate(argument(w, i, lane))); });
}
void deallocate(WarpContext& w, const Instruction& i) {
  if (w.deferred) w.deferred->settle_all();  // what comes late may come to this memory
  for_each_in_schedule_order(w, [&](uint32_t lane) {
    const uint64_t at = argument(w, i, lane);
    if (at && !w.heap->deallocate(at)) w.set_fault(KernelFault::OutOfBounds, at);
  });
}

void print(WarpContext& w, const Instruction& i) {
  for_each_in_schedule_order(w, [&](uint32_t lane) {
    const int32_t fields = print_formatted(w, lane, argument(w, i, lane), argument(w, i, lane, 2), to_host);
    words(w, i.d)[lane] = static_cast<uint32_t>(fields);
  });
}

// Message, file, line.
void fail_assertion(WarpContext& w, const Instruction& i) {
  const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(w.active_mask));
  const std::string message = read_text(w, lane, argument(w, i, lane), to_host);
  const std::string file = read_text(w, lane, argument(w, i, lane, 2), to_host);
  const uint32_t line = words(w, i.b)[4 * kWarpSize + lane];
  std::fprintf(stderr, "%s:%u: assertion `%s` failed\n", file.c_str(), line, message.c_str());
  w.set_fault(KernelFault::Assertion, 0);
}

struct Outside {
  const char* name;
  Function run;
};
constexpr Outside kFunctions[] = {
    {"vprintf", print}, {"__assertfail", fail_assertion}, {"malloc", allocate}, {"free", deallocate}};
constexpr uint64_t kStep = 16;  // of their addresses

}  // namespace

uint64_t outside_address(const std::string& name) {
  for (size_t k = 0; k < std::size(kFunctions); k++)
    if (name == kFunctions[k].name) return kOutsideBegin + k * kStep;
  return 0;
}

void call_outside(WarpContext& w, const Instruction& i) {
  const uint32_t all = w.active_mask;
  for (uint32_t left = all; left && w.fault == KernelFault::None;) {
    const uint64_t address = pair_of(words(w, i.a), static_cast<uint32_t>(__builtin_ctz(left)));
    const uint32_t same = left & lanes_where([&](uint32_t l) { return pair_of(words(w, i.a), l) == address; });
    const uint64_t which = (address - kOutsideBegin) / kStep;
    left &= ~same;
    w.active_mask = same;
    if (address < kOutsideBegin || which >= std::size(kFunctions)) w.set_fault(KernelFault::IllegalInstruction, address);
    else kFunctions[which].run(w, i);
  }
  w.active_mask = all;
}

}  // namespace vgpu::sm80
