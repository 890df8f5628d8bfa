// What a program may ask of the virtual GPU itself; no driver has these.
#include <stdexcept>

#include "api.h"
#include "streams.h"

using namespace vgpu;

// The schedule of all launches from now on, as VGPU_SCHEDULE names it; their count begins anew.  1: no such schedule.
API int vgpu_set_schedule(const char* text) {
  if (!text) return 1;
  wait_for_all();
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  try {
    device.set_schedule(Schedule::parse(text));
  } catch (const std::invalid_argument&) { return 1; }
  return 0;
}
API uint64_t vgpu_launches() { return Device::get().launches(); }
API uint64_t vgpu_instructions() { return Device::get().instructions(); }
API const char* vgpu_last_error() { return Device::get().last_error_message().c_str(); }
