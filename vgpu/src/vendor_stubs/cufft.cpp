// cuFFT's plans: they must be made, or frameworks end the process; their execution is refused (cufft.def).
#include "driver/api.h"

using namespace vgpu;

namespace {

int made(int* plan) {
  static std::atomic<int> last{0};
  return *plan = ++last, kSuccess;
}
int needs_nothing(size_t* bytes) { return *bytes = 0, kSuccess; }

}  // namespace

API int cufftCreate(int* plan) { return made(plan); }
API int cufftPlan1d(int* plan, int, int, int) { return made(plan); }
API int cufftPlan2d(int* plan, int, int, int) { return made(plan); }
API int cufftPlan3d(int* plan, int, int, int, int) { return made(plan); }
API int cufftPlanMany(int* plan, int, int*, int*, int, int, int*, int, int, int, int) { return made(plan); }
API int cufftMakePlan1d(int, int, int, int, size_t* bytes) { return needs_nothing(bytes); }
API int cufftMakePlan2d(int, int, int, int, size_t* bytes) { return needs_nothing(bytes); }
API int cufftMakePlan3d(int, int, int, int, int, size_t* bytes) { return needs_nothing(bytes); }
API int cufftMakePlanMany(int, int, int*, int*, int, int, int*, int, int, int, int, size_t* bytes) {
  return needs_nothing(bytes);
}
API int cufftMakePlanMany64(int, int, int64_t*, int64_t*, int64_t, int64_t, int64_t*, int64_t, int64_t, int, int64_t,
                            size_t* bytes) {
  return needs_nothing(bytes);
}
API int cufftGetSize(int, size_t* bytes) { return needs_nothing(bytes); }
API int cufftGetVersion(int* version) { return *version = 11000, kSuccess; }
