// Loads libnvrtc-builtins, which NVRTC opens by its file name without a path.  PyTorch preloads it only if NVIDIA's libcudart is
// loaded, so it is loaded here from NVIDIA's packages in the framework's site-packages.
#include "run_time_compiler.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string>

namespace vgpu {
namespace {

namespace fs = std::filesystem;

constexpr char kPackages[] = "/site-packages/";

// A callback of dl_iterate_phdr(): stores the site-packages folder of the first library that is in one.
int find_packages(dl_phdr_info* library, size_t, void* packages) {
  const std::string name = library->dlpi_name;
  const size_t position = name.find(kPackages);
  if (position == std::string::npos) return 0;
  *static_cast<std::string*>(packages) = name.substr(0, position + sizeof kPackages - 1);
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
