// Special registers, such as PTX's %tid.x.  They lie at fixed offsets at the beginning of each call frame's registers.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace vgpu {

struct Launch;

// 32-bit registers in the order of their offsets; each has 32 lanes of 4 bytes.
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
  kDynamicShared,  // offset of dynamic shared memory
  kDynamicSharedBytes,
  kTotalSharedBytes,
  kZero,                   // all of PTX's %envreg registers but the next two
  kEnvreg1,
  kEnvreg2,      // kEnvreg1, kEnvreg2: upper and lower half of the address of a cooperative launch's workspace (grid.sync())
  kSpecials
};

constexpr uint32_t special_offset(uint32_t number) { return number * kWarpSize * 4; }
constexpr uint32_t kSpecialBytes = special_offset(kSpecials);

// Writes all special registers of a warp except those of write_block_index().  dynamic_offset: of dynamic shared memory.
void write_special_registers(const Launch& launch, uint32_t warp, uint32_t dynamic_offset, uint8_t* registers);
// Writes %ctaid and %smid.
void write_block_index(const Launch& launch, uint32_t block, uint32_t multiprocessor, uint8_t* registers);

}  // namespace vgpu
