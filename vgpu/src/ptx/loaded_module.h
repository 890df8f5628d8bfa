// A loaded module: its variables in the device's memory, its functions decoded when first used.
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
  // InvalidPtx: the text is no PTX.  Unsupported: there is no memory for its variables, or it has what is not known here.
  // `whole`: of all functions the instructions' names are looked at, and not of those alone that are asked for.
  LoadedModule(std::string text, DeviceMemory& memory, bool guards_shared = false, bool whole = false);
  LoadedModule(const LoadedModule&) = delete;

  // Unsupported, with the line: an instruction that is not known.  nullptr: no function of that name.
  const DecodedFunction* program(const std::string& name) override;
  const DecodedFunction* program_at(uint64_t address) override;
  const char* code_name() const override { return "ptx"; }
  const KernelSignature* signature(const std::string& kernel) override;
  const ModuleVariable* variable(const std::string& name) const override;
  uint64_t constant_bytes() const override;
  const ptx::Function* function(const std::string& name) const override;
  const Symbol* find(const std::string& name) const override;
  bool guards_shared() const override { return guards_shared_; }
  std::vector<std::string> entries() const override;
  std::vector<uint8_t> parameter_block(const DecodedFunction&, std::vector<uint8_t> parameters, const uint32_t*,
                                       const uint32_t*) const override {
    return parameters;
  }

 private:
  void place(const ptx::Declaration& one);
  uint64_t address_of(const std::string& name, bool moved);

  struct Variables {
    explicit Variables(DeviceMemory& of) : memory(of) {}
    ~Variables();
    DeviceMemory& memory;
    std::vector<void*> places;
  };

  Variables variables_;
  const bool guards_shared_;
  ptx::Module module_;
  std::unordered_map<std::string, Symbol> symbols_;
  std::unordered_map<std::string, ModuleVariable> module_variables_;  // those of them that lie in the device's memory
  std::unordered_map<std::string, KernelSignature> signatures_;
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> programs_;
  std::unordered_map<uint64_t, const ptx::Function*> functions_;  // by their addresses
  std::vector<std::string> address_taken_;                                // functions that variables begin with
};

}  // namespace vgpu
