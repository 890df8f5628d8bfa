// Constant bank 0: launch parameters that the driver writes, and the kernel's parameters.
#pragma once
#include <cstdint>

namespace vgpu::sm80 {

// Offsets in bytes.
constexpr uint32_t kBlockSize = 0x0, kGridSize = 0xc, kSharedWindow = 0x18, kLocalWindow = 0x20, kStackTop = 0x28,
                   kParameters = 0x160;
constexpr uint32_t kDynamicSharedBytes = 0x2c, kMultiprocessorCount = 0x10c;  // PTX: %dynamic_smem_size and %nsmid
constexpr uint32_t kReservedShared = 0x114;  // bytes that SR_SMEMSZ counts beside the program's; none here
constexpr uint32_t kGridWorkspaceHigh = 0x8c, kGridWorkspaceLow = 0x90;  // PTX: %envreg1 and %envreg2

// Windows of generic addresses for shared and local memory, above all addresses of a process.
constexpr uint64_t kSharedWindowBegin = uint64_t(1) << 48, kLocalWindowBegin = kSharedWindowBegin + (uint64_t(1) << 32);
constexpr uint64_t kWindowBytes = 1 << 24;

// The addresses of functions outside of a module, such as vprintf.
constexpr uint64_t kOutsideBegin = kLocalWindowBegin + (uint64_t(1) << 32);
constexpr uint64_t kTargetMask = (uint64_t(1) << 47) - 1;  // the bits of an address in the encoding of a direct call

}  // namespace vgpu::sm80
