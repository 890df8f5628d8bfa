// VGPU_REPORT=FILE: writes a line of JSON for each launch, with its kernel and its order-dependent atomics.
#pragma once
#include <cstdio>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/observer.h"

namespace vgpu {

// The verdict of another observer about the launch that has just ended.
class LaunchVerdicts {
 public:
  virtual ~LaunchVerdicts() = default;
  virtual std::string verdict() const = 0;  // a JSON object
};

class LaunchReport : public Observer {
 public:
  explicit LaunchReport(std::FILE* file) : file_(file) {}
  ~LaunchReport() override { std::fclose(file_); }
  void on_launch_begin(const Launch&) override { atomic_sites_.clear(), omitted_ = 0; }
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;
  // The CPU computes a vendor library's call.  launch: number of the next launch.
  void on_fallback(const char* call, uint64_t launch) override;

  void add_verdicts(const LaunchVerdicts& verdicts) { verdicts_ = &verdicts; }
  // A launch failed before it began, so that nothing of its kernel ran.  Needs add_verdicts().
  void add_refused_launch(const std::string& kernel);
  // The program asked for something that the virtual GPU does not support.
  void add_unsupported(const std::string& name);
  void write(std::string text);

 private:
  struct SiteKey {
    uint64_t address;
    uint64_t block;  // number of the block plus one for shared memory, otherwise 0
    uint32_t position;  // Instruction::position
    bool operator==(const SiteKey& other) const {
      return address == other.address && position == other.position && block == other.block;
    }
  };
  struct SiteHash {
    size_t operator()(const SiteKey& key) const {
      return (key.address * 0x9e3779b97f4a7c15ull) ^ (key.block << 17) ^ (uint64_t(key.position) << 40);
    }
  };
  struct AtomicSite {
    Location at;
    OrderSensitivity sensitivity;
    uint64_t atomics;
    uint64_t first, second;  // the first two different threads
  };
  std::string order_dependent_lines() const;

  std::FILE* file_;
  std::mutex lock_;  // of the file
  const LaunchVerdicts* verdicts_ = nullptr;
  uint64_t written_ = 0, omitted_ = 0;  // bytes of the file; atomics of the launch for which there was no room
  std::unordered_map<SiteKey, AtomicSite, SiteHash> atomic_sites_;
};

}  // namespace vgpu
