// Formats what a kernel says by printf and writes it to standard output.
#include "device_output.h"

#include <cstdio>
#include <cstring>

#include "access.h"

namespace vgpu {
namespace {

constexpr size_t kMaxFormatBytes = 4096;  // bytes of a string, and of a field's width

// Reads what a lane's generic address points to; what may not be read is a fault of the launch.
class FormatReader {
 public:
  FormatReader(WarpContext& warp, uint32_t lane, uint64_t at, ToHostAddress to_host)
      : w_(warp), lane_(lane), at_(to_host(warp, lane, at)) {}

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
std::string field(const std::string& format, size_t& at, FormatReader& arguments, WarpContext& warp, uint32_t lane,
                  ToHostAddress to_host) {
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
  if (what == 's') return one(how + what, FormatReader(warp, lane, arguments.next<uint64_t>(), to_host).text().c_str());
  return what == '%' ? "%" : how + what;
}

}  // namespace

int32_t print_formatted(WarpContext& warp, uint32_t lane, uint64_t format_address, uint64_t arguments_address,
                        ToHostAddress to_host) {
  const std::string format = read_text(warp, lane, format_address, to_host);
  std::string said;
  FormatReader arguments(warp, lane, arguments_address, to_host);
  int32_t fields = 0;
  for (size_t at = 0; at < format.size() && warp.fault == KernelFault::None;) {
    if (format[at] != '%') said += format[at++];
    else said += field(format, at, arguments, warp, lane, to_host), fields++;
  }
  std::fwrite(said.data(), 1, said.size(), stdout);
  std::fflush(stdout);
  return fields;
}

std::string read_text(WarpContext& warp, uint32_t lane, uint64_t address, ToHostAddress to_host) {
  return FormatReader(warp, lane, address, to_host).text();
}

}  // namespace vgpu
