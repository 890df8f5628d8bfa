// Stand-ins: what closed libraries would compute, computed on the CPU, one element after the other and the same each time.
// Off unless VGPU_STAND_INS names the library: without it the call is refused by its name, as all others are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>

#include "driver/api.h"

namespace vgpu {

// This call is stood in for, but not with these arguments: it is refused.
struct NotStoodIn : std::exception {};
// The library's own word for arguments that make no sense.
struct BadArguments : std::exception {};

// Memory that the call reads or writes, told before it does: the whole of it must lie in one allocation, and what is read
// should have been written.  Columns: `count` of them, `bytes` each, `step` bytes from one to the next.
void reads(const void* at, uint64_t bytes);
void writes(void* at, uint64_t bytes);
void reads_columns(const void* at, uint64_t bytes, uint64_t step, uint64_t count);
void writes_columns(void* at, uint64_t bytes, uint64_t step, uint64_t count);

enum class Off : uint8_t { OnStream, Trial };  // how it is refused where it is off, see refusal.h

// Runs f as the call, in its turn among the launches; its library's status.
int run_stand_in(const char* call, Off off, void (*f)(void*), void* with);

template <class F> int stand_in(const char* call, F f, Off off = Off::OnStream) {
  return run_stand_in(call, off, [](void* with) { (*static_cast<F*>(with))(); }, &f);
}

bool stands_in(const char* call);  // is its library switched on?

}  // namespace vgpu
