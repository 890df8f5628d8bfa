// VGPU_REPORT=FILE: a line of JSON for each launch: its kernel, and the atomics whose order its result may depend on.
#pragma once
#include <cstdio>
#include <string>
#include <unordered_map>

#include "core/observer.h"

namespace vgpu {

class Report : public Observer {
 public:
  explicit Report(std::FILE* to) : to_(to) {}
  ~Report() override { std::fclose(to_); }
  void begin(const Launch&) override { places_.clear(), left_out_ = 0; }
  void touch(const Lanes&, const Instruction&, const Touch&) override;
  void end(const Launch&, const Outcome&) override;
  void stood_in(const char* call, uint64_t launch) override;

 private:
  struct Key {
    uint64_t address;
    uint64_t block;  // of shared memory, which all blocks have at the same place or not
    uint32_t line;
    bool operator==(const Key& o) const { return address == o.address && line == o.line && block == o.block; }
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return (k.address * 0x9e3779b97f4a7c15ull) ^ (k.block << 17) ^ (uint64_t(k.line) << 40);
    }
  };
  struct Place {
    Location at;
    Touch::Shows shows;
    uint64_t atomics, first, second;  // the first two threads that differ
  };
  std::string of_lines() const;
  void write(std::string text);

  std::FILE* to_;
  uint64_t written_ = 0, left_out_ = 0;
  std::unordered_map<Key, Place, Hash> places_;
};

}  // namespace vgpu
