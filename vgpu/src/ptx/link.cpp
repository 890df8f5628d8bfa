// Links several PTX modules into one text.
#include "link.h"

#include <set>

#include "core/error.h"
#include "module.h"

namespace vgpu::ptx {
namespace {

// Calls f(name, linkage) for what a module defines at its head.
template <class F> void each_definition(const Module& module, F f) {
  for (const auto& [name, function] : module.functions)
    if (function.defined) f(name, function.entry ? Linkage::Visible : function.linkage);
  for (const Declaration& one : module.variables)
    if (one.linkage != Linkage::Extern) f(one.name, one.linkage);
}

// The text with another module's number behind each name that only its own module sees.
std::string rename_local_symbols(const Module& module, size_t number) {
  std::set<std::string> own;
  each_definition(module, [&own](const std::string& name, Linkage linkage) {
    if (linkage == Linkage::Internal) own.insert(name);
  });
  std::string out;
  const char* at = module.text.data();
  for (const Token& token : tokenize(module.text)) {
    const char* end = token.text.data() + token.text.size();
    out.append(at, end);
    if (own.count(std::string(token.text))) out += "$" + std::to_string(number);
    at = end;
  }
  return out + "\n";
}

}  // namespace

std::string link_modules(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return texts[0];
  std::string out;
  std::set<std::string> defined;
  for (size_t k = 0; k < texts.size(); k++) {
    Module module;
    parse(texts[k], module);
    each_definition(module, [&defined](const std::string& name, Linkage linkage) {
      if (linkage == Linkage::Visible && !defined.insert(name).second) throw Unsupported("two modules define " + name);
    });
    out += rename_local_symbols(module, k);
  }
  return out;
}

}  // namespace vgpu::ptx
