#include "special_registers.h"

#include <map>

#include "core/instruction_set.h"

namespace vgpu {
namespace {

bool is_number_below(std::string_view text, int most) {
  int value = 0;
  for (char c : text) {
    if (c < '0' || c > '9' || text.size() > 2) return false;
    value = 10 * value + (c - '0');
  }
  return !text.empty() && value < most;
}

}  // namespace

int special_register_of(std::string_view name) {
  static const std::map<std::string_view, int> known = {{"%tid.x", kTidX},
                                                        {"%tid.y", kTidY},
                                                        {"%tid.z", kTidZ},
                                                        {"%ntid.x", kNtidX},
                                                        {"%ntid.y", kNtidY},
                                                        {"%ntid.z", kNtidZ},
                                                        {"%ctaid.x", kCtaidX},
                                                        {"%ctaid.y", kCtaidY},
                                                        {"%ctaid.z", kCtaidZ},
                                                        {"%nctaid.x", kNctaidX},
                                                        {"%nctaid.y", kNctaidY},
                                                        {"%nctaid.z", kNctaidZ},
                                                        {"%laneid", kLaneid},
                                                        {"%warpid", kWarpid},
                                                        {"%nwarpid", kNwarpid},
                                                        {"%smid", kSmid},
                                                        {"%nsmid", kNsmid},
                                                        {"%gridid", kGridid},
                                                        {"%lanemask_eq", kMaskEq},
                                                        {"%lanemask_lt", kMaskLt},
                                                        {"%lanemask_le", kMaskLe},
                                                        {"%lanemask_gt", kMaskGt},
                                                        {"%lanemask_ge", kMaskGe},
                                                        {"%dynamic_smem_size", kDynamicSharedBytes},
                                                        {"%total_smem_size", kTotalSharedBytes}};
  if (name.substr(0, 7) == "%envreg")
    return name == "%envreg1"                    ? int(kEnvreg1)
           : name == "%envreg2"                  ? int(kEnvreg2)
           : is_number_below(name.substr(7), 32) ? int(kZero)
                                                 : -1;
  auto found = known.find(name);
  return found == known.end() ? -1 : found->second;
}

}  // namespace vgpu
