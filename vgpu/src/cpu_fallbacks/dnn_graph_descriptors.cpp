// cuDNN's cudnnBackend...() calls. Descriptors store their attributes; where the fallback is off, an operation is refused when
// it is finalized, by its kind, and so is everything after the operations.
#include <algorithm>

#include "dnn_graph.h"
#include "library_handles.h"
#include "vendor_stubs/library_status.h"
#include "vendor_stubs/unsupported_call.h"

using namespace vgpu;

namespace {

struct Handle { std::shared_ptr<GraphDescriptor> descriptor; };  // cudnnBackendDescriptor_t

const LibraryStatus& cudnn_status() { return *library_status("cudnn"); }

// cudnn_graph.h: cudnnBackendAttributeType_t. 0: no such type.
size_t element_size(int type) {
  switch (type) {
    case 0:
    case 3:
    case 5:
    case 6:
    case 15: return 8;  // a handle, int64, double, a pointer, a descriptor
    case 26: return 16;  // a fraction
    case 2:
    case 24: return 1;  // a boolean, a character
    default: return type >= 0 && type <= 30 ? 4 : 0;  // an enumeration, int32, float
  }
}

void set_number(GraphDescriptor& descriptor, int name, int64_t value) {
  GraphAttribute attribute{int(AttributeType::Int64), 1, std::vector<char>(sizeof value), {}};
  std::memcpy(attribute.bytes.data(), &value, sizeof value);
  descriptor.attributes[name] = std::move(attribute);
}
void set_descriptor(GraphDescriptor& descriptor, int name, GraphDescriptorRef value) {
  descriptor.attributes[name] = {int(AttributeType::Descriptor), 1, {}, {std::move(value)}};
}
void set_empty(GraphDescriptor& descriptor, std::initializer_list<int> names) {
  for (int name : names) descriptor.attributes.emplace(name, GraphAttribute());
}

std::shared_ptr<GraphDescriptor> finalized(GraphDescriptorType type) {
  auto descriptor = std::make_shared<GraphDescriptor>(int(type));
  descriptor->is_finalized = true;
  return descriptor;
}

// One engine computes every graph: it has no knobs, nothing random, and needs no memory.
void finalize_engine(GraphDescriptor& engine) {
  engine.descriptor(kEngineGraph);  // throws InvalidValue if it is not set
  if (engine.value<int64_t>(kEngineIndex) != 0) throw FallbackUnsupported();
  set_empty(engine, {kKnobInfo, kNumericalNotes, kLayoutInfo, kBehaviorNotes});
}
void finalize_heuristics(GraphDescriptor& heuristics) {
  auto engine = finalized(GraphDescriptorType::Engine), config = finalized(GraphDescriptorType::EngineConfig);
  engine->attributes[kEngineGraph] = heuristics.attributes.at(kHeuristicsGraph);
  set_number(*engine, kEngineIndex, 0);
  finalize_engine(*engine);
  set_descriptor(*config, kConfiguredEngine, engine);
  set_empty(*config, {kKnobChoices});
  set_descriptor(heuristics, kHeuristicsResults, config);
}

void finalize(GraphDescriptor& descriptor) {
  switch (GraphDescriptorType(descriptor.type)) {
    case GraphDescriptorType::Pointwise:
    case GraphDescriptorType::Convolution:
    case GraphDescriptorType::KnobChoice:
    case GraphDescriptorType::VariantPack:
    case GraphDescriptorType::Tensor: return;
    case GraphDescriptorType::ConvolutionForward:
    case GraphDescriptorType::ConvolutionBackwardFilter:
    case GraphDescriptorType::ConvolutionBackwardData:
    case GraphDescriptorType::PointwiseOperation: return check_operation(descriptor);
    case GraphDescriptorType::OperationGraph:
      if (descriptor.descriptors(kGraphOperations).empty()) throw InvalidValue();
      return set_number(descriptor, kEngineCount, 1);
    case GraphDescriptorType::EngineHeuristics: descriptor.descriptor(kHeuristicsGraph); return finalize_heuristics(descriptor);
    case GraphDescriptorType::Engine: return finalize_engine(descriptor);
    case GraphDescriptorType::EngineConfig:
      descriptor.descriptor(kConfiguredEngine);
      return set_empty(descriptor, {kKnobChoices});
    case GraphDescriptorType::ExecutionPlan:
      call_of_plan(descriptor);  // throws InvalidValue if it has no graph
      set_empty(descriptor, {kComputedIntermediateIds});
      return set_number(descriptor, kWorkspaceSize, 0);
  }
  throw FallbackUnsupported();
}

// How reports name a descriptor that is refused.
const char* call_of_finalize(int type) {
  switch (GraphDescriptorType(type)) {
    case GraphDescriptorType::ConvolutionForward: return "cudnnBackendFinalize(CONVOLUTION_FORWARD)";
    case GraphDescriptorType::ConvolutionBackwardFilter: return "cudnnBackendFinalize(CONVOLUTION_BACKWARD_FILTER)";
    case GraphDescriptorType::ConvolutionBackwardData: return "cudnnBackendFinalize(CONVOLUTION_BACKWARD_DATA)";
    default: return "cudnnBackendFinalize";
  }
}

// A graph describes before it computes. Where the fallback is off, descriptors of values are accepted, so that the operation
// is what is refused: its name says more.
bool is_value_descriptor(int type) {
  const GraphDescriptorType known = GraphDescriptorType(type);
  return known == GraphDescriptorType::Pointwise || known == GraphDescriptorType::Convolution ||
         known == GraphDescriptorType::Tensor;
}

bool set_descriptors(GraphAttribute& attribute, const void* elements) {
  for (int64_t k = 0; k < attribute.count; k++) {
    const Handle* handle = static_cast<Handle* const*>(elements)[k];
    if (!handle || !handle->descriptor->is_finalized) return false;
    attribute.descriptors.push_back(handle->descriptor);
  }
  return true;
}

// Fills descriptors that the program has created for this.
bool get_descriptors(const GraphAttribute& attribute, int64_t count, void* elements) {
  for (int64_t k = 0; k < count; k++) {
    Handle* handle = static_cast<Handle**>(elements)[k];
    if (!handle || handle->descriptor->type != attribute.descriptors[size_t(k)]->type) return false;
    handle->descriptor = std::const_pointer_cast<GraphDescriptor>(attribute.descriptors[size_t(k)]);
  }
  return true;
}

}  // namespace

API int cudnnBackendCreateDescriptor(int type, Handle** handle) {
  if (!handle) return cudnn_status().invalid_value;
  return *handle = new Handle{std::make_shared<GraphDescriptor>(type)}, kSuccess;
}
API int cudnnBackendInitialize(Handle* handle) {
  if (!handle) return cudnn_status().invalid_value;
  return handle->descriptor = std::make_shared<GraphDescriptor>(handle->descriptor->type), kSuccess;
}
API int cudnnBackendDestroyDescriptor(Handle* handle) { return delete handle, kSuccess; }

API int cudnnBackendSetAttribute(Handle* handle, int name, int type, int64_t count, const void* elements) {
  const size_t size = element_size(type);
  if (!handle || count < 0 || !size || (count && !elements)) return cudnn_status().invalid_value;
  if (handle->descriptor->is_finalized) return cudnn_status().not_initialized;
  GraphAttribute attribute{type, count, {}, {}};
  if (type == int(AttributeType::Descriptor)) {
    if (!set_descriptors(attribute, elements)) return cudnn_status().invalid_value;
  } else if (count) {
    const char* bytes = static_cast<const char*>(elements);
    attribute.bytes.assign(bytes, bytes + size_t(count) * size);
  }
  handle->descriptor->attributes[name] = std::move(attribute);
  return kSuccess;
}

API int cudnnBackendGetAttribute(Handle* handle, int name, int type, int64_t requested, int64_t* count, void* elements) {
  if (!handle || requested < 0) return cudnn_status().invalid_value;
  const GraphDescriptor& descriptor = *handle->descriptor;
  if (!descriptor.is_finalized) return cudnn_status().not_initialized;
  const auto entry = descriptor.attributes.find(name);
  if (entry == descriptor.attributes.end()) return report_unsupported("cudnnBackendGetAttribute");
  const GraphAttribute attribute = entry->second;  // a copy: the program may fill this very descriptor
  if (attribute.count && attribute.type != type) return cudnn_status().invalid_value;
  if (count) *count = attribute.count;
  const int64_t given = elements ? std::min(requested, attribute.count) : 0;
  if (type == int(AttributeType::Descriptor))
    return get_descriptors(attribute, given, elements) ? kSuccess : cudnn_status().invalid_value;
  if (given) std::memcpy(elements, attribute.bytes.data(), size_t(given) * element_size(type));
  return kSuccess;
}

API int cudnnBackendFinalize(Handle* handle) {
  if (!handle) return cudnn_status().invalid_value;
  GraphDescriptor& descriptor = *handle->descriptor;
  if (is_value_descriptor(descriptor.type)) return descriptor.is_finalized = true, kSuccess;
  return run_if_fallback_enabled(call_of_finalize(descriptor.type),
                                 [&] { finalize(descriptor), descriptor.is_finalized = true; });
}

API int cudnnBackendExecute(void* library, Handle* plan, Handle* variant_pack) {
  if (!plan || !variant_pack) return cudnn_status().invalid_value;
  const GraphDescriptor &planned = *plan->descriptor, &pack = *variant_pack->descriptor;
  if (!planned.is(GraphDescriptorType::ExecutionPlan) || !planned.is_finalized || !pack.is(GraphDescriptorType::VariantPack) ||
      !pack.is_finalized)
    return cudnn_status().invalid_value;
  return run_fallback_on_stream(call_of_plan(planned), stream_of_handle(library), [&] { return prepare_graph(planned, pack); });
}
