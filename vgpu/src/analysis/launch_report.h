// VGPU_REPORT=FILE: a line of JSON for each launch: its kernel, and the atomics whose order its result may depend on.
#pragma once
#include <cstdio>
#include <string>
#include <unordered_map>

#include "core/observer.h"

namespace vgpu {

// What another observer has to say of the launch that has ended.
class LaunchVerdicts {
 public:
  virtual ~LaunchVerdicts() = default;
  virtual std::string verdict() const = 0;  // a JSON object
};

class LaunchReport : public Observer {
 public:
  explicit LaunchReport(std::FILE* to) : to_(to) {}
  ~LaunchReport() override { std::fclose(to_); }
  void on_launch_begin(const Launch&) override { atomic_sites_.clear(), omitted_ = 0; }
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;
  void on_fallback(const char* call, uint64_t launch) override;

  void add_verdicts(const LaunchVerdicts& verdicts) { verdicts_ = &verdicts; }
  void write(std::string text);

 private:
  struct SiteKey {
    uint64_t address;
    uint64_t block;  // of shared memory, which all blocks have at the same place or not
    uint32_t line;
    bool operator==(const SiteKey& o) const { return address == o.address && line == o.line && block == o.block; }
  };
  struct SiteHash {
    size_t operator()(const SiteKey& k) const {
      return (k.address * 0x9e3779b97f4a7c15ull) ^ (k.block << 17) ^ (uint64_t(k.line) << 40);
    }
  };
  struct AtomicSite {
    Location at;
    OrderSensitivity sensitivity;
    uint64_t atomics, first, second;  // the first two threads that differ
  };
  std::string order_dependent_lines() const;

  std::FILE* to_;
  const LaunchVerdicts* verdicts_ = nullptr;
  uint64_t written_ = 0, omitted_ = 0;
  std::unordered_map<SiteKey, AtomicSite, SiteHash> atomic_sites_;
};

}  // namespace vgpu
