// Formats the output of a kernel's printf(), and writes it to standard output.
#include "device_output.h"

#include <cstdio>
#include <cstring>

#include "access.h"

namespace vgpu {
namespace {

constexpr size_t kMaxFormatBytes = 4096;  // limit of a string, and of a field's width

// Reads values at a lane's generic address; an address that may not be read is a fault of the launch.
class FormatReader {
 public:
  FormatReader(WarpContext& warp, uint32_t lane, uint64_t address, ToHostAddress to_host)
      : warp_(warp), lane_(lane), address_(to_host(warp, lane, address)) {}

  template <class T> T next() {
    address_ = (address_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value = {};
    if (check_readable(sizeof value)) std::memcpy(&value, reinterpret_cast<const void*>(address_), sizeof value);
    address_ += sizeof value;
    return value;
  }
  std::string text() {
    std::string result;
    while (result.size() < kMaxFormatBytes) {
      char c = next<char>();
      if (!c) break;
      result += c;
    }
    return result;
  }

 private:
  bool check_readable(uint32_t bytes) {
    if (is_accessible(warp_, lane_, address_, bytes)) return true;
    warp_.set_fault(KernelFault::OutOfBounds, address_);
    return false;
  }

  WarpContext& warp_;
  uint32_t lane_;
  uint64_t address_;
};

template <class T> std::string format_value(const std::string& specification, T value) {
  char text[kMaxFormatBytes];
  std::snprintf(text, sizeof text, specification.c_str(), value);
  return text;
}

// Formats the field that begins at format[position], such as `%-8.3lld`, and moves `position` behind it.
std::string format_field(const std::string& format, size_t& position, FormatReader& arguments, WarpContext& warp, uint32_t lane,
                         ToHostAddress to_host) {
  std::string specification = "%";
  bool wide = false;
  for (position++; position < format.size() && std::strchr("-+ #0123456789.*hljztL", format[position]); position++) {
    if (format[position] == '*') specification += std::to_string(arguments.next<int32_t>() % int32_t(kMaxFormatBytes));
    else if (std::strchr("hljztL", format[position])) wide |= format[position] != 'h' && format[position] != 'L';
    else specification += format[position];
  }
  if (position >= format.size()) return specification;
  char conversion = format[position++];
  if (std::strchr("di", conversion))
    return format_value(specification + "lld", wide ? arguments.next<long long>() : arguments.next<int32_t>());
  if (std::strchr("uoxX", conversion))
    return format_value(specification + "ll" + conversion,
                        wide ? arguments.next<unsigned long long>() : arguments.next<uint32_t>());
  if (std::strchr("eEfFgGaA", conversion)) return format_value(specification + conversion, arguments.next<double>());
  if (conversion == 'c') return format_value(specification + conversion, arguments.next<int32_t>());
  if (conversion == 'p') return format_value(specification + conversion, reinterpret_cast<void*>(arguments.next<uint64_t>()));
  if (conversion == 's')
    return format_value(specification + conversion,
                        FormatReader(warp, lane, arguments.next<uint64_t>(), to_host).text().c_str());
  return conversion == '%' ? "%" : specification + conversion;
}

}  // namespace

int32_t print_formatted(WarpContext& warp, uint32_t lane, uint64_t format_address, uint64_t arguments_address,
                        ToHostAddress to_host) {
  const std::string format = read_text(warp, lane, format_address, to_host);
  std::string output;
  FormatReader arguments(warp, lane, arguments_address, to_host);
  int32_t fields = 0;
  for (size_t position = 0; position < format.size() && warp.fault == KernelFault::None;) {
    if (format[position] != '%') output += format[position++];
    else output += format_field(format, position, arguments, warp, lane, to_host), fields++;
  }
  std::fwrite(output.data(), 1, output.size(), stdout);
  std::fflush(stdout);
  return fields;
}

std::string read_text(WarpContext& warp, uint32_t lane, uint64_t address, ToHostAddress to_host) {
  return FormatReader(warp, lane, address, to_host).text();
}

}  // namespace vgpu
