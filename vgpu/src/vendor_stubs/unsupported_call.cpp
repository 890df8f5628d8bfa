// Answers a vendor call that has no implementation: logs its name and returns the library's status.
#include "unsupported_call.h"

#include "driver/api.h"
#include "driver/unsupported_log.h"
#include "library_status.h"

namespace vgpu {

int report_unsupported(const char* call) {
  note_unsupported(call);
  const LibraryStatus* status = library_status(call);
  return status ? status->not_supported : kNotSupported;
}

int report_unsupported_on_stream(const char* call) {
  int status = report_unsupported(call);
  return raise_python_error(call) ? kSuccess : status;  // a stream that failed would end TensorFlow's process
}

}  // namespace vgpu
