// The places of a module's device functions in the code of the kernels that call them (nvcc -rdc=true).
//
// Each such kernel is decoded with the code of these functions before its own, at the same offsets in all kernels of the module: the
// value of a pointer to a function is its offset, which one kernel may store and another one use.  A branch at the first offset
// leads to the kernel.
#pragma once
#include <map>
#include <set>
#include <string>

#include "image/cubin.h"

namespace vgpu::sm80 {

class CodeLayout {
 public:
  explicit CodeLayout(const Cubin& cubin);

  uint64_t offset_of(const std::string& function) const;  // of a device function; 0: there is none
  uint64_t kernel_offset() const { return end_; }  // of a kernel that has callees

  // Returns the device functions that a kernel may call, through others and through pointers, by their offsets.
  std::map<uint64_t, const Cubin::Function*> callees_of(const Cubin::Function& kernel) const;

  // Returns the code before a kernel's own.  linked: the code of functions by their offsets; other functions are left out.
  std::string device_code(const std::map<uint64_t, std::string>& linked) const;

 private:
  std::map<uint64_t, const Cubin::Function*> functions_;  // by offset
  std::map<std::string, uint64_t> offsets_;
  std::set<uint64_t> with_addresses_;  // offsets of the device functions whose addresses are taken
  uint64_t end_ = 0;
};

}  // namespace vgpu::sm80
