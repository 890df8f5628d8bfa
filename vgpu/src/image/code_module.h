// The interface of loaded modules to the driver, for PTX and for machine code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/instruction_set.h"
#include "core/launch.h"

namespace vgpu {

struct KernelSignature {
  struct Parameter { uint32_t offset, size; };
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t max_threads = 0;  // of a block; 0: the kernel does not limit it
  uint32_t required_block[3] = {0, 0, 0};  // the only permitted block size; 0: any
};

// A variable in the device's memory.
struct ModuleVariable { uint64_t address, size; };

class CodeModule : public Functions {
 public:
  virtual const char* code_name() const = 0;  // "ptx", or "sm_80" of machine code
  virtual const KernelSignature* signature(const std::string& kernel) = 0;  // nullptr: no such kernel
  virtual const ModuleVariable* variable(const std::string& name) const = 0;
  virtual std::vector<std::string> entries() const = 0;  // the kernels' names
  virtual uint64_t constant_bytes() const = 0;  // size of all variables in constant memory
  // Returns the parameters of a launch as the code expects them: the caller's, which the launch has; for machine code, the
  // contents of constant bank 0, which also has the sizes of grid and block and the workspace of grid.sync().
  virtual std::vector<uint8_t> parameter_block(const Launch& launch) const = 0;
};

}  // namespace vgpu
