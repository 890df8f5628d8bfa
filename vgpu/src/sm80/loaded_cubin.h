// A loaded module of machine code: its variables in the device's memory, its functions decoded when first used.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "function_decoder.h"
#include "image/code_module.h"

namespace vgpu::sm80 {

constexpr int kArchitecture = 80;

class LoadedCubin : public CodeModule {
 public:
  // InvalidImage: it is damaged.  Unsupported: it is of another architecture, or there is no memory for its variables.
  LoadedCubin(std::string image, DeviceMemory& memory);
  LoadedCubin(const LoadedCubin&) = delete;

  const DecodedFunction* program(const std::string& name) override;
  const DecodedFunction* program_at(uint64_t) override { return nullptr; }
  const char* code_name() const override { return name_.c_str(); }
  const KernelSignature* signature(const std::string& kernel) override;
  const ModuleVariable* variable(const std::string& name) const override;
  std::vector<std::string> entries() const override;
  uint64_t constant_bytes() const override { return banks_.variable_bytes; }
  std::vector<uint8_t> parameter_block(const DecodedFunction& kernel, std::vector<uint8_t> parameters, const uint32_t grid[3],
                                       const uint32_t block[3]) const override;

 private:
  struct Memory {  // of its own: what a constructor that throws has placed goes, too
    explicit Memory(DeviceMemory& of) : memory(of) {}
    ~Memory();
    DeviceMemory& memory;
    std::vector<uint8_t*> places;
  };

  void place_storages();
  void relocate();
  // Its code with the addresses that its relocations name; Unsupported: one of them is not known.
  std::string linked(const Cubin::Function& of) const;
  uint64_t address_in(const Cubin::Function& of, const Cubin::CodeRelocation& one) const;

  std::string image_, name_;
  Cubin cubin_;
  Memory memory_;
  ConstantBanks banks_;
  std::unordered_map<std::string, const Cubin::Function*> functions_;
  std::unordered_map<std::string, KernelSignature> signatures_;
  std::unordered_map<std::string, ModuleVariable> variables_;
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> programs_;
};

}  // namespace vgpu::sm80
