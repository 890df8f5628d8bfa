// The way of an error into a Python program that does not lead through its framework.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>

#include "unsupported_call.h"

namespace vgpu {
namespace {

// Of the interpreter's stable interface; found in the process, for this library knows nothing of Python.
using Pending = int (*)(void*);
using AddPendingCall = int (*)(Pending, void*);
using SetString = void (*)(void*, const char*);

std::atomic<const char*> pending_call{nullptr};  // what no exception was made of yet

int make_exception(void*) {
  const char* call = pending_call.exchange(nullptr);
  auto set_string = reinterpret_cast<SetString>(dlsym(RTLD_DEFAULT, "PyErr_SetString"));
  void** type = static_cast<void**>(dlsym(RTLD_DEFAULT, "PyExc_NotImplementedError"));
  if (!call || !set_string || !type) return 0;
  char text[200];
  std::snprintf(text, sizeof text, "%s is %s", call, kNotSupportedText);
  set_string(*type, text);
  return -1;
}

}  // namespace

bool raise_python_error(const char* call) {
  static const auto add = reinterpret_cast<AddPendingCall>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  static const auto running = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  if (!add || !running || !running()) return false;
  const char* none = nullptr;
  if (!pending_call.compare_exchange_strong(none, call)) return true;  // one exception for all until it is made
  if (add(make_exception, nullptr) == 0) return true;
  pending_call = nullptr;
  return false;
}

}  // namespace vgpu
