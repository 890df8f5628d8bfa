// A loaded module of machine code: its variables are in device memory; its functions are decoded at their first use.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "code_layout.h"
#include "function_decoder.h"
#include "image/code_module.h"

namespace vgpu::sm80 {

constexpr int kArchitecture = 80;

class LoadedCubin : public CodeModule {
 public:
  // Throws InvalidImage if it is damaged, and Unsupported if it has another architecture or there is no memory for its variables.
  LoadedCubin(std::string image, DeviceMemory& memory);
  LoadedCubin(const LoadedCubin&) = delete;

  const DecodedFunction* program(const std::string& name) override;
  const DecodedFunction* program_at(uint64_t) override { return nullptr; }
  const char* code_name() const override { return name_.c_str(); }
  const KernelSignature* signature(const std::string& kernel) override;
  const ModuleVariable* variable(const std::string& name) const override;
  std::vector<std::string> entries() const override;
  uint64_t constant_bytes() const override { return banks_.variable_bytes; }
  std::vector<uint8_t> parameter_block(const Launch& launch) const override;

 private:
  struct Memory {  // a class of its own, so that allocations are freed if the constructor of LoadedCubin throws
    explicit Memory(DeviceMemory& device_memory) : memory(device_memory) {}
    ~Memory();
    DeviceMemory& memory;
    std::vector<uint8_t*> allocations;
  };

  void allocate_storages();
  void relocate();
  // Returns the code with relocations applied; throws Unsupported for an unknown one.
  std::string link_code(const Cubin::Function& function, uint64_t begin) const;
  uint64_t find_address(const Cubin::Reference& to) const;
  uint64_t address_of(const Cubin::Function& function, const Cubin::CodeRelocation& relocation, uint64_t begin) const;
  DecodedFunction decode(const Cubin::Function& function) const;
  DecodedFunction decode_with(const Cubin::Function& kernel, const std::map<uint64_t, const Cubin::Function*>& callees) const;

  std::string image_, name_;
  Cubin cubin_;
  const CodeLayout layout_;
  Memory memory_;
  ConstantBanks banks_;
  std::unordered_map<std::string, const Cubin::Function*> functions_;
  std::unordered_map<std::string, KernelSignature> signatures_;
  std::unordered_map<std::string, ModuleVariable> variables_;
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> programs_;
};

}  // namespace vgpu::sm80
