// vprintf and __assertfail: what a kernel says goes to standard output at once, lane by lane as the schedule has them.  And
// malloc and free, in the same order.
#include "system_calls.h"

#include <cstdio>
#include <cstring>

#include "address.h"
#include "core/instruction_set.h"

namespace vgpu {
namespace {

constexpr size_t kMaxFormatBytes = 4096;  // bytes of a string, and of a field's width

template <class T> T scratch(const WarpContext& warp, uint32_t lane, uint32_t offset) {
  T value;
  std::memcpy(&value, warp.scratch + size_t(lane) * warp.scratch_bytes + offset, sizeof value);
  return value;
}

// Reads what a lane's generic address points to; what may not be read is a fault of the launch.
class FormatReader {
 public:
  FormatReader(WarpContext& warp, uint32_t lane, uint64_t at) : w_(warp), lane_(lane), at_(at) {}

  template <class T> T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value = {};
    if (allowed(sizeof value)) std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    std::string all;
    while (all.size() < kMaxFormatBytes) {
      char c = next<char>();
      if (!c) break;
      all += c;
    }
    return all;
  }

 private:
  bool allowed(uint32_t bytes) {
    if (is_accessible(w_, lane_, at_, bytes)) return true;
    w_.set_fault(KernelFault::OutOfBounds, at_);
    return false;
  }

  WarpContext& w_;
  uint32_t lane_;
  uint64_t at_;
};

template <class T> std::string one(const std::string& how, T value) {
  char text[kMaxFormatBytes];
  std::snprintf(text, sizeof text, how.c_str(), value);
  return text;
}

// A field such as `%-8.3lld`, from its mark on; `at` goes behind it.
std::string field(const std::string& format, size_t& at, FormatReader& arguments, WarpContext& warp, uint32_t lane) {
  std::string how = "%";
  bool wide = false;
  for (at++; at < format.size() && std::strchr("-+ #0123456789.*hljztL", format[at]); at++) {
    if (format[at] == '*') how += std::to_string(arguments.next<int32_t>() % int32_t(kMaxFormatBytes));
    else if (std::strchr("hljztL", format[at])) wide |= format[at] != 'h' && format[at] != 'L';
    else how += format[at];
  }
  if (at >= format.size()) return how;
  char what = format[at++];
  if (std::strchr("di", what)) return one(how + "lld", wide ? arguments.next<long long>() : arguments.next<int32_t>());
  if (std::strchr("uoxX", what))
    return one(how + "ll" + what, wide ? arguments.next<unsigned long long>() : arguments.next<uint32_t>());
  if (std::strchr("eEfFgGaA", what)) return one(how + what, arguments.next<double>());
  if (what == 'c') return one(how + what, arguments.next<int32_t>());
  if (what == 'p') return one(how + what, reinterpret_cast<void*>(arguments.next<uint64_t>()));
  if (what == 's') return one(how + what, FormatReader(warp, lane, arguments.next<uint64_t>()).text().c_str());
  return what == '%' ? "%" : how + what;
}

template <class F> void in_order(WarpContext& warp, F f) {
  uint8_t order[kWarpSize];
  uint32_t n = warp.schedule->permute_lanes(warp.active_mask, order);
  for (uint32_t k = 0; k < n && warp.fault == KernelFault::None; k++) f(order[k]);
}

// a: where the format's address lies in the scratch space; b: that of the arguments' address; d: the result's.
void print(WarpContext& warp, const Instruction& i) {
  in_order(warp, [&](uint32_t lane) {
    std::string format = FormatReader(warp, lane, scratch<uint64_t>(warp, lane, i.a)).text(), said;
    FormatReader arguments(warp, lane, scratch<uint64_t>(warp, lane, i.b));
    int32_t fields = 0;
    for (size_t at = 0; at < format.size() && warp.fault == KernelFault::None;) {
      if (format[at] != '%') said += format[at++];
      else said += field(format, at, arguments, warp, lane), fields++;
    }
    std::fwrite(said.data(), 1, said.size(), stdout);
    if (i.count) std::memcpy(warp.scratch + size_t(lane) * warp.scratch_bytes + i.d, &fields, sizeof fields);
  });
  std::fflush(stdout);
}

// a, b, c: where message, file and line lie in the scratch space.
void fail_assertion(WarpContext& warp, const Instruction& i) {
  uint32_t lane = static_cast<uint32_t>(__builtin_ctz(warp.active_mask));
  auto text = [&](uint32_t offset) { return FormatReader(warp, lane, scratch<uint64_t>(warp, lane, offset)).text(); };
  std::string message = text(i.a), file = text(i.b);
  std::fprintf(stderr, "%s:%u: assertion `%s` failed\n", file.c_str(), scratch<uint32_t>(warp, lane, i.c), message.c_str());
  warp.set_fault(KernelFault::Assertion, 0);
}

// a: where the number of bytes lies in the scratch space; d: the address.
void device_malloc(WarpContext& warp, const Instruction& i) {
  in_order(warp, [&](uint32_t lane) {
    uint64_t at = warp.heap->allocate(scratch<uint64_t>(warp, lane, i.a));
    if (i.count) std::memcpy(warp.scratch + size_t(lane) * warp.scratch_bytes + i.d, &at, sizeof at);
  });
}
void device_free(WarpContext& warp, const Instruction& i) {
  if (warp.deferred) warp.deferred->settle_all();  // what comes late may come to this memory
  in_order(warp, [&](uint32_t lane) {
    uint64_t at = scratch<uint64_t>(warp, lane, i.a);
    if (at && !warp.heap->deallocate(at)) warp.set_fault(KernelFault::OutOfBounds, at);
  });
}

}  // namespace

bool decode_system_call(const std::string& name, const std::vector<uint32_t>& arguments, const std::vector<uint32_t>& results,
                        Instruction& i) {
  i.kind = InstructionKind::SchedulingPoint;
  i.count = !results.empty();
  if (i.count) i.d = results[0];
  if (name == "vprintf" && arguments.size() == 2) {
    i.execute = print, i.a = arguments[0], i.b = arguments[1];
    return true;
  }
  if (name == "__assertfail" && arguments.size() == 5) {
    i.execute = fail_assertion, i.a = arguments[0], i.b = arguments[1], i.c = arguments[2];
    return true;
  }
  if ((name == "malloc" || name == "free") && arguments.size() == 1) {
    i.execute = name == "free" ? device_free : device_malloc, i.a = arguments[0];
    return true;
  }
  return false;
}

}  // namespace vgpu
