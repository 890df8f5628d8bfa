// Maps the names of PTX special registers (%tid.x, %laneid) to the core's.
#include "special_registers.h"

#include <map>
#include <string>

#include "core/instruction_set.h"

namespace vgpu {
namespace {

using Table = std::map<std::string, SpecialSource, std::less<>>;

constexpr SpecialSource held(uint32_t which) { return {static_cast<int32_t>(which), 0, 4, false, false}; }
constexpr SpecialSource always(uint32_t value, uint32_t width = 4) { return {-1, value, width, false, false}; }

// Components are named .x to .w, and .r, .g, .b, .a.  Of the fourth ptxas makes 0.
void add_vector(Table& table, const std::string& name, SpecialSource first) {
  const std::string letters[] = {"xr", "yg", "zb", "wa"};
  for (uint32_t k = 0; k < 4; k++)
    for (char letter : letters[k]) {
      SpecialSource one = k == 3 ? always(0) : first;
      if (k < 3 && first.which >= 0) one.which += static_cast<int32_t>(k);
      one.narrow = name == "%tid" || name == "%ntid" || name == "%ctaid" || name == "%nctaid";
      table[name + "." + letter] = one;
    }
}

Table all() {
  Table table = {{"%laneid", held(kLaneid)},
                 {"%warpid", held(kWarpid)},
                 {"%nwarpid", held(kNwarpid)},
                 {"%smid", held(kSmid)},
                 {"%nsmid", held(kNsmid)},
                 {"%gridid", {kGridid, 0, 4, true, true}},
                 {"%lanemask_eq", held(kMaskEq)},
                 {"%lanemask_lt", held(kMaskLt)},
                 {"%lanemask_le", held(kMaskLe)},
                 {"%lanemask_gt", held(kMaskGt)},
                 {"%lanemask_ge", held(kMaskGe)},
                 {"%dynamic_smem_size", held(kDynamicSharedBytes)},
                 {"%total_smem_size", held(kTotalSharedBytes)},
                 {"%current_graph_exec", always(0, 8)},
                 {"%cluster_ctarank", always(0)},
                 {"%cluster_nctarank", always(1)}};
  add_vector(table, "%tid", held(kTidX));
  add_vector(table, "%ntid", held(kNtidX));
  add_vector(table, "%ctaid", held(kCtaidX));
  add_vector(table, "%nctaid", held(kNctaidX));
  // Each block is a cluster of its own.
  add_vector(table, "%clusterid", held(kCtaidX));
  add_vector(table, "%nclusterid", held(kNctaidX));
  add_vector(table, "%cluster_ctaid", always(0));
  add_vector(table, "%cluster_nctaid", always(1));
  for (int k = 0; k < 32; k++) table["%envreg" + std::to_string(k)] = held(kZero);
  table["%envreg1"] = held(kEnvreg1);
  table["%envreg2"] = held(kEnvreg2);
  for (int k = 0; k < 8; k++) {  // counters of a profiler, and none counts
    table["%pm" + std::to_string(k)] = always(0);
    table["%pm" + std::to_string(k) + "_64"] = always(0, 8);
  }
  return table;
}

}  // namespace

const SpecialSource* special_register_of(std::string_view name) {
  static const Table known = all();
  auto found = known.find(name);
  return found == known.end() ? nullptr : &found->second;
}

bool is_special_vector(std::string_view name) {
  return !name.empty() && name[0] == '%' && name.find('.') == name.npos &&
         special_register_of(std::string(name) + ".x") != nullptr;
}

}  // namespace vgpu
