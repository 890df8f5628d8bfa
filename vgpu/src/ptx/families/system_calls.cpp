// vprintf, __assertfail, malloc and free.  A kernel's output is written at once; lanes follow each other in the schedule's
// order.
#include "system_calls.h"

#include <cstdio>
#include <cstring>

#include "address.h"
#include "core/instruction_set.h"

namespace vgpu {
namespace {

// Reads from a lane's scratch space, which holds the arguments and results of the calls it makes.
template <class T> T scratch(const WarpContext& warp, uint32_t lane, uint32_t offset) {
  T value;
  std::memcpy(&value, warp.scratch + size_t(lane) * warp.scratch_bytes + offset, sizeof value);
  return value;
}

// Generic addresses are addresses of this process.
uint64_t same_address(const WarpContext&, uint32_t, uint64_t address) { return address; }

// a, b, d: offsets in the scratch space of the format's address, the arguments' address and the result.
void print(WarpContext& warp, const Instruction& i) {
  for_each_in_schedule_order(warp, [&](uint32_t lane) {
    const int32_t fields =
        print_formatted(warp, lane, scratch<uint64_t>(warp, lane, i.a), scratch<uint64_t>(warp, lane, i.b), same_address);
    if (i.count) std::memcpy(warp.scratch + size_t(lane) * warp.scratch_bytes + i.d, &fields, sizeof fields);
  });
}

// a, b, c: offsets in the scratch space of the message, the file and the line.
void fail_assertion(WarpContext& warp, const Instruction& i) {
  uint32_t lane = static_cast<uint32_t>(__builtin_ctz(warp.active_mask));
  auto text = [&](uint32_t offset) { return read_text(warp, lane, scratch<uint64_t>(warp, lane, offset), same_address); };
  std::string message = text(i.a), file = text(i.b);
  std::fprintf(stderr, "%s:%u: assertion `%s` failed\n", file.c_str(), scratch<uint32_t>(warp, lane, i.c), message.c_str());
  warp.set_fault(KernelFault::Assertion, 0);
}

// a, d: offsets in the scratch space of the number of bytes and of the resulting address.
void device_malloc(WarpContext& warp, const Instruction& i) {
  for_each_in_schedule_order(warp, [&](uint32_t lane) {
    uint64_t address = warp.heap->allocate(scratch<uint64_t>(warp, lane, i.a));
    if (i.count) std::memcpy(warp.scratch + size_t(lane) * warp.scratch_bytes + i.d, &address, sizeof address);
  });
}
void device_free(WarpContext& warp, const Instruction& i) {
  if (warp.deferred) warp.deferred->settle_all();  // deferred atomics may be to this memory
  for_each_in_schedule_order(warp, [&](uint32_t lane) {
    uint64_t address = scratch<uint64_t>(warp, lane, i.a);
    if (address && !warp.heap->deallocate(address)) warp.set_fault(KernelFault::OutOfBounds, address);
  });
}

}  // namespace

bool decode_system_call(const std::string& name, const std::vector<uint32_t>& arguments, const std::vector<uint32_t>& results,
                        Instruction& i) {
  i.kind = InstructionKind::SchedulingPoint;
  i.count = !results.empty();
  if (i.count) i.d = results[0];
  if (name == "vprintf" && arguments.size() == 2) {
    i.execute = print, i.a = arguments[0], i.b = arguments[1];
    i.schedule_source = ScheduleSource::Print;  // why the result depends on the schedule
    return true;
  }
  if (name == "__assertfail" && arguments.size() == 5) {
    i.execute = fail_assertion, i.a = arguments[0], i.b = arguments[1], i.c = arguments[2];
    return true;
  }
  if ((name == "malloc" || name == "free") && arguments.size() == 1) {
    i.execute = name == "free" ? device_free : device_malloc, i.a = arguments[0];
    i.schedule_source = ScheduleSource::Heap;
    return true;
  }
  return false;
}

}  // namespace vgpu
