// Lays out the code of a module's device functions, and finds those that a kernel may call.
#include "code_layout.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "encoding.h"

namespace vgpu::sm80 {
namespace {

constexpr uint64_t kAlignment = 128;  // of functions
constexpr uint64_t kBranch[] = {0x0000000000007947, 0x000fc00003800000};  // BRA to the next instruction
constexpr uint64_t kExit[] = {0x000000000000794d, 0x000fea0003800000};
constexpr uint64_t kCallThroughRegister = 0x343, kOpcodeMask = 0xfff;

uint64_t align_up(uint64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

bool calls_through_registers(const Cubin::Function& function) {
  for (size_t offset = 0; offset + kEncodingBytes <= function.code.size(); offset += kEncodingBytes) {
    uint64_t word;
    std::memcpy(&word, function.code.data() + offset, sizeof word);
    if ((word & kOpcodeMask) == kCallThroughRegister) return true;
  }
  return false;
}

void put(std::string& code, uint64_t offset, const uint64_t (&words)[2]) {
  std::memcpy(&code[static_cast<size_t>(offset)], words, sizeof words);
}

}  // namespace

CodeLayout::CodeLayout(const Cubin& cubin) {
  end_ = kAlignment;
  for (const Cubin::Function& function : cubin.functions) {
    functions_[function.name] = &function;
    if (function.is_kernel) continue;
    offsets_[function.name] = end_;
    end_ = align_up(end_ + function.code.size());
  }
  std::set<std::string> names;
  for (const Cubin::Relocation& relocation : cubin.relocations)
    if (relocation.kind == SymbolPlace::OfCode) names.insert(relocation.name);
  for (const Cubin::Function& function : cubin.functions)
    for (const Cubin::CodeRelocation& relocation : function.relocations)
      if (relocation.kind == SymbolPlace::OfCode && relocation.field != Cubin::CodeRelocation::Target && !relocation.addend)
        names.insert(relocation.name);
  for (const std::string& name : names)
    if (offset_of(name)) with_addresses_.push_back(functions_.at(name));
}

uint64_t CodeLayout::offset_of(const std::string& function) const {
  const auto entry = offsets_.find(function);
  return entry == offsets_.end() ? 0 : entry->second;
}

std::vector<const Cubin::Function*> CodeLayout::callees_of(const Cubin::Function& kernel) const {
  std::vector<const Cubin::Function*> callees;
  std::vector<const Cubin::Function*> pending = {&kernel};
  const auto add = [&](const Cubin::Function* function) {
    if (std::find(callees.begin(), callees.end(), function) != callees.end()) return;
    callees.push_back(function), pending.push_back(function);
  };
  while (!pending.empty()) {
    const Cubin::Function& caller = *pending.back();
    pending.pop_back();
    for (const Cubin::CodeRelocation& relocation : caller.relocations)
      if (relocation.kind == SymbolPlace::OfCode && offset_of(relocation.name)) add(functions_.at(relocation.name));
    if (!with_addresses_.empty() && calls_through_registers(caller))
      std::for_each(with_addresses_.begin(), with_addresses_.end(), add);
  }
  return callees;
}

std::string CodeLayout::device_code(const std::map<const Cubin::Function*, std::string>& linked) const {
  std::string code(static_cast<size_t>(end_), '\0');
  for (uint64_t offset = 0; offset < end_; offset += kEncodingBytes) put(code, offset, kExit);
  const uint64_t distance = end_ - kEncodingBytes;
  put(code, 0, {kBranch[0] | distance << 32, kBranch[1]});
  for (const auto& [function, text] : linked)
    std::copy(text.begin(), text.end(), code.begin() + static_cast<std::ptrdiff_t>(offset_of(function->name)));
  return code;
}

}  // namespace vgpu::sm80
