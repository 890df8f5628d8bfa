#include "refusal.h"

#include "../driver/api.h"
#include "../driver/refused.h"

namespace vgpu {

int refuse(const char* call, int status) { return note_refused(call), status; }

int refuse_on_stream(const char* call, int status) {
  refuse(call, status);
  return raise_in_python(call) ? kSuccess : status;
}

}  // namespace vgpu
