// A loaded module: its variables in the device's memory, its functions decoded when first used.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "core/instruction_set.h"
#include "decoder.h"

namespace vgpu {

class LoadedModule : public Functions, public SymbolTable {
 public:
  // InvalidPtx: the text is no PTX.  Unsupported: there is no memory for its variables, or it has what is not known here.
  // `whole`: of all functions the instructions' names are looked at, and not of those alone that are asked for.
  LoadedModule(std::string text, DeviceMemory& memory, bool guards_shared = false, bool whole = false);
  LoadedModule(const LoadedModule&) = delete;

  // Unsupported, with the line: an instruction that is not known.  nullptr: no function of that name.
  const DecodedFunction* program(const std::string& name) override;
  const DecodedFunction* program_at(uint64_t address) override;
  uint64_t constant_bytes() const;  // of all its variables in constant memory
  const ptx::Function* function(const std::string& name) const override;
  const Symbol* find(const std::string& name) const override;
  bool guards_shared() const override { return guards_shared_; }
  std::vector<std::string> entries() const;  // the kernels' names, in their order

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
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> programs_;
  std::unordered_map<uint64_t, const ptx::Function*> functions_;  // by their addresses
  std::vector<std::string> address_taken_;                                // functions that variables begin with
};

}  // namespace vgpu
