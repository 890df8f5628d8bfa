#include "fallback.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "driver/settings.h"
#include "driver/streams.h"
#include "vendor_stubs/unsupported_call.h"

namespace vgpu {
namespace {

struct Library {
  std::string_view name;
  int failed, bad;
};
constexpr Library kLibraries[] = {{"cublas", 13, 7}, {"cudnn", 8, 3}};

// An access outside of what was allocated.
struct Outside : std::exception {
  explicit Outside(uint64_t at) : address(at) {}
  uint64_t address;
};

const Library* library_of(std::string_view call) {
  for (const Library& one : kLibraries)
    if (call.substr(0, one.name.size()) == one.name) return &one;
  return nullptr;
}

DeviceMemory& memory_of(uint64_t at, uint64_t bytes) {
  DeviceMemory& memory = Device::get().memory();
  if (!memory.find(at).holds(at, at + bytes)) throw Outside(at);
  return memory;
}

thread_local uint64_t never_written;  // the first such place that the call reads

void tell_never_written(const char* call) {
  const Extent found = Device::get().memory().find(never_written);
  std::fprintf(stderr, "vgpu: never written in %s: a read at byte %llu of allocation %llu\n", call,
               static_cast<unsigned long long>(never_written - found.origin), static_cast<unsigned long long>(found.number));
}

}  // namespace

bool stands_in(const char* call) {
  const Library* library = library_of(call);
  return library && settings().stand_ins.count(std::string(library->name));
}

void reads_columns(const void* at, uint64_t bytes, uint64_t step, uint64_t count) {
  if (!bytes || !count) return;
  const DeviceMemory& memory = memory_of(address(at), (count - 1) * step + bytes);
  for (uint64_t k = 0; k < count && !never_written; k++) never_written = memory.unwritten(address(at) + k * step, bytes);
}
void writes_columns(void* at, uint64_t bytes, uint64_t step, uint64_t count) {
  if (!bytes || !count) return;
  DeviceMemory& memory = memory_of(address(at), (count - 1) * step + bytes);
  for (uint64_t k = 0; k < count; k++) memory.wrote(address(at) + k * step, bytes);
}
void reads(const void* at, uint64_t bytes) { reads_columns(at, bytes, bytes, 1); }
void writes(void* at, uint64_t bytes) { writes_columns(at, bytes, bytes, 1); }

int run_stand_in(const char* call, Off off, void (*f)(void*), void* with) {
  auto refused = [=] { return off == Off::Trial ? refuse(call) : refuse_on_stream(call); };
  if (!stands_in(call)) return refused();
  wait_for_all();  // in its turn: behind what was asked of the streams before
  Device& device = Device::get();
  std::unique_lock<std::mutex> hold(device.lock());
  const Library& library = *library_of(call);
  if (device.sticky() != kSuccess) return library.failed;
  never_written = 0;
  try {
    f(with);
    if (never_written) tell_never_written(call);
    device.stood_in(call);
    return kSuccess;
  } catch (const NotStoodIn&) {
    hold.unlock();
    return refused();
  } catch (const BadArguments&) { return library.bad; } catch (const Outside& error) {
    char text[200];
    std::snprintf(text, sizeof text, "an access outside of what was allocated in %s, address 0x%llx", call,
                  static_cast<unsigned long long>(error.address));
    device.fail(kIllegalAddress, text);
  } catch (const std::exception& error) { device.refuse(std::string(call) + ": " + error.what()); }
  return library.failed;
}

}  // namespace vgpu
