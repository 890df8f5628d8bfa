// Loads a PTX module: allocates its variables, decodes its functions when they are first called.
#include "loaded_module.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "cudadevrt.h"
#include "initial_value.h"
#include "instruction_names.h"

namespace vgpu {

LoadedModule::LoadedModule(std::string text, DeviceMemory& memory, bool guards_shared, bool whole)
    : variables_(memory), guards_shared_(guards_shared) {
  ptx::parse(link_cudadevrt(std::move(text)), module_);
  if (whole) ptx::check_instruction_names(module_);
  for (const auto& [name, function] : module_.functions) functions_[ptx::address_of(function)] = &function;
  for (const ptx::Declaration& one : module_.variables) place(one);
  // After all have their places: a variable may hold another's address.
  for (const ptx::Declaration& one : module_.variables)
    if (!one.initial.empty())
      Initial(one, [this](const std::string& name, bool moved) {
        return address_of(name, moved);
      }).write(reinterpret_cast<uint8_t*>(symbols_.at(one.name).address));
  for (const auto& [name, symbol] : symbols_)
    if (symbol.space == ptx::StateSpace::Const) memory.protect(reinterpret_cast<void*>(symbol.address));
}

// Of its own: what a constructor that throws has placed goes, too.
LoadedModule::Variables::~Variables() {
  for (void* at : places) memory.deallocate(at);
}

void LoadedModule::place(const ptx::Declaration& one) {
  if (one.space == ptx::StateSpace::Shared) {
    if (!one.initial.empty()) throw Unsupported("an initial value of shared memory: " + one.name);
    symbols_[one.name] = {one.space, 0, one.size, one.align, one.incomplete};
    return;
  }
  if (one.space != ptx::StateSpace::Global && one.space != ptx::StateSpace::Const)
    throw Unsupported("a variable of no module: " + one.name);
  auto declared = symbols_.find(one.name);
  if (declared != symbols_.end()) {  // before it is defined, with another size perhaps
    if (declared->second.space == ptx::StateSpace::Shared) throw Unsupported("two variables of one name: " + one.name);
    if (declared->second.size >= one.size) return;
  }
  void* at = variables_.memory.allocate(one.size ? one.size : 8, true);
  if (at) variables_.places.push_back(at);
  else throw Unsupported("no memory for the variable " + one.name);
  symbols_[one.name] = {one.space, reinterpret_cast<uint64_t>(at), one.size, one.align, false};
  module_variables_[one.name] = {reinterpret_cast<uint64_t>(at), one.size};
}

// Of what a variable's initial value names; 0: nothing that has an address of its own.
uint64_t LoadedModule::address_of(const std::string& name, bool moved) {
  const Symbol* other = find(name);
  if (other) return other->space == ptx::StateSpace::Global || other->space == ptx::StateSpace::Const ? other->address : 0;
  const ptx::Function* pointed = function(name);
  if (moved || !pointed || !pointed->defined) return 0;
  address_taken_.push_back(name);
  return ptx::address_of(*pointed);
}

const Symbol* LoadedModule::find(const std::string& name) const {
  auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second;
}

const KernelSignature* LoadedModule::signature(const std::string& kernel) {
  const ptx::Function* from = function(kernel);
  if (!from || !from->entry || !from->defined) return nullptr;
  const auto [made, added] = signatures_.try_emplace(kernel);
  if (!added) return &made->second;
  for (const ptx::Parameter& one : from->parameters) made->second.parameters.push_back({one.offset, one.size});
  made->second.parameter_bytes = from->parameter_bytes, made->second.most_threads = from->most_threads;
  std::copy_n(from->required_block, 3, made->second.required_block);
  return &made->second;
}

const ModuleVariable* LoadedModule::variable(const std::string& name) const {
  const auto found = module_variables_.find(name);
  return found == module_variables_.end() ? nullptr : &found->second;
}

uint64_t LoadedModule::constant_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, symbol] : symbols_) bytes += symbol.space == ptx::StateSpace::Const ? symbol.size : 0;
  return bytes;
}

const ptx::Function* LoadedModule::function(const std::string& name) const {
  auto found = module_.functions.find(name);
  return found == module_.functions.end() ? nullptr : &found->second;
}

std::vector<std::string> LoadedModule::entries() const {
  std::vector<std::string> names;
  for (const auto& [name, function] : module_.functions)
    if (function.entry && function.defined) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

const DecodedFunction* LoadedModule::program(const std::string& name) {
  auto known = programs_.find(name);
  if (known != programs_.end()) return known->second.get();
  // What it calls or may call is refused now, and not in the midst of a launch.
  std::unordered_map<std::string, std::unique_ptr<DecodedFunction>> fresh;
  std::vector<std::string> wanted = {name};
  while (!wanted.empty()) {
    std::string next = std::move(wanted.back());
    wanted.pop_back();
    const ptx::Function* f = function(next);
    if (!f || !f->defined || programs_.count(next) || fresh.count(next)) continue;
    const DecodedFunction& made = *(fresh[next] = std::make_unique<DecodedFunction>(Decoder(*f, *this).decode()));
    wanted.insert(wanted.end(), made.address_taken.begin(), made.address_taken.end());
    for (const CallSite& site : made.calls) {
      if (site.callee.empty()) wanted.insert(wanted.end(), address_taken_.begin(), address_taken_.end());
      else wanted.push_back(site.callee);
    }
  }
  programs_.merge(fresh);
  known = programs_.find(name);
  return known == programs_.end() ? nullptr : known->second.get();
}

const DecodedFunction* LoadedModule::program_at(uint64_t address) {
  auto found = functions_.find(address);
  return found == functions_.end() ? nullptr : program(found->second->name);
}

}  // namespace vgpu
