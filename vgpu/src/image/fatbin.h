// Containers of GPU code ("fatbins"), as libraries carry them and drivers are handed them.
#pragma once
#include <cstdint>
#include <string>

#include "invalid_image.h"

namespace vgpu {

// There is code, but none that this device reads: what it holds may be named, and is refused when it is to run.
struct NoPtx : Unsupported { using Unsupported::Unsupported; };

enum class CodeKind : uint8_t { Ptx, MachineCode };

struct GpuCode {
  CodeKind kind;
  std::string bytes;
  int arch = 0;  // 70 for compute_70 and sm_70
};

// What a device of compute capability `arch` (70 for 7.0) takes: of PTX the newest not above it, and machine code of exactly
// `machine_arch` (0: none), where there is no PTX or it is preferred.
struct CodeRequest {
  int arch, machine_arch;
  bool prefers_machine_code;
};

// The image may be a container, PTX itself, or machine code itself.  NoPtx: none for this device; Unsupported: a damaged
// container; both with the reason.
GpuCode select_code(const void* image, const CodeRequest& wanted);
GpuCode select_ptx(const void* image, int arch);

// The newest architecture that a container has PTX for; where it has none, `machine_arch` if it has such machine code; 0.
int newest_code_arch(const void* image, int machine_arch);

// The architecture that PTX itself names as its target; 0: it is a container, or names none.
int target_arch(const void* image);

}  // namespace vgpu
