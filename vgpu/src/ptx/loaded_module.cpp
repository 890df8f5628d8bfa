// Allocates the variables of a PTX module, and decodes its functions at their first use.
#include "loaded_module.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "cudadevrt.h"
#include "initial_value.h"
#include "instruction_names.h"

namespace vgpu {

LoadedModule::LoadedModule(std::string text, DeviceMemory& memory, bool guards_shared, bool checks_all)
    : variables_(memory), guards_shared_(guards_shared) {
  ptx::parse(link_cudadevrt(std::move(text)), module_);
  if (checks_all) ptx::check_instruction_names(module_);
  for (const auto& [name, function] : module_.functions) functions_[ptx::address_of(function)] = &function;
  for (const ptx::Declaration& declaration : module_.variables) allocate_variable(declaration);
  // Initialized after all are allocated, as a variable may contain another's address.
  for (const ptx::Declaration& declaration : module_.variables)
    if (!declaration.initial.empty())
      InitialValue(declaration, [this](const std::string& name, bool is_variable) {
        return address_of(name, is_variable);
      }).write(reinterpret_cast<uint8_t*>(symbols_.at(declaration.name).address));
  for (const auto& [name, symbol] : symbols_) {
    if (symbol.space != ptx::StateSpace::Const) continue;
    memory.protect(reinterpret_cast<void*>(symbol.address));
    constant_ranges_.emplace_back(symbol.address, symbol.address + symbol.size);
  }
}

// A class of its own, so that allocations are freed if the constructor of LoadedModule throws.
LoadedModule::Variables::~Variables() {
  for (void* allocation : allocations) memory.deallocate(allocation);
}

void LoadedModule::allocate_variable(const ptx::Declaration& declaration) {
  if (declaration.space == ptx::StateSpace::Shared) {
    if (!declaration.initial.empty()) throw Unsupported("an initial value of shared memory: " + declaration.name);
    symbols_[declaration.name] = {declaration.space, 0, declaration.size, declaration.align, declaration.incomplete};
    return;
  }
  if (declaration.space != ptx::StateSpace::Global && declaration.space != ptx::StateSpace::Const)
    throw Unsupported("a variable of no module: " + declaration.name);
  auto declared = symbols_.find(declaration.name);
  if (declared != symbols_.end()) {  // declared before its definition, perhaps with another size
    if (declared->second.space == ptx::StateSpace::Shared) throw Unsupported("two variables of one name: " + declaration.name);
    if (declared->second.size >= declaration.size) return;
  }
  void* memory = variables_.memory.allocate(declaration.size ? declaration.size : 8, true);
  if (memory) variables_.allocations.push_back(memory);
  else throw Unsupported("no memory for the variable " + declaration.name);
  symbols_[declaration.name] = {declaration.space, reinterpret_cast<uint64_t>(memory), declaration.size, declaration.align,
                                false};
  module_variables_[declaration.name] = {reinterpret_cast<uint64_t>(memory), declaration.size};
}

// Returns the address of a name in an initial value; 0: it has none.
uint64_t LoadedModule::address_of(const std::string& name, bool is_variable) {
  const Symbol* symbol = find(name);
  if (symbol) return symbol->space == ptx::StateSpace::Global || symbol->space == ptx::StateSpace::Const ? symbol->address : 0;
  const ptx::Function* target = function(name);
  if (is_variable || !target || !target->defined) return 0;
  address_taken_.push_back(name);
  return ptx::address_of(*target);
}

const Symbol* LoadedModule::find(const std::string& name) const {
  auto entry = symbols_.find(name);
  return entry == symbols_.end() ? nullptr : &entry->second;
}

const KernelSignature* LoadedModule::signature(const std::string& kernel) {
  const ptx::Function* source = function(kernel);
  if (!source || !source->entry || !source->defined) return nullptr;
  const auto [entry, is_new] = signatures_.try_emplace(kernel);
  if (!is_new) return &entry->second;
  for (const ptx::Parameter& parameter : source->parameters)
    entry->second.parameters.push_back({parameter.offset, parameter.size});
  entry->second.parameter_bytes = source->parameter_bytes, entry->second.max_threads = source->max_threads;
  std::copy_n(source->required_block, 3, entry->second.required_block);
  return &entry->second;
}

const ModuleVariable* LoadedModule::variable(const std::string& name) const {
  const auto entry = module_variables_.find(name);
  return entry == module_variables_.end() ? nullptr : &entry->second;
}

uint64_t LoadedModule::constant_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, symbol] : symbols_) bytes += symbol.space == ptx::StateSpace::Const ? symbol.size : 0;
  return bytes;
}

const ptx::Function* LoadedModule::function(const std::string& name) const {
  auto entry = module_.functions.find(name);
  return entry == module_.functions.end() ? nullptr : &entry->second;
}

std::vector<std::string> LoadedModule::entries() const {
  std::vector<std::string> names;
  for (const auto& [name, function] : module_.functions)
    if (function.entry && function.defined) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

const DecodedFunction* LoadedModule::program(const std::string& name) {
  auto entry = programs_.find(name);
  if (entry != programs_.end()) return entry->second.get();
  // Functions that it may call are decoded, too, so that unsupported code is reported before the launch.
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> decoded;
  std::vector<std::string> pending = {name};
  while (!pending.empty()) {
    std::string next = std::move(pending.back());
    pending.pop_back();
    const ptx::Function* f = function(next);
    if (!f || !f->defined || programs_.count(next) || decoded.count(next)) continue;
    DecodedFunction& result = *(decoded[next] = std::make_unique<DecodedFunction>(Decoder(*f, *this).decode()));
    number_instructions(result), mark_frequent_atomics(result);
    pending.insert(pending.end(), result.address_taken.begin(), result.address_taken.end());
    for (const CallSite& site : result.calls) {
      if (site.callee.empty()) pending.insert(pending.end(), address_taken_.begin(), address_taken_.end());
      else pending.push_back(site.callee);
    }
  }
  programs_.merge(decoded);
  entry = programs_.find(name);
  return entry == programs_.end() ? nullptr : entry->second.get();
}

const DecodedFunction* LoadedModule::program_at(uint64_t address) {
  auto entry = functions_.find(address);
  return entry == functions_.end() ? nullptr : program(entry->second->name);
}

}  // namespace vgpu
