// What an instruction sees of the machine: the active lanes of one warp and their registers.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "../isa/special.h"
#include "memory.h"

// Before a loop whose turns do not depend on each other.
#if defined(__clang__)
#define VGPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define VGPU_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace vgpu {

class Heap;
class Holding;
class Observer;
class Schedule;
class TextureObjects;

// How a launch ends that does not end well.
enum class Fault : uint8_t {
  None, OutOfBounds, Misaligned, Trap, Deadlock, NoProgress, CallDepth, ReadOnly, Assertion, IllegalInstruction,
  NoObject
};

// Memory of which each lane has its own share, one after the other: local variables, arguments and results of calls.
struct Shares {
  const uint8_t* at;
  uint32_t bytes;  // of one lane
};

// A warp's atomics that come late (see holding.h), in the order in which they were put off.
struct PutOff {
  struct One { uint64_t came; uint32_t slot, lane; };
  std::vector<One> all;
};

struct Lanes {
  uint8_t* frame = nullptr;
  uint32_t mask = 0;  // those that take part
  uint8_t* parameters = nullptr;
  uint8_t* scratch = nullptr;  // call arguments and results: of 32 lanes, one after the other
  uint8_t* local = nullptr;    // likewise
  uint32_t parameter_bytes = 0, scratch_bytes = 0, local_bytes = 0;
  bool own_parameters = false;  // in a function each lane has its own; a kernel's are everybody's
  std::vector<Shares> shares;  // of this call and of those that led to it: their addresses may have been passed on
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  const Memory* memory = nullptr;
  Heap* heap = nullptr;
  const TextureObjects* textures = nullptr;
  Extent recent[2];  // where accesses lay last
  uint64_t generation = 0;
  Schedule* schedule = nullptr;
  Holding* holding = nullptr;                // in most runs none
  PutOff* put_off = nullptr;                 // this warp's
  uint32_t held = 0, later = 0;              // of the last instruction's lanes: those that did not come (see holding.h)
  bool released = false;                     // this one waited already
  Observer* observer = nullptr;              // in most runs none
  uint32_t block = 0, warp = 0, threads = 0;  // whose lanes these are; threads of a block
  uint64_t clock = 0;
  uint64_t atomics = 0;
  bool news = false;           // a register got another value from memory that others write
  uint64_t* writes = nullptr;  // of the launch: how often memory that others see was written
  Fault fault = Fault::None;
  uint64_t fault_address = 0;

  void fail(Fault what, uint64_t address) {
    if (fault == Fault::None) fault = what, fault_address = address;
  }
};

template <class T>
inline T* lanes_of(Lanes& w, uint32_t offset) {
  return reinterpret_cast<T*>(w.frame + offset);
}

inline uint32_t& predicate(Lanes& w, uint32_t offset) { return *reinterpret_cast<uint32_t*>(w.frame + offset); }

// f(lane) for each active lane.  All 32 are the common case: that loop is the compiler's to vectorize.
template <class F>
inline void each(uint32_t mask, F f) {
  if (mask == kAll) {
    VGPU_INDEPENDENT
    for (uint32_t lane = 0; lane < kLanes; lane++) f(lane);
    return;
  }
  for (uint32_t left = mask; left; left &= left - 1) f(static_cast<uint32_t>(__builtin_ctz(left)));
}

// d[lane] = f(lane) for each active lane, where f may be asked for the others, too: for most masks one loop over all lanes
// is the sooner.
template <class D, class F>
inline void assign(uint32_t mask, D* d, F f) {
  constexpr int kFew = 3;
  if (mask == kAll || __builtin_popcount(mask) < kFew) return each(mask, [=](uint32_t l) { d[l] = static_cast<D>(f(l)); });
  VGPU_INDEPENDENT
  for (uint32_t lane = 0; lane < kLanes; lane++) d[lane] = mask >> lane & 1 ? static_cast<D>(f(lane)) : d[lane];
}

// A bit for each lane for which f(lane) holds; all are asked.
template <class F>
inline uint32_t lanes_where(F f) {
  alignas(kLanes) uint8_t holds[kLanes];
  VGPU_INDEPENDENT
  for (uint32_t lane = 0; lane < kLanes; lane++) holds[lane] = f(lane);
  const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(holds));
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 7)));  // each byte's lowest bit
}

// The active lanes' bits of a predicate; the others keep theirs.
inline void put_predicate(Lanes& w, uint32_t offset, uint32_t bits) {
  uint32_t& held = predicate(w, offset);
  held = (held & ~w.mask) | (bits & w.mask);
}

template <class F>
inline void set_predicate(Lanes& w, uint32_t offset, F f) {
  put_predicate(w, offset, lanes_where(f));
}

template <class To, class From>
inline To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace vgpu
