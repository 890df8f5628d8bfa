// What the driver asks of a loaded module, whatever its code is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/instruction_set.h"

namespace vgpu {

struct KernelSignature {
  struct Parameter { uint32_t offset, size; };
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t most_threads = 0;  // of a block, where the kernel says so
  uint32_t required_block[3] = {0, 0, 0};  // the one block that it may have; 0: any
};

// A variable in the device's memory.
struct ModuleVariable { uint64_t address, size; };

class CodeModule : public Functions {
 public:
  virtual const char* code_name() const = 0;  // ptx, or the architecture of machine code
  virtual const KernelSignature* signature(const std::string& kernel) = 0;  // nullptr: no kernel of that name
  virtual const ModuleVariable* variable(const std::string& name) const = 0;
  virtual std::vector<std::string> entries() const = 0;  // the kernels' names
  virtual uint64_t constant_bytes() const = 0;  // of all its variables in constant memory
  // What a launch hands to the core: the caller's parameters, with what the code finds beside them.
  virtual std::vector<uint8_t> parameter_block(const DecodedFunction& kernel, std::vector<uint8_t> parameters,
                                               const uint32_t grid[3], const uint32_t block[3]) const = 0;
};

}  // namespace vgpu
