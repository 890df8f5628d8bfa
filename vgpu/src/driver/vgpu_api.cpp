// Functions of the virtual GPU that CUDA does not have.
#include <stdexcept>

#include "api.h"
#include "core/error.h"
#include "sm80/register_use.h"
#include "streams.h"

using namespace vgpu;

// Sets the schedule of all further launches, in the syntax of VGPU_SCHEDULE, and resets their numbers.  Returns 1 if it is invalid.
API int vgpu_set_schedule(const char* text) {
  if (!text) return 1;
  wait_for_all();
  Device& device = Device::get();
  std::lock_guard<std::mutex> guard(device.lock());
  try {
    device.set_schedule(Schedule::parse(text));
  } catch (const std::invalid_argument&) { return 1; }
  return 0;
}
API uint64_t vgpu_launches() { return Device::get().launches(); }
// Returns the kinds of code that launches ran so far, as in VGPU_CODE, one a line; valid until this thread's next call.
API const char* vgpu_codes() {
  thread_local std::string text;
  wait_for_all();
  Device& device = Device::get();
  std::lock_guard<std::mutex> guard(device.lock());
  const size_t ptx_count = device.codes().count("ptx");
  text = ptx_count ? "ptx" : "";
  if (device.codes().size() > ptx_count) text += text.empty() ? "sass" : "\nsass";
  return text.c_str();
}
API uint64_t vgpu_instructions() { return Device::get().instructions(); }
API const char* vgpu_last_error() { return Device::get().last_error_message().c_str(); }

// Disassembles an sm_80 instruction at an offset in its function; returns "? REASON" if it is not known.
API const char* vgpu_sass_text(uint64_t low, uint64_t high, uint32_t offset) {
  thread_local std::string text;
  try {
    text = sm80::to_text(sm80::decode({low, high}, offset));
  } catch (const Unsupported& error) { text = "? " + std::string(error.what()); }
  return text.c_str();
}

// Names the registers that an sm_80 instruction writes and reads, as "= R2 P0 < R4 R5", without "=" if it may read
// fewer or write more; returns "? REASON" if it is not known.
API const char* vgpu_sass_registers(uint64_t low, uint64_t high) {
  thread_local std::string text;
  try {
    text = sm80::to_text(sm80::register_use(sm80::decode({low, high}, 0)));
  } catch (const Unsupported& error) { text = "? " + std::string(error.what()); }
  return text.c_str();
}
