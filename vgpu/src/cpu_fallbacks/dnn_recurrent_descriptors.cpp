// cuDNN's descriptors of recurrent networks, and where a network's weights lie.
#include <algorithm>

#include "dnn_recurrent.h"
#include "vendor_stubs/library_status.h"

namespace vgpu {

void Recurrent::check() const {
  data_type_of(kind);  // throws FallbackUnsupported unless it is supported
  if (skips_input || (projection_size && projection_size != hidden_size)) throw FallbackUnsupported();
  if (int(cell) < 0 || int(cell) > 3 || input_size <= 0 || hidden_size <= 0 || layers <= 0) throw InvalidValue();
}

int64_t Recurrent::matrix(int64_t pseudo_layer, bool is_recurrent) const {
  int64_t offset = 0;
  for (int64_t p = 0; p < pseudo_layer; p++)
    offset += gates() * hidden_size * (layer_input_size(p / directions()) + hidden_size);
  if (is_recurrent) offset += gates() * hidden_size * layer_input_size(pseudo_layer / directions());
  return offset;
}

int64_t Recurrent::bias(int64_t pseudo_layer, bool is_recurrent) const {
  const int64_t of_each = gates() * hidden_size, per_layer = has_input_bias() + has_recurrent_bias();
  return matrix(pseudo_layers(), false) + of_each * (pseudo_layer * per_layer + (is_recurrent && has_input_bias()));
}

void Sequences::check() const {
  if (layout < 0 || layout > 2 || max_length <= 0 || vector_size <= 0 || int64_t(lengths.size()) != batch_size)
    throw InvalidValue();
  for (size_t n = 0; n < lengths.size(); n++) {
    if (lengths[n] < 0 || lengths[n] > max_length) throw InvalidValue();
    if (is_packed() && n && lengths[n] > lengths[n - 1]) throw InvalidValue();  // the longest comes first
  }
}

int64_t Sequences::rows() const {
  if (!is_packed()) return max_length * batch_size;
  int64_t sum = 0;
  for (int length : lengths) sum += length;
  return sum;
}

// layout (cudnn_adv.h: cudnnRNNDataLayout_t): 0 step by step, 1 likewise without padding (packed), 2 sample by sample.
int64_t Sequences::row(int64_t time, int64_t sample) const {
  if (layout == 2) return sample * max_length + time;
  if (layout == 0) return time * batch_size + sample;
  int64_t before = 0;  // vectors of the steps before `time`
  for (int length : lengths) before += std::min<int64_t>(length, time);
  return before + sample;
}

}  // namespace vgpu

using namespace vgpu;

// A descriptor is stored whether or not anything is computed by it.
API int cudnnCreateDropoutDescriptor(Dropout** descriptor) { return *descriptor = new Dropout, kSuccess; }
API int cudnnDestroyDropoutDescriptor(Dropout* descriptor) { return delete descriptor, kSuccess; }
API int cudnnSetDropoutDescriptor(Dropout* descriptor, void*, float probability, void* states, size_t,
                                  unsigned long long seed) {
  if (descriptor) *descriptor = {probability, states, seed};
  return kSuccess;
}
API int cudnnGetDropoutDescriptor(const Dropout* descriptor, void*, float* probability, void** states,
                                  unsigned long long* seed) {
  if (!descriptor) return library_status("cudnn")->invalid_value;
  write_output(probability, descriptor->probability), write_output(states, descriptor->states),
      write_output(seed, descriptor->seed);
  return kSuccess;
}
API int cudnnRestoreDropoutDescriptor(Dropout* descriptor, void* handle, float probability, void* states, size_t bytes,
                                      unsigned long long seed) {
  return cudnnSetDropoutDescriptor(descriptor, handle, probability, states, bytes, seed);
}
API int cudnnCreateRNNDescriptor(Recurrent** descriptor) { return *descriptor = new Recurrent, kSuccess; }
API int cudnnDestroyRNNDescriptor(Recurrent* descriptor) { return delete descriptor, kSuccess; }
API int cudnnSetRNNDescriptor_v8(Recurrent* descriptor, int algorithm, int cell, int bias_mode, int direction_mode,
                                 int input_mode, int kind, int math_precision, int math_type, int input_size, int hidden_size,
                                 int projection_size, int layers, Dropout* dropout, unsigned flags) {
  if (!descriptor) return library_status("cudnn")->invalid_value;
  *descriptor = {Cell(cell),
                 bias_mode,
                 kind,
                 input_size,
                 hidden_size,
                 projection_size,
                 layers,
                 direction_mode == 1,
                 input_mode == 1,
                 dropout,
                 dropout ? dropout->probability : 0,
                 algorithm,
                 math_precision,
                 math_type,
                 flags};
  return kSuccess;
}
// Any pointer may be null: that attribute is not asked for.
API int cudnnGetRNNDescriptor_v8(const Recurrent* descriptor, int* algorithm, int* cell, int* bias_mode, int* direction_mode,
                                 int* input_mode, int* kind, int* math_precision, int* math_type, int* input_size,
                                 int* hidden_size, int* projection_size, int* layers, Dropout** dropout, unsigned* flags) {
  if (!descriptor) return library_status("cudnn")->invalid_value;
  const Recurrent& network = *descriptor;
  write_output(algorithm, network.algorithm), write_output(cell, int(network.cell)), write_output(bias_mode, network.bias_mode);
  write_output(direction_mode, int(network.is_bidirectional)), write_output(input_mode, int(network.skips_input)),
      write_output(kind, network.kind);
  write_output(math_precision, network.math_precision), write_output(math_type, network.math_type),
      write_output(input_size, network.input_size);
  write_output(hidden_size, network.hidden_size), write_output(projection_size, network.projection_size),
      write_output(layers, network.layers);
  write_output(dropout, network.dropout_desc), write_output(flags, network.flags);
  return kSuccess;
}
API int cudnnCreateRNNDataDescriptor(Sequences** descriptor) { return *descriptor = new Sequences, kSuccess; }
API int cudnnDestroyRNNDataDescriptor(Sequences* descriptor) { return delete descriptor, kSuccess; }
API int cudnnSetRNNDataDescriptor(Sequences* descriptor, int kind, int layout, int max_length, int batch_size, int vector_size,
                                  const int* lengths, void*) {
  if (!descriptor || !lengths || batch_size <= 0) return library_status("cudnn")->invalid_value;
  *descriptor = {kind, layout, max_length, batch_size, vector_size, std::vector<int>(lengths, lengths + batch_size)};
  return kSuccess;
}

namespace {

void set_packed(TensorDescriptor* descriptor, int kind, Dims dims) {
  if (!descriptor) return;
  descriptor->kind = kind, descriptor->dims = std::move(dims);
  descriptor->set_packed_strides(/*channels_last=*/false);
}

}  // namespace

API int cudnnDropoutGetStatesSize(void*, size_t* bytes) {
  return run_if_fallback_enabled("cudnnDropoutGetStatesSize", [&] { *bytes = 8; });  // any size does: nothing uses the states
}
API int cudnnGetRNNTempSpaceSizes(void*, const Recurrent* network, int training, const Sequences* x, size_t* workspace_bytes,
                                  size_t* reserve_bytes) {
  return run_if_fallback_enabled("cudnnGetRNNTempSpaceSizes", [&] {
    required(network).check(), required(x).check();
    const size_t size = compute_size(data_type_of(network->kind));
    if (workspace_bytes) *workspace_bytes = 0;
    if (reserve_bytes) *reserve_bytes = training ? size_t(ReserveLayout(*network, *x).count()) * size : 0;
  });
}
API int cudnnGetRNNWeightSpaceSize(void*, const Recurrent* network, size_t* bytes) {
  return run_if_fallback_enabled("cudnnGetRNNWeightSpaceSize", [&] {
    required(network).check();
    *bytes = size_t(network->weight_count()) * size_of(data_type_of(network->kind));
  });
}
// The matrix and the bias of one gate, of which a program may ask for one alone: those that see the input come before the
// recurrent ones.
API int cudnnGetRNNWeightParams(void*, const Recurrent* network, int pseudo_layer, size_t, char* weights, int number,
                                TensorDescriptor* matrix_desc, void** matrix, TensorDescriptor* bias_desc, void** bias) {
  return run_if_fallback_enabled("cudnnGetRNNWeightParams", [&] {
    required(network).check();
    const int64_t gates = network->gates(), hidden = network->hidden_size;
    if (pseudo_layer < 0 || pseudo_layer >= network->pseudo_layers() || number < 0 || number >= 2 * gates) throw InvalidValue();
    const bool is_recurrent = number >= gates,
               has_bias = is_recurrent ? network->has_recurrent_bias() : network->has_input_bias();
    const int64_t gate = number % gates, layer = pseudo_layer / network->directions();
    const int64_t columns = is_recurrent ? hidden : network->layer_input_size(layer);
    const int64_t size = size_of(data_type_of(network->kind));
    set_packed(matrix_desc, network->kind, {1, hidden, columns}), set_packed(bias_desc, network->kind, {1, hidden, 1});
    if (matrix) *matrix = weights + (network->matrix(pseudo_layer, is_recurrent) + gate * hidden * columns) * size;
    if (bias) *bias = has_bias ? weights + (network->bias(pseudo_layer, is_recurrent) + gate * hidden) * size : nullptr;
  });
}
