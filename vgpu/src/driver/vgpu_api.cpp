// What a program may ask of the virtual GPU itself; no driver has these.
#include <stdexcept>

#include "api.h"
#include "core/error.h"
#include "sm80/decoded.h"
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
// The kinds of code that launches ran so far, as VGPU_CODE names them, one a line; valid until this thread's next call.
API const char* vgpu_codes() {
  thread_local std::string text;
  wait_for_all();
  Device& device = Device::get();
  std::lock_guard<std::mutex> hold(device.lock());
  const size_t of_ptx = device.codes().count("ptx");
  text = of_ptx ? "ptx" : "";
  if (device.codes().size() > of_ptx) text += text.empty() ? "sass" : "\nsass";
  return text.c_str();
}
API uint64_t vgpu_instructions() { return Device::get().instructions(); }
API const char* vgpu_last_error() { return Device::get().last_error_message().c_str(); }

// The text of an encoding of sm_80 at an offset in its function; where no row says what it means, why, behind "?".
API const char* vgpu_sass_text(uint64_t low, uint64_t high, uint32_t offset) {
  thread_local std::string text;
  try {
    text = sm80::to_text(sm80::decode({low, high}, offset));
  } catch (const Unsupported& error) { text = "? " + std::string(error.what()); }
  return text.c_str();
}
