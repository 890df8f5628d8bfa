// The operations of cuDNN's graph interface that are computed on the CPU: convolutions, their gradients, pointwise operations.
#include "dnn_graph.h"

#include <algorithm>
#include <cmath>

#include "arithmetic/elementary.h"
#include "dnn_convolution.h"

namespace vgpu {
namespace {

// The attributes of an operation of convolution (cudnn_graph.h: cudnnBackendAttributeName_t). Of a backward operation, y is dy,
// and x or w, which it writes, is dx or dw.
struct ConvolutionAttributes {
  GraphDescriptorType type;
  int alpha, beta, convolution, w, x, y;
  const char* call;
};
constexpr ConvolutionAttributes kConvolutions[] = {
    {GraphDescriptorType::ConvolutionForward, 700, 701, 702, 703, 704, 705, "cudnnBackendExecute(CONVOLUTION_FORWARD)"},
    {GraphDescriptorType::ConvolutionBackwardData, 706, 707, 708, 709, 710, 711,
     "cudnnBackendExecute(CONVOLUTION_BACKWARD_DATA)"},
    {GraphDescriptorType::ConvolutionBackwardFilter, 712, 713, 714, 715, 716, 717,
     "cudnnBackendExecute(CONVOLUTION_BACKWARD_FILTER)"}};

const ConvolutionAttributes* convolution_attributes(const GraphDescriptor& operation) {
  for (const ConvolutionAttributes& attributes : kConvolutions)
    if (operation.is(attributes.type)) return &attributes;
  return nullptr;
}

struct GraphTensor {
  TensorDescriptor descriptor;
  int64_t unique_id;
  bool is_virtual;  // without memory: one operation writes it, and a later one reads it
  void* data = nullptr;

  Tensor tensor() const { return {descriptor, data}; }
};

GraphTensor tensor_of(const GraphDescriptor& operation, int attribute) {
  const GraphDescriptor& given = operation.descriptor(attribute);
  if (!given.is(GraphDescriptorType::Tensor)) throw InvalidValue();
  if (given.value<int64_t>(kTensorVectorCount, 1) != 1 || given.flag(kTensorIsByValue) || given.has(kTensorRaggedOffset))
    throw FallbackUnsupported();
  GraphTensor tensor{{}, given.value<int64_t>(kTensorUniqueId), given.flag(kTensorIsVirtual)};
  tensor.descriptor.kind = given.value<int>(kTensorDataType);
  tensor.descriptor.dims = given.values<int64_t>(kTensorDimensions);
  tensor.descriptor.strides = given.values<int64_t>(kTensorStrides);
  tensor.descriptor.check();
  tensor.descriptor.type();  // throws FallbackUnsupported for other types
  return tensor;
}

// Values of the tensors without memory, by their unique ids, in the graph's type of computing.
template <class T> using VirtualValues = std::map<int64_t, std::vector<T>>;

template <class T> std::vector<T> load(const GraphTensor& tensor, const VirtualValues<T>& virtuals) {
  if (!tensor.is_virtual) return load_tensor<T>(tensor.tensor());
  const auto entry = virtuals.find(tensor.unique_id);
  if (entry == virtuals.end() || int64_t(entry->second.size()) != tensor.descriptor.count()) throw InvalidValue();
  return entry->second;
}

template <class T>
void store(const GraphTensor& tensor, std::vector<T> values, VirtualValues<T>& virtuals, const Scales& scales = Scales()) {
  if (!tensor.is_virtual) return store_tensor(tensor.tensor(), values, scales);
  for (T& value : values) value *= T(scales.alpha);
  virtuals[tensor.unique_id] = std::move(values);
}

class GraphOperation {
 public:
  virtual ~GraphOperation() = default;
  virtual void run(VirtualValues<float>& virtuals) const = 0;
  virtual void run(VirtualValues<double>& virtuals) const = 0;
  virtual std::vector<GraphTensor*> tensors() = 0;
};

class ConvolutionOperation : public GraphOperation {
 public:
  ConvolutionOperation(const GraphDescriptor& operation, const ConvolutionAttributes& attributes)
      : type_(attributes.type),
        scales_(operation.real(attributes.alpha, 1), operation.real(attributes.beta, 0)),
        x_(tensor_of(operation, attributes.x)),
        w_(tensor_of(operation, attributes.w)),
        y_(tensor_of(operation, attributes.y)),
        shapes_(x_.descriptor, w_.descriptor, convolution(operation.descriptor(attributes.convolution)), y_.descriptor) {}

  void run(VirtualValues<float>& virtuals) const override { compute(virtuals); }
  void run(VirtualValues<double>& virtuals) const override { compute(virtuals); }
  std::vector<GraphTensor*> tensors() override { return {&x_, &w_, &y_}; }

 private:
  template <class T> void compute(VirtualValues<T>& virtuals) const {
    if (type_ == GraphDescriptorType::ConvolutionForward)
      store(y_, convolve(shapes_, load(x_, virtuals), load(w_, virtuals)), virtuals, scales_);
    else if (type_ == GraphDescriptorType::ConvolutionBackwardData)
      store(x_, convolve_backward_data(shapes_, load(w_, virtuals), load(y_, virtuals)), virtuals, scales_);
    else store(w_, convolve_backward_filter(shapes_, load(x_, virtuals), load(y_, virtuals)), virtuals, scales_);
  }

  // Its groups are not an attribute: they follow from the channels of x and w.
  Convolution convolution(const GraphDescriptor& given) const {
    if (!given.is(GraphDescriptorType::Convolution)) throw InvalidValue();
    Convolution convolution{given.values<int64_t>(kPrePaddings), given.values<int64_t>(kFilterStrides),
                            given.values<int64_t>(kDilations)};
    convolution.is_convolution = given.value<int>(kConvolutionMode) == 0;
    const Dims after = given.values<int64_t>(kPostPaddings);
    const TensorDescriptor &x = x_.descriptor, &w = w_.descriptor, &y = y_.descriptor;
    const size_t rank = x.dims.size() - 2;
    if (w.dims.size() != rank + 2 || y.dims.size() != rank + 2) throw InvalidValue();
    for (const Dims& dims : {convolution.pads, convolution.strides, convolution.dilations, after})
      if (dims.size() != rank) throw InvalidValue();
    for (size_t k = 0; k < rank; k++) {
      if (convolution.strides[k] <= 0 || convolution.dilations[k] <= 0) throw InvalidValue();
      const int64_t padded = x.dims[k + 2] + convolution.pads[k] + after[k];
      const int64_t window = (w.dims[k + 2] - 1) * convolution.dilations[k] + 1;
      if (padded < window || (padded - window) / convolution.strides[k] + 1 != y.dims[k + 2]) throw InvalidValue();
    }
    if (x.channels() % w.channels()) throw InvalidValue();
    convolution.groups = int(x.channels() / w.channels());
    return convolution;
  }

  GraphDescriptorType type_;
  Scales scales_;
  GraphTensor x_, w_, y_;
  ConvolutionShapes shapes_;
};

// y = f(alpha1 * x, alpha2 * b); each dimension of b is that of y, or 1.
class PointwiseOperation : public GraphOperation {
 public:
  explicit PointwiseOperation(const GraphDescriptor& operation)
      : alpha1_(operation.real(kPointwiseAlpha1, 1)),
        alpha2_(operation.real(kPointwiseAlpha2, 1)),
        x_(tensor_of(operation, kPointwiseX)),
        y_(tensor_of(operation, kPointwiseY)) {
    const GraphDescriptor& function = operation.descriptor(kPointwiseDescriptor);
    if (!function.is(GraphDescriptorType::Pointwise)) throw InvalidValue();
    mode_ = function.value<int>(kPointwiseMode);
    lower_ = function.real(kReluLowerClip, 0), upper_ = function.real(kReluUpperClip, HUGE_VAL);
    slope_ = function.real(kReluLowerSlope, 0), elu_alpha_ = function.real(kEluAlpha, 1);
    if (is_binary()) b_.push_back(tensor_of(operation, kPointwiseB));
    if (x_.descriptor.dims != y_.descriptor.dims || (mode_ == kRelu && slope_ != 0 && lower_ != 0)) throw FallbackUnsupported();
    for (const GraphTensor& b : b_) broadcast(b.descriptor.dims);  // throws if it does not fit
    apply(0, 0);  // throws if the mode is not supported
  }

  void run(VirtualValues<float>& virtuals) const override { compute(virtuals); }
  void run(VirtualValues<double>& virtuals) const override { compute(virtuals); }
  std::vector<GraphTensor*> tensors() override {
    std::vector<GraphTensor*> all{&x_, &y_};
    for (GraphTensor& b : b_) all.push_back(&b);
    return all;
  }

 private:
  // cudnn_graph.h: cudnnPointwiseMode_t
  enum Mode : int {
    kAdd = 0,
    kMultiply = 1,
    kMinimum = 2,
    kMaximum = 3,
    kSquareRoot = 4,
    kDivide = 6,
    kSubtract = 9,
    kAbsolute = 10,
    kExponential = 13,
    kLogarithm = 15,
    kNegate = 16,
    kIdentity = 21,
    kRelu = 100,
    kTanh = 101,
    kSigmoid = 102,
    kElu = 103
  };

  bool is_binary() const { return mode_ < kAbsolute && mode_ != kSquareRoot; }

  double apply(double x, double b) const {
    switch (mode_) {
      case kAdd: return x + b;
      case kMultiply: return x * b;
      case kMinimum: return std::fmin(x, b);
      case kMaximum: return std::fmax(x, b);
      case kSquareRoot: return std::sqrt(x);
      case kDivide: return x / b;
      case kSubtract: return x - b;
      case kAbsolute: return std::fabs(x);
      case kExponential: return exp_of(x);
      case kLogarithm: return log_of(x);
      case kNegate: return -x;
      case kIdentity: return x;
      case kRelu: return x > upper_ ? upper_ : x < lower_ ? (slope_ != 0 ? slope_ * x : lower_) : x;
      case kTanh: return tanh_of(x);
      case kSigmoid: return sigmoid_of(x);
      case kElu: return x > 0 ? x : elu_alpha_ * (exp_of(x) - 1);
      default: throw FallbackUnsupported();
    }
  }

  // For each element of y the index of its element in a dense tensor of these dimensions.
  std::vector<int64_t> broadcast(const Dims& dims) const {
    TensorDescriptor dense{0, dims, {}};
    dense.set_packed_strides(/*channels_last=*/false);
    const TensorDescriptor wide = dense.broadcast_to(y_.descriptor.dims);
    std::vector<int64_t> indices(static_cast<size_t>(wide.count()));
    for_each_element(wide, [&](int64_t k, int64_t offset) { indices[k] = offset; });
    return indices;
  }

  // An operand whose scale is 0 is not read: TensorFlow passes no memory for it.
  template <class T> static std::vector<T> load_operand(const GraphTensor& tensor, double scale, VirtualValues<T>& virtuals) {
    return scale != 0 ? load(tensor, virtuals) : std::vector<T>(static_cast<size_t>(tensor.descriptor.count()));
  }

  template <class T> void compute(VirtualValues<T>& virtuals) const {
    std::vector<T> values = load_operand(x_, alpha1_, virtuals);
    if (b_.empty()) {
      for (T& value : values) value = T(apply(alpha1_ * value, 0));
    } else {
      const std::vector<T> others = load_operand(b_[0], alpha2_, virtuals);
      const std::vector<int64_t> indices = broadcast(b_[0].descriptor.dims);
      for (size_t k = 0; k < values.size(); k++) values[k] = T(apply(alpha1_ * values[k], alpha2_ * others[indices[k]]));
    }
    store(y_, std::move(values), virtuals);
  }

  int mode_;
  double alpha1_, alpha2_, lower_, upper_, slope_, elu_alpha_;
  GraphTensor x_, y_;
  std::vector<GraphTensor> b_;  // one, or none where the function has one operand
};

std::unique_ptr<GraphOperation> operation_of(const GraphDescriptor& descriptor) {
  if (const ConvolutionAttributes* attributes = convolution_attributes(descriptor))
    return std::make_unique<ConvolutionOperation>(descriptor, *attributes);
  if (descriptor.is(GraphDescriptorType::PointwiseOperation)) return std::make_unique<PointwiseOperation>(descriptor);
  throw FallbackUnsupported();
}

const std::vector<GraphDescriptorRef>& operations_of(const GraphDescriptor& plan) {
  return plan.descriptor(kPlannedConfig).descriptor(kConfiguredEngine).descriptor(kEngineGraph).descriptors(kGraphOperations);
}

std::map<int64_t, void*> data_by_id(const GraphDescriptor& variant_pack) {
  const std::vector<int64_t> ids = variant_pack.values<int64_t>(kPackUniqueIds);
  const std::vector<void*> pointers = variant_pack.values<void*>(kPackPointers);
  if (ids.size() != pointers.size()) throw InvalidValue();
  std::map<int64_t, void*> data;
  for (size_t k = 0; k < ids.size(); k++) data[ids[k]] = pointers[k];
  return data;
}

using GraphOperations = std::vector<std::unique_ptr<GraphOperation>>;

template <class T> void run_all(const GraphOperations& operations) {
  VirtualValues<T> virtuals;
  for (const auto& operation : operations) operation->run(virtuals);
}

}  // namespace

double GraphDescriptor::real(int name, double if_not_set) const {
  if (!has(name)) return if_not_set;
  return find(name).type == int(AttributeType::Float) ? double(value<float>(name)) : value<double>(name);
}

const GraphDescriptor& GraphDescriptor::descriptor(int name) const {
  const GraphAttribute& attribute = find(name);
  if (attribute.descriptors.size() != 1) throw InvalidValue();
  return *attribute.descriptors[0];
}

const GraphAttribute& GraphDescriptor::find(int name) const {
  const auto entry = attributes.find(name);
  if (entry == attributes.end()) throw InvalidValue();
  return entry->second;
}

void check_operation(const GraphDescriptor& operation) { operation_of(operation); }

const char* call_of_plan(const GraphDescriptor& plan) {
  for (const GraphDescriptorRef& operation : operations_of(plan))
    if (const ConvolutionAttributes* attributes = convolution_attributes(*operation)) return attributes->call;
  return "cudnnBackendExecute";
}

Operation prepare_graph(const GraphDescriptor& plan, const GraphDescriptor& variant_pack) {
  const std::map<int64_t, void*> data = data_by_id(variant_pack);
  auto operations = std::make_shared<GraphOperations>();
  bool in_double = false;
  for (const GraphDescriptorRef& descriptor : operations_of(plan)) {
    operations->push_back(operation_of(*descriptor));
    for (GraphTensor* tensor : operations->back()->tensors()) {
      in_double |= tensor->descriptor.type() == DataType::Double;
      if (tensor->is_virtual) continue;
      const auto entry = data.find(tensor->unique_id);
      if (entry == data.end()) throw InvalidValue();
      tensor->data = entry->second;
    }
  }
  return [=] { in_double ? run_all<double>(*operations) : run_all<float>(*operations); };
}

}  // namespace vgpu
