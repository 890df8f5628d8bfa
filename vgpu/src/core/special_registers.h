// What each lane can ask of its thread, block and grid: at fixed places at the beginning of each frame.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

struct Launch;

// 32-bit registers, in this order; 32 lanes of 4 bytes each.
enum SpecialRegister : uint32_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kMaskEq,
  kMaskLt,
  kMaskLe,
  kMaskGt,
  kMaskGe,
  kDynamicShared,  // where the launch's own shared memory begins
  kDynamicSharedBytes,
  kTotalSharedBytes,
  kZero,                   // what drivers keep in PTX's %envreg, but for the next two
  kEnvreg1,
  kEnvreg2,      // where a cooperative launch keeps how its blocks meet: the address's upper half, and the lower
  kSpecials
};

constexpr uint32_t special_offset(uint32_t which) { return which * kWarpSize * 4; }
constexpr uint32_t kSpecialBytes = special_offset(kSpecials);

// All of a warp's but its block's index and where that runs.  dynamic_offset: where in shared memory that of the launch begins.
void write_special_registers(const Launch& launch, uint32_t warp, uint32_t dynamic_offset, uint8_t* registers);
void write_block_index(const Launch& launch, uint32_t block, uint32_t multiprocessor, uint8_t* registers);

}  // namespace vgpu
