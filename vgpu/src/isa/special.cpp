#include "special.h"

#include <map>

namespace vgpu {

int special_of(std::string_view name) {
  static const std::map<std::string_view, int> known = {
      {"%tid.x", kTidX}, {"%tid.y", kTidY}, {"%tid.z", kTidZ}, {"%ntid.x", kNtidX}, {"%ntid.y", kNtidY},
      {"%ntid.z", kNtidZ}, {"%ctaid.x", kCtaidX}, {"%ctaid.y", kCtaidY}, {"%ctaid.z", kCtaidZ},
      {"%nctaid.x", kNctaidX}, {"%nctaid.y", kNctaidY}, {"%nctaid.z", kNctaidZ}, {"%laneid", kLaneid},
      {"%warpid", kWarpid}, {"%nwarpid", kNwarpid}, {"%smid", kSmid}, {"%nsmid", kNsmid}, {"%gridid", kGridid},
      {"%lanemask_eq", kMaskEq}, {"%lanemask_lt", kMaskLt}, {"%lanemask_le", kMaskLe}, {"%lanemask_gt", kMaskGt},
      {"%lanemask_ge", kMaskGe}, {"%dynamic_smem_size", kDynamicSharedBytes}, {"%total_smem_size", kTotalSharedBytes}};
  auto found = known.find(name);
  return found == known.end() ? -1 : found->second;
}

}  // namespace vgpu
