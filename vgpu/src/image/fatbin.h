// Containers of GPU code (fatbins), which libraries contain and pass to the driver.
#pragma once
#include <cstdint>
#include <string>

#include "invalid_image.h"

namespace vgpu {

// The image has no code that this device supports.  It can be loaded, but its kernels cannot be launched.
struct NoSuitableCode : Unsupported { using Unsupported::Unsupported; };

enum class CodeKind : uint8_t { Ptx, MachineCode };

struct GpuCode {
  CodeKind kind;
  std::string bytes;
  int arch = 0;  // 70 for compute_70 and sm_70
};

// Which code to select.  PTX: the newest that is not newer than `arch` (70 for 7.0).  Machine code: exactly that of `machine_arch`
// (0: none), if there is no suitable PTX or machine code is preferred.
struct CodeRequest {
  int arch, machine_arch;
  bool prefers_machine_code;
};

// Selects code of an image, which may be a container, PTX or machine code.  Throws NoSuitableCode if there is none for this device, and
// Unsupported if the image is damaged.
GpuCode select_code(const void* image, const CodeRequest& request);
GpuCode select_ptx(const void* image, int arch);

// Returns the newest architecture for which a container has PTX; else `machine_arch` if it has such machine code; else 0.
int newest_code_arch(const void* image, int machine_arch);

// Returns the target architecture of PTX; 0 if the image is not PTX or has no target.
int target_arch(const void* image);

}  // namespace vgpu
