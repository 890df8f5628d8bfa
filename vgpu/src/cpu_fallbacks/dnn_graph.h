// Descriptors of cuDNN's graph interface (cudnn_graph.h). A program sets attributes one by one and finalizes the descriptor;
// after that nothing changes it. Operations refer to tensors, an operation graph to operations, an execution plan to a graph.
#pragma once
#include <cstring>
#include <map>
#include <memory>

#include "dnn.h"

namespace vgpu {

// cudnn_graph.h: cudnnBackendDescriptorType_t, as far as a fallback knows them.
enum class GraphDescriptorType : int {
  Pointwise = 0,
  Convolution = 1,
  Engine = 2,
  EngineConfig = 3,
  EngineHeuristics = 4,
  ExecutionPlan = 5,
  KnobChoice = 7,
  ConvolutionForward = 10,
  ConvolutionBackwardFilter = 11,
  ConvolutionBackwardData = 12,
  PointwiseOperation = 13,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17
};

// cudnn_graph.h: cudnnBackendAttributeName_t. Those of convolutions are in a table of their own.
enum GraphAttributeName : int {
  kPointwiseMode = 0,
  kReluLowerClip = 3,
  kReluUpperClip = 4,
  kReluLowerSlope = 5,
  kEluAlpha = 6,
  kConvolutionMode = 101,
  kDilations = 102,
  kFilterStrides = 103,
  kPostPaddings = 104,
  kPrePaddings = 105,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfiguredEngine = 300,
  kKnobChoices = 302,
  kPlannedConfig = 401,
  kWorkspaceSize = 402,
  kComputedIntermediateIds = 403,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseAlpha1 = 754,
  kPointwiseAlpha2 = 755,
  kGraphOperations = 801,
  kEngineCount = 802,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorVectorCount = 904,
  kTensorUniqueId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kTensorRaggedOffset = 913,
  kPackUniqueIds = 1000,
  kPackPointers = 1001,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kKnobInfo = 1302,
  kNumericalNotes = 1303,
  kLayoutInfo = 1304,
  kBehaviorNotes = 1305
};

// cudnn_graph.h: cudnnBackendAttributeType_t, as far as their elements are read here.
enum class AttributeType : int { Boolean = 2, Int64 = 3, Float = 4, Double = 5, Pointer = 6, Descriptor = 15 };

struct GraphDescriptor;
using GraphDescriptorRef = std::shared_ptr<const GraphDescriptor>;

struct GraphAttribute {
  int type = 0;
  int64_t count = 0;
  std::vector<char> bytes;                      // the elements, unless they are descriptors
  std::vector<GraphDescriptorRef> descriptors;  // the elements, if they are
};

struct GraphDescriptor {
  explicit GraphDescriptor(int t) : type(t) {}
  int type;
  bool is_finalized = false;
  std::map<int, GraphAttribute> attributes;  // by cudnnBackendAttributeName_t

  bool has(int name) const { return attributes.count(name) != 0; }
  bool is(GraphDescriptorType other) const { return type == int(other); }

  // The elements of an attribute; InvalidValue if it is not set or has elements of another size.
  template <class T> std::vector<T> values(int name) const {
    const GraphAttribute& attribute = find(name);
    std::vector<T> values(static_cast<size_t>(attribute.count));
    if (attribute.bytes.size() != values.size() * sizeof(T)) throw InvalidValue();
    if (!values.empty()) std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
    return values;
  }
  template <class T> T value(int name) const {
    const std::vector<T> elements = values<T>(name);
    if (elements.size() != 1) throw InvalidValue();
    return elements[0];
  }
  template <class T> T value(int name, T if_not_set) const { return has(name) ? value<T>(name) : if_not_set; }
  bool flag(int name) const { return value<uint8_t>(name, 0) != 0; }
  double real(int name, double if_not_set) const;  // of an attribute that is a float or a double
  const GraphDescriptor& descriptor(int name) const;
  const std::vector<GraphDescriptorRef>& descriptors(int name) const { return find(name).descriptors; }

 private:
  const GraphAttribute& find(int name) const;
};

// Checks the descriptor of an operation; throws InvalidValue or FallbackUnsupported.
void check_operation(const GraphDescriptor& operation);
// Checks the plan; returns the operation that computes its graph, in the graph's order, on the pointers of the variant pack.
Operation prepare_graph(const GraphDescriptor& plan, const GraphDescriptor& variant_pack);
// The call that runs the plan, with the kind of its first operation, as reports name it.
const char* call_of_plan(const GraphDescriptor& plan);

}  // namespace vgpu
