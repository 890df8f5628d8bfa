// Fills the special registers of a warp when its block begins.
#include "special_registers.h"

#include <algorithm>

#include "launch.h"

namespace vgpu {
namespace {

uint32_t* lanes_at(uint8_t* registers, uint32_t number) {
  return reinterpret_cast<uint32_t*>(registers + special_offset(number));
}

void fill(uint8_t* registers, uint32_t number, uint32_t value) { std::fill_n(lanes_at(registers, number), kWarpSize, value); }

}  // namespace

void write_special_registers(const Launch& launch, uint32_t warp, uint32_t dynamic_offset, uint8_t* registers) {
  const uint32_t *b = launch.block, *g = launch.grid;
  for (uint32_t l = 0; l < kWarpSize; l++) {
    uint32_t thread = warp * kWarpSize + l;
    lanes_at(registers, kTidX)[l] = thread % b[0];
    lanes_at(registers, kTidY)[l] = thread / b[0] % b[1];
    lanes_at(registers, kTidZ)[l] = thread / b[0] / b[1];
    lanes_at(registers, kLaneid)[l] = l;
    lanes_at(registers, kMaskEq)[l] = 1u << l;
    lanes_at(registers, kMaskLt)[l] = (1u << l) - 1;
    lanes_at(registers, kMaskLe)[l] = (1u << l) | ((1u << l) - 1);
    lanes_at(registers, kMaskGt)[l] = ~((1u << l) | ((1u << l) - 1));
    lanes_at(registers, kMaskGe)[l] = ~((1u << l) - 1);
  }
  for (uint32_t k = 0; k < 3; k++) {
    fill(registers, kNtidX + k, b[k]);
    fill(registers, kNctaidX + k, g[k]);
  }
  fill(registers, kWarpid, warp);
  fill(registers, kNwarpid, launch.warps_per_block());
  fill(registers, kNsmid, launch.multiprocessors);
  fill(registers, kDynamicShared, dynamic_offset);
  fill(registers, kDynamicSharedBytes, launch.dynamic_shared);
  fill(registers, kTotalSharedBytes, launch.program->declared_shared() + launch.dynamic_shared);
  fill(registers, kEnvreg1, static_cast<uint32_t>(launch.grid_workspace >> 32));
  fill(registers, kEnvreg2, static_cast<uint32_t>(launch.grid_workspace));
}

void write_block_index(const Launch& launch, uint32_t block, uint32_t multiprocessor, uint8_t* registers) {
  const uint32_t* g = launch.grid;
  fill(registers, kCtaidX, block % g[0]);
  fill(registers, kCtaidY, block / g[0] % g[1]);
  fill(registers, kCtaidZ, block / g[0] / g[1]);
  fill(registers, kSmid, multiprocessor);
}

}  // namespace vgpu
