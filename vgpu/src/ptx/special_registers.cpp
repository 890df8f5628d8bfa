// Maps the names of PTX special registers (%tid.x, %laneid) to the core's.
#include "special_registers.h"

#include <map>
#include <string>

#include "core/instruction_set.h"

namespace vgpu {
namespace {

using Table = std::map<std::string, SpecialSource, std::less<>>;

// The fields of a source: the core's register, or -1 for a constant; the constant; its width in bytes; whether mov may read it
// as 16 bits (narrow), as 64 bits.
constexpr SpecialSource core_register_source(uint32_t number) { return {static_cast<int32_t>(number), 0, 4, false, false}; }
constexpr SpecialSource constant_source(uint32_t value, uint32_t width = 4) { return {-1, value, width, false, false}; }

// Adds the components .x to .w, which are also named .r, .g, .b and .a.  The fourth one is 0.
void add_vector(Table& table, const std::string& name, SpecialSource first) {
  const std::string letters[] = {"xr", "yg", "zb", "wa"};
  for (uint32_t k = 0; k < 4; k++)
    for (char letter : letters[k]) {
      SpecialSource source = k == 3 ? constant_source(0) : first;
      if (k < 3 && first.core_register >= 0) source.core_register += static_cast<int32_t>(k);
      source.narrow = name == "%tid" || name == "%ntid" || name == "%ctaid" || name == "%nctaid";
      table[name + "." + letter] = source;
    }
}

Table build_table() {
  Table table = {{"%laneid", core_register_source(kLaneid)},
                 {"%warpid", core_register_source(kWarpid)},
                 {"%nwarpid", core_register_source(kNwarpid)},
                 {"%smid", core_register_source(kSmid)},
                 {"%nsmid", core_register_source(kNsmid)},
                 {"%gridid", {kGridid, 0, 4, true, true}},
                 {"%lanemask_eq", core_register_source(kMaskEq)},
                 {"%lanemask_lt", core_register_source(kMaskLt)},
                 {"%lanemask_le", core_register_source(kMaskLe)},
                 {"%lanemask_gt", core_register_source(kMaskGt)},
                 {"%lanemask_ge", core_register_source(kMaskGe)},
                 {"%dynamic_smem_size", core_register_source(kDynamicSharedBytes)},
                 {"%total_smem_size", core_register_source(kTotalSharedBytes)},
                 {"%current_graph_exec", constant_source(0, 8)},
                 {"%cluster_ctarank", constant_source(0)},
                 {"%cluster_nctarank", constant_source(1)}};
  add_vector(table, "%tid", core_register_source(kTidX));
  add_vector(table, "%ntid", core_register_source(kNtidX));
  add_vector(table, "%ctaid", core_register_source(kCtaidX));
  add_vector(table, "%nctaid", core_register_source(kNctaidX));
  // Each block is a cluster of its own.
  add_vector(table, "%clusterid", core_register_source(kCtaidX));
  add_vector(table, "%nclusterid", core_register_source(kNctaidX));
  add_vector(table, "%cluster_ctaid", constant_source(0));
  add_vector(table, "%cluster_nctaid", constant_source(1));
  for (int k = 0; k < 32; k++) table["%envreg" + std::to_string(k)] = core_register_source(kZero);
  table["%envreg1"] = core_register_source(kEnvreg1);
  table["%envreg2"] = core_register_source(kEnvreg2);
  for (int k = 0; k < 8; k++) {  // performance counters, which do not count
    table["%pm" + std::to_string(k)] = constant_source(0);
    table["%pm" + std::to_string(k) + "_64"] = constant_source(0, 8);
  }
  return table;
}

}  // namespace

const SpecialSource* special_register_of(std::string_view name) {
  static const Table sources = build_table();
  auto entry = sources.find(name);
  return entry == sources.end() ? nullptr : &entry->second;
}

bool is_special_vector(std::string_view name) {
  return !name.empty() && name[0] == '%' && name.find('.') == name.npos &&
         special_register_of(std::string(name) + ".x") != nullptr;
}

}  // namespace vgpu
