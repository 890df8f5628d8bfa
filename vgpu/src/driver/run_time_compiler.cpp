// NVRTC opens its table of built-in functions by name alone.  PyTorch loads that before, but only where it sees NVIDIA's
// libcudart, which is not here: so it is loaded from the packages of NVIDIA that lie beside the framework's.
#include "run_time_compiler.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string>

namespace vgpu {
namespace {

namespace fs = std::filesystem;

constexpr char kPackages[] = "/site-packages/";

// The packages' folder of the first library that lies in one.
int find_packages(dl_phdr_info* library, size_t, void* found) {
  const std::string name = library->dlpi_name;
  const size_t at = name.find(kPackages);
  if (at == std::string::npos) return 0;
  *static_cast<std::string*>(found) = name.substr(0, at + sizeof kPackages - 1);
  return 1;
}

bool is_builtins(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.rfind("libnvrtc-builtins.so.", 0) == 0;
}

}  // namespace

void load_nvrtc_builtins() {
  std::string packages;
  if (!dl_iterate_phdr(find_packages, &packages)) return;
  std::error_code ignored;
  for (const fs::directory_entry& package : fs::directory_iterator(packages + "nvidia", ignored))
    for (const fs::directory_entry& file : fs::directory_iterator(package.path() / "lib", ignored))
      if (is_builtins(file.path())) dlopen(file.path().c_str(), RTLD_LAZY | RTLD_GLOBAL);
}

}  // namespace vgpu
