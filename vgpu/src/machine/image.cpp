#include "image.h"

#include <algorithm>
#include <cstring>

#include "../error.h"

namespace vgpu {

Image::Image(std::string text, Memory& memory) : memory_(memory) {
  ptx::parse(std::move(text), module_);
  for (const ptx::Declaration& one : module_.variables) place(one);
  // After all have their places: a variable may hold another's address.
  for (const ptx::Declaration& one : module_.variables)
    if (!one.initial.empty()) initialize(one, reinterpret_cast<uint8_t*>(symbols_.at(one.name).address));
}

Image::~Image() {
  for (auto& [name, symbol] : symbols_)
    if (symbol.space != ptx::Space::Shared) memory_.release(reinterpret_cast<void*>(symbol.address));
}

void Image::place(const ptx::Declaration& one) {
  if (one.space == ptx::Space::Shared) {
    if (!one.initial.empty()) throw Unsupported("an initial value of shared memory: " + one.name);
    symbols_[one.name] = {one.space, 0, one.size, one.align, one.unsized};
    return;
  }
  if (one.space != ptx::Space::Global && one.space != ptx::Space::Const) throw Unsupported("a variable of no module: " + one.name);
  auto declared = symbols_.find(one.name);
  if (declared != symbols_.end()) {  // before it is defined, with another size perhaps
    if (declared->second.space == ptx::Space::Shared) throw Unsupported("two variables of one name: " + one.name);
    if (declared->second.size >= one.size) return;
    memory_.release(reinterpret_cast<void*>(declared->second.address));
  }
  void* at = memory_.allocate(one.size ? one.size : 8);
  if (!at) throw Unsupported("no memory for the variable " + one.name);
  symbols_[one.name] = {one.space, reinterpret_cast<uint64_t>(at), one.size, one.align, false};
}

void Image::initialize(const ptx::Declaration& one, uint8_t* at) const {
  uint32_t width = ptx::size_of(one.type), offset = 0;
  if (width > sizeof(uint64_t)) throw Unsupported(one.name + ": an initial value of more than 64 bits");
  bool negative = false;
  for (const ptx::Token& token : one.initial) {
    if (token.text == "-") { negative = true; continue; }
    if (!ptx::is_literal(token.text) && token.text[0] != '_' && !std::isalpha(static_cast<unsigned char>(token.text[0]))) continue;
    if (offset + width > one.size) throw Unsupported(one.name + ": more values than it has room for");
    uint64_t bits;
    if (ptx::is_literal(token.text)) {
      bits = ptx::literal(token.text, negative, one.type);
    } else if (token.text == "generic" || token.text == "mask") {
      continue;
    } else {
      const Symbol* other = find(std::string(token.text));
      if (!other) throw Unsupported(one.name + ": an initial value that is not known: " + std::string(token.text));
      bits = other->address;
    }
    std::memcpy(at + offset, &bits, width);
    offset += width;
    negative = false;
  }
}

const Symbol* Image::find(const std::string& name) const {
  auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second;
}

const ptx::Function* Image::function(const std::string& name) const {
  auto found = module_.functions.find(name);
  return found == module_.functions.end() ? nullptr : &found->second;
}

std::vector<std::string> Image::entries() const {
  std::vector<std::string> names;
  for (const auto& [name, function] : module_.functions)
    if (function.entry && function.defined) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

const Program* Image::program(const std::string& name) {
  auto known = programs_.find(name);
  if (known != programs_.end()) return known->second.get();
  const ptx::Function* f = function(name);
  if (!f || !f->defined) return nullptr;
  auto made = std::make_unique<Program>(Decoder(*f, *this).program());
  const Program* done = (programs_[name] = std::move(made)).get();
  try {  // what it calls is refused now, and not in the midst of a launch
    for (const CallSite& site : done->calls) program(site.callee);
  } catch (const Unsupported&) {
    programs_.erase(name);
    throw;
  }
  return done;
}

}  // namespace vgpu
