// Links several PTX modules into one text.
#include "link.h"

#include <set>

#include "core/error.h"
#include "module.h"

namespace vgpu::ptx {
namespace {

// Calls f(name, linkage) for each function and variable that a module defines.
template <class F> void for_each_definition(const Module& module, F f) {
  for (const auto& [name, function] : module.functions)
    if (function.defined) f(name, function.entry ? Linkage::Visible : function.linkage);
  for (const Declaration& variable : module.variables)
    if (variable.linkage != Linkage::Extern) f(variable.name, variable.linkage);
}

// Returns the module's text with its number appended to each name with internal linkage.
std::string rename_local_symbols(const Module& module, size_t number) {
  std::set<std::string> internal_names;
  for_each_definition(module, [&internal_names](const std::string& name, Linkage linkage) {
    if (linkage == Linkage::Internal) internal_names.insert(name);
  });
  std::string result;
  const char* copied_to = module.text.data();
  for (const Token& token : tokenize(module.text)) {
    const char* end = token.text.data() + token.text.size();
    result.append(copied_to, end);
    if (internal_names.count(std::string(token.text))) result += "$" + std::to_string(number);
    copied_to = end;
  }
  return result + "\n";
}

}  // namespace

std::string link_modules(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return texts[0];
  std::string linked;
  std::set<std::string> defined;
  for (size_t k = 0; k < texts.size(); k++) {
    Module module;
    parse(texts[k], module);
    for_each_definition(module, [&defined](const std::string& name, Linkage linkage) {
      if (linkage == Linkage::Visible && !defined.insert(name).second) throw Unsupported("two modules define " + name);
    });
    linked += rename_local_symbols(module, k);
  }
  return linked;
}

}  // namespace vgpu::ptx
