#include "answers.h"

#include <initializer_list>
#include <string_view>

#include "../driver/api.h"
#include "refusal.h"

namespace vgpu {
namespace {

using Words = std::initializer_list<std::string_view>;

bool has(std::string_view name, Words words) {
  for (std::string_view word : words)
    if (name.find(word) != name.npos) return true;
  return false;
}
bool begins(std::string_view name, Words words) {
  for (std::string_view word : words)
    if (name.substr(0, word.size()) == word) return true;
  return false;
}

enum class Answer { Creates, Sets, OnStream, Refused };

// What looks like a handle's or a setting's name, but computes.
bool computes(std::string_view name) {
  return begins(name, {"cublasSetMatrix", "cublasSetVector", "cusparseCreateIdentityPermutation", "curandCreatePoisson",
                       "cudnnCreatePersistentRNNPlan"}) ||
         name == "cudnnSetTensor";
}
bool sets(std::string_view name) {
  return has(name, {"Destroy", "SetAttribute", "SetStream", "SetPointers", "SetStridedBatch", "SetTolerance", "SetMaxSweeps",
                    "SetSortEig", "VersionCheck", "_internal"}) ||
         begins(name, {"cublasSet", "cudnnSet", "cudnnBackendInitialize", "cudnnDerive", "cufftSet", "cufftXtSet", "curandSet",
                       "cusparseSet", "cusolverDnSet", "cusolverSpSet", "ncclGroup"});
}
// What computes, of the libraries that TensorFlow calls through its streams; its solvers raise clean errors by themselves.
bool on_stream(std::string_view name) {
  if (begins(name, {"cudnn"}))
    return has(name, {"Forward", "Backward", "Tensor", "Filter", "Im2Col"}) &&
           !begins(name, {"cudnnGet", "cudnnFind", "cudnnCreate"});
  if (begins(name, {"cublas"}))
    return !begins(name, {"cublasLt", "cublasGet"}) && !has(name, {"getr", "matinv", "geam", "geqrf", "gels"});
  return begins(name, {"cufftExec", "cufftXtExec", "curandGenerate"});
}

Answer kind(std::string_view name) {
  if (computes(name)) return on_stream(name) ? Answer::OnStream : Answer::Refused;
  if (sets(name)) return Answer::Sets;
  if (has(name, {"Create"})) return Answer::Creates;
  return on_stream(name) ? Answer::OnStream : Answer::Refused;
}

}  // namespace

int answer(const char* call, void** first) {
  switch (kind(call)) {
    case Answer::Creates: return *first = handle(), kSuccess;
    case Answer::Sets: return kSuccess;
    case Answer::OnStream: return refuse_on_stream(call);
    default: return refuse(call);
  }
}

}  // namespace vgpu
