// A loaded PTX module: its variables are in device memory; its functions are decoded at their first use.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "core/instruction_set.h"
#include "decoder.h"
#include "image/code_module.h"

namespace vgpu {

class LoadedModule : public CodeModule, public SymbolTable {
 public:
  // Throws InvalidPtx if the text is not PTX, and Unsupported if it uses unsupported features or there is no memory for its
  // variables.  guards_shared: gaps separate shared variables, for VGPU_CHECK=memcheck.  checks_all: check the instruction
  // names of all functions at once, as a driver does for plain PTX.
  LoadedModule(std::string text, DeviceMemory& memory, bool guards_shared = false, bool checks_all = false);
  LoadedModule(const LoadedModule&) = delete;

  // Throws Unsupported, with the line, for an unsupported instruction.  nullptr: no such function.
  const DecodedFunction* program(const std::string& name) override;
  const DecodedFunction* program_at(uint64_t address) override;
  const char* code_name() const override { return "ptx"; }
  const KernelSignature* signature(const std::string& kernel) override;
  const ModuleVariable* variable(const std::string& name) const override;
  uint64_t constant_bytes() const override;
  const ptx::Function* function(const std::string& name) const override;
  const Symbol* find(const std::string& name) const override;
  const ConstantRanges& constant_ranges() const override { return constant_ranges_; }
  std::string file_name(uint32_t number) const override {
    const auto file = module_.files.find(number);
    return file == module_.files.end() ? "" : file->second;
  }
  bool guards_shared() const override { return guards_shared_; }
  std::vector<std::string> entries() const override;
  std::vector<uint8_t> parameter_block(const Launch& launch) const override { return launch.parameters; }

 private:
  void allocate_variable(const ptx::Declaration& declaration);
  uint64_t address_of(const std::string& name, bool is_variable);

  struct Variables {
    explicit Variables(DeviceMemory& device_memory) : memory(device_memory) {}
    ~Variables();
    DeviceMemory& memory;
    std::vector<void*> allocations;
  };

  Variables variables_;
  const bool guards_shared_;
  ptx::Module module_;
  std::unordered_map<std::string, Symbol> symbols_;
  ConstantRanges constant_ranges_;
  std::unordered_map<std::string, ModuleVariable> module_variables_;  // symbols in device memory
  std::unordered_map<std::string, KernelSignature> signatures_;
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> programs_;
  std::unordered_map<uint64_t, const ptx::Function*> functions_;  // by address
  std::vector<std::string> address_taken_;                                // functions whose addresses initialize variables
};

}  // namespace vgpu
