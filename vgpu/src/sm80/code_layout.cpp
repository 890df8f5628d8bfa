// Lays out the code of a module's device functions, and finds those that a kernel may call.
#include "code_layout.h"

#include <algorithm>
#include <cstring>
#include <vector>

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
    if (function.is_kernel) continue;
    offsets_[function.name] = end_, functions_[end_] = &function;
    end_ = align_up(end_ + function.code.size());
  }
  const auto note_address = [&](const Cubin::Reference& to) {
    if (to.kind == Cubin::Reference::ToCode && offset_of(to.name)) with_addresses_.insert(offset_of(to.name));
  };
  for (const Cubin::Relocation& relocation : cubin.relocations) note_address(relocation.to);
  for (const Cubin::Function& function : cubin.functions)
    for (const Cubin::CodeRelocation& relocation : function.relocations)
      if (relocation.field != Cubin::CodeRelocation::Target && !relocation.to.addend) note_address(relocation.to);
}

uint64_t CodeLayout::offset_of(const std::string& function) const {
  const auto entry = offsets_.find(function);
  return entry == offsets_.end() ? 0 : entry->second;
}

std::map<uint64_t, const Cubin::Function*> CodeLayout::callees_of(const Cubin::Function& kernel) const {
  std::map<uint64_t, const Cubin::Function*> callees;
  std::vector<const Cubin::Function*> pending = {&kernel};
  bool has_pointers = with_addresses_.empty();  // whether the functions that pointers lead to were added
  const auto add = [&](uint64_t offset) {
    const Cubin::Function* function = functions_.at(offset);
    if (callees.try_emplace(offset, function).second) pending.push_back(function);
  };
  while (!pending.empty()) {
    const Cubin::Function& caller = *pending.back();
    pending.pop_back();
    for (const Cubin::CodeRelocation& relocation : caller.relocations)
      if (relocation.to.kind == Cubin::Reference::ToCode && offset_of(relocation.to.name)) add(offset_of(relocation.to.name));
    if (has_pointers || !calls_through_registers(caller)) continue;
    std::for_each(with_addresses_.begin(), with_addresses_.end(), add);
    has_pointers = true;
  }
  return callees;
}

std::string CodeLayout::device_code(const std::map<uint64_t, std::string>& linked) const {
  std::string code(static_cast<size_t>(end_), '\0');
  for (uint64_t offset = 0; offset < end_; offset += kEncodingBytes) put(code, offset, kExit);
  const uint64_t distance = end_ - kEncodingBytes;
  put(code, 0, {kBranch[0] | distance << 32, kBranch[1]});
  for (const auto& [offset, text] : linked) text.copy(&code[static_cast<size_t>(offset)], text.size());
  return code;
}

}  // namespace vgpu::sm80
