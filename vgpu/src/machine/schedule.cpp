#include "schedule.h"

#include <algorithm>
#include <stdexcept>

namespace vgpu {

Schedule Schedule::parse(const std::string& text) {
  if (text == "serial") return Schedule(Kind::Serial, 0);
  if (text == "reverse") return Schedule(Kind::Reverse, 0);
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon), seed = colon == std::string::npos ? "" : text.substr(colon + 1);
  bool digits = !seed.empty() && seed.size() < 20 && seed.find_first_not_of("0123456789") == std::string::npos;
  if (digits && kind == "random") return Schedule(Kind::Random, std::stoull(seed));
  if (digits && kind == "adversary") return Schedule(Kind::Adversary, std::stoull(seed));
  throw std::invalid_argument(text + " is no schedule: serial, reverse, random:SEED or adversary:SEED");
}

void Schedule::begin(uint64_t launch) { random_ = Random(seed_ * 0x2545f4914f6cdd1dull + launch * 0x9e3779b1ull + 77); }

std::vector<uint32_t> Schedule::block_order(uint32_t blocks) {
  std::vector<uint32_t> order(blocks);
  for (uint32_t k = 0; k < blocks; k++) order[k] = kind_ == Kind::Reverse ? blocks - 1 - k : k;
  if (!serial())
    for (uint32_t k = blocks; k > 1; k--) std::swap(order[k - 1], order[random_.below(k)]);
  return order;
}

uint32_t Schedule::pick(uint32_t among) {
  if (kind_ == Kind::Serial) return 0;
  return kind_ == Kind::Reverse ? among - 1 : random_.below(among);
}

bool Schedule::yields() { return kind_ == Kind::Adversary || (kind_ == Kind::Random && (random_.next() & 1)); }

uint32_t Schedule::lane_order(uint32_t mask, uint8_t order[32]) {
  uint32_t n = 0;
  for (uint32_t left = mask; left; left &= left - 1) order[n++] = static_cast<uint8_t>(__builtin_ctz(left));
  if (kind_ == Kind::Reverse) std::reverse(order, order + n);
  if (!serial())
    for (uint32_t k = n; k > 1; k--) std::swap(order[k - 1], order[random_.below(k)]);
  return n;
}

float Schedule::event_milliseconds() {
  return serial() ? 1.0f : 0.5f + static_cast<float>(random_.below(1000)) / 1000.0f;
}

}  // namespace vgpu
