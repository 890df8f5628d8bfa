// CPU fallbacks of cuDNN's recurrent networks: cudnnRNNForward() and its gradients, without dropout between layers.
#include "dnn_recurrent.h"

#include <algorithm>
#include <cmath>

#include "arithmetic/elementary.h"

namespace vgpu {

namespace {

template <class T> std::vector<T> load_elements(const void* data, int kind, int64_t count) {
  return load_tensor<T>(TensorDescriptor{kind, {1, count}, {count, 1}}, data);
}
template <class T> void store_elements(void* data, int kind, const std::vector<T>& values, const Scales& scales = Scales()) {
  const int64_t count = int64_t(values.size());
  store_tensor(Tensor(TensorDescriptor{kind, {1, count}, {count, 1}}, data), values, scales);
}

// The arguments of all three calls. Pointers may be null where cuDNN allows it.
struct Call {
  Recurrent network;
  Sequences x;
  const void *x_data, *hx, *cx, *weights;
  void* reserve;
};

// What the three calls share: the order of steps, and loading and storing weights, states and sequences. A pseudo-layer is one
// direction of a layer; `p` is its number.
template <class T> class Pass {
 public:
  explicit Pass(const Call& call)
      : network(call.network),
        x(call.x),
        reserve(network, x),
        hidden(network.hidden_size),
        gates(network.gates()),
        call_(call) {}

  const Recurrent& network;
  const Sequences& x;
  const ReserveLayout reserve;
  const int64_t hidden, gates;

  // f(time, the time of the step before, -1 for none) for each step of a sample, in the order of the direction.
  template <class F> void for_each_step(int64_t direction, int64_t sample, F f) const {
    const int64_t length = x.lengths[size_t(sample)];
    for (int64_t s = 0; s < length; s++) f(time_of(direction, length, s), s ? time_of(direction, length, s - 1) : -1);
  }
  template <class F> void for_each_step_backward(int64_t direction, int64_t sample, F f) const {
    const int64_t length = x.lengths[size_t(sample)];
    for (int64_t s = length; s-- > 0;) f(time_of(direction, length, s), s ? time_of(direction, length, s - 1) : -1);
  }

  std::vector<T> load_weights() const { return load_elements<T>(call_.weights, network.kind, network.weight_count()); }
  std::vector<T> load_state(const void* data) const {
    const int64_t count = network.pseudo_layers() * x.batch_size * hidden;
    return data ? load_elements<T>(data, network.kind, count) : std::vector<T>(size_t(count));
  }
  void store_state(void* data, const std::vector<T>& values) const {
    if (data) store_elements(data, network.kind, values);
  }
  // Vectors by time and sample, zero where no sequence is.
  std::vector<T> load_sequences(const void* data, int64_t vector_size) const {
    std::vector<T> values(size_t(x.max_length * x.batch_size * vector_size));
    if (!data) return values;
    const std::vector<T> memory = load_elements<T>(data, x.kind, x.rows() * vector_size);
    for_each_vector([&](int64_t time, int64_t sample) {
      const int64_t row = x.row(time, sample), vector = time * x.batch_size + sample;
      std::copy_n(&memory[size_t(row * vector_size)], vector_size, &values[size_t(vector * vector_size)]);
    });
    return values;
  }
  void store_sequences(void* data, const std::vector<T>& values, int64_t vector_size) const {
    std::vector<T> memory(size_t(x.rows() * vector_size));
    for_each_vector([&](int64_t time, int64_t sample) {
      const int64_t row = x.row(time, sample), vector = time * x.batch_size + sample;
      std::copy_n(&values[size_t(vector * vector_size)], vector_size, &memory[size_t(row * vector_size)]);
    });
    store_elements(data, x.kind, memory);
  }
  template <class F> void for_each_vector(F f) const {
    for (int64_t sample = 0; sample < x.batch_size; sample++)
      for (int64_t time = 0; time < x.lengths[size_t(sample)]; time++) f(time, sample);
  }
  int64_t state_index(int64_t pseudo_layer, int64_t sample) const { return (pseudo_layer * x.batch_size + sample) * hidden; }

 private:
  static int64_t time_of(int64_t direction, int64_t length, int64_t step) { return direction ? length - 1 - step : step; }
  const Call& call_;
};

// sums += matrix * vector, of a matrix of `rows` rows.
template <class T> void multiply_add(const T* matrix, int64_t rows, int64_t columns, const T* vector, T* sums) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < columns; k++) sums[row] += matrix[row * columns + k] * vector[k];
}
template <class T> void multiply_add_transposed(const T* matrix, int64_t rows, int64_t columns, const T* vector, T* sums) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < columns; k++) sums[k] += matrix[row * columns + k] * vector[row];
}
template <class T> void add_outer_product(const T* rows_vector, int64_t rows, const T* vector, int64_t columns, T* matrix) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < columns; k++) matrix[row * columns + k] += rows_vector[row] * vector[k];
}

template <class T> T sigmoid(T x) { return T(sigmoid_of(double(x))); }

// The gates of a step are computed in place: `input` and `recurrent` are their sums, `h` and `c` the state, `kept` the step in
// the reserve layout.
template <class T>
void step_forward(const Recurrent& network, const ReserveLayout& layout, const T* input, const T* recurrent, T* h, T* c,
                  T* kept) {
  const int64_t size = network.hidden_size;
  for (int64_t k = 0; k < size; k++) {
    auto sum = [&](int64_t gate) { return input[gate * size + k] + recurrent[gate * size + k]; };
    auto gate_of = [&](int64_t gate) -> T& { return kept[layout.activations() + gate * size + k]; };
    if (network.cell == Cell::Lstm) {
      const T in = gate_of(0) = sigmoid(sum(0)), forget = gate_of(1) = sigmoid(sum(1));
      const T candidate = gate_of(2) = T(tanh_of(sum(2))), out = gate_of(3) = sigmoid(sum(3));
      c[k] = forget * c[k] + in * candidate;
      h[k] = out * T(tanh_of(c[k]));
      kept[layout.cell_state() + k] = c[k];
    } else if (network.cell == Cell::Gru) {
      const T reset = gate_of(0) = sigmoid(sum(0)), update = gate_of(1) = sigmoid(sum(1));
      const T candidate = gate_of(2) = T(tanh_of(input[2 * size + k] + reset * recurrent[2 * size + k]));
      kept[layout.cell_state() + k] = recurrent[2 * size + k];  // a GRU has no cell state; the gradients need this sum
      h[k] = (1 - update) * candidate + update * h[k];
    } else {
      h[k] = network.cell == Cell::Relu ? (sum(0) > 0 ? sum(0) : T(0)) : T(tanh_of(sum(0)));
      gate_of(0) = h[k];
    }
    kept[layout.output() + k] = h[k];
  }
}

// dh and dc are the gradients of a step's state, and become those of the state before, without what comes through the recurrent
// matrices; those of the gates' sums are kept.
template <class T>
void step_backward(const Recurrent& network, const ReserveLayout& layout, const T* h_before, const T* c_before, T* dh, T* dc,
                   T* kept) {
  const int64_t size = network.hidden_size;
  for (int64_t k = 0; k < size; k++) {
    auto gate_of = [&](int64_t gate) { return kept[layout.activations() + gate * size + k]; };
    auto keep = [&](int64_t gate, T of_input, T of_recurrent) {
      kept[layout.input_gradients() + gate * size + k] = of_input;
      kept[layout.recurrent_gradients() + gate * size + k] = of_recurrent;
    };
    auto keep_both = [&](int64_t gate, T gradient) { keep(gate, gradient, gradient); };
    auto slope = [](T activation) { return activation * (1 - activation); };  // of a sigmoid
    if (network.cell == Cell::Lstm) {
      const T in = gate_of(0), forget = gate_of(1), candidate = gate_of(2), out = gate_of(3);
      const T squashed = T(tanh_of(kept[layout.cell_state() + k]));
      const T of_state = dc[k] + dh[k] * out * (1 - squashed * squashed);
      keep_both(0, of_state * candidate * slope(in)), keep_both(1, of_state * c_before[k] * slope(forget));
      keep_both(2, of_state * in * (1 - candidate * candidate)), keep_both(3, dh[k] * squashed * slope(out));
      dc[k] = of_state * forget, dh[k] = 0;
    } else if (network.cell == Cell::Gru) {
      const T reset = gate_of(0), update = gate_of(1), candidate = gate_of(2);
      const T of_candidate = dh[k] * (1 - update) * (1 - candidate * candidate);
      keep_both(0, of_candidate * kept[layout.cell_state() + k] * slope(reset));
      keep_both(1, dh[k] * (h_before[k] - candidate) * slope(update));
      keep(2, of_candidate, of_candidate * reset);
      dh[k] *= update;
    } else {
      const T output = gate_of(0);
      keep_both(0, dh[k] * (network.cell == Cell::Relu ? T(output > 0) : 1 - output * output));
      dh[k] = 0;
    }
  }
}

template <class T> T* reserve_of(const Call& call) { return static_cast<T*>(call.reserve); }

// The state before a step: what the step before has kept at `offset`, or the initial state if there is none (`before` < 0).
template <class T>
const T* previous_state(const Pass<T>& pass, const Call& call, int64_t p, int64_t sample, int64_t before, int64_t offset,
                        const std::vector<T>& initial_state) {
  if (before < 0) return &initial_state[size_t(pass.state_index(p, sample))];
  return reserve_of<T>(call) + pass.reserve.at(p, before, sample) + offset;
}

template <class T>
void load_biases(const Recurrent& network, const std::vector<T>& weights, int64_t input_bias, int64_t recurrent_bias,
                 std::vector<T>& input, std::vector<T>& recurrent) {
  if (network.has_input_bias()) std::copy_n(&weights[size_t(input_bias)], input.size(), input.data());
  if (network.has_recurrent_bias()) std::copy_n(&weights[size_t(recurrent_bias)], recurrent.size(), recurrent.data());
}
template <class T>
void add_bias_gradients(const Recurrent& network, const T* of_input, const T* of_recurrent, int64_t input_bias,
                        int64_t recurrent_bias, std::vector<T>& sums) {
  const int64_t gate_rows = network.gates() * network.hidden_size;
  for (int64_t k = 0; k < gate_rows; k++) {
    if (network.has_input_bias()) sums[size_t(input_bias + k)] += of_input[k];
    if (network.has_recurrent_bias()) sums[size_t(recurrent_bias + k)] += of_recurrent[k];
  }
}

template <class T> void forward(const Call& call, void* y, void* hy, void* cy) {
  const Pass<T> pass(call);
  const Recurrent& network = pass.network;
  const int64_t hidden = pass.hidden, gate_rows = pass.gates * hidden, directions = network.directions();
  const std::vector<T> weights = pass.load_weights();
  std::vector<T> h = pass.load_state(call.hx), c = pass.load_state(call.cx);
  std::vector<T> input = pass.load_sequences(call.x_data, network.input_size), unkept(size_t(pass.reserve.step_size()));
  if (call.reserve) check_write(call.reserve, uint64_t(pass.reserve.count()) * sizeof(T));
  for (int64_t layer = 0; layer < network.layers; layer++) {
    const int64_t size = network.layer_input_size(layer);
    std::vector<T> output(size_t(pass.x.max_length * pass.x.batch_size * directions * hidden));
    for (int64_t direction = 0; direction < directions; direction++) {
      const int64_t p = layer * directions + direction;
      const int64_t input_bias = network.bias(p, false), recurrent_bias = network.bias(p, true);
      const int64_t input_matrix = network.matrix(p, false), recurrent_matrix = network.matrix(p, true);
      for (int64_t sample = 0; sample < pass.x.batch_size; sample++)
        pass.for_each_step(direction, sample, [&](int64_t time, int64_t) {
          const int64_t vector = time * pass.x.batch_size + sample;
          std::vector<T> in(static_cast<size_t>(gate_rows)), recurrent(static_cast<size_t>(gate_rows));
          load_biases(network, weights, input_bias, recurrent_bias, in, recurrent);
          T* state = &h[size_t(pass.state_index(p, sample))];
          multiply_add(&weights[size_t(input_matrix)], gate_rows, size, &input[size_t(vector * size)], in.data());
          multiply_add(&weights[size_t(recurrent_matrix)], gate_rows, hidden, state, recurrent.data());
          T* kept = call.reserve ? reserve_of<T>(call) + pass.reserve.at(p, time, sample) : unkept.data();
          step_forward(network, pass.reserve, in.data(), recurrent.data(), state, &c[size_t(pass.state_index(p, sample))],
                       kept);
          for (int64_t k = 0; k < hidden; k++) output[size_t((vector * directions + direction) * hidden + k)] = state[k];
        });
    }
    input = std::move(output);
  }
  pass.store_sequences(y, input, directions * hidden);
  pass.store_state(hy, h), pass.store_state(cy, c);
}

template <class T>
void backward_data(const Call& call, const void* dy, const void* dhy, const void* dcy, void* dx, void* dhx, void* dcx) {
  const Pass<T> pass(call);
  const Recurrent& network = pass.network;
  const ReserveLayout& layout = pass.reserve;
  const int64_t hidden = pass.hidden, gate_rows = pass.gates * hidden, directions = network.directions();
  const std::vector<T> weights = pass.load_weights(), hx = pass.load_state(call.hx), cx = pass.load_state(call.cx);
  std::vector<T> dh = pass.load_state(dhy), dc = pass.load_state(dcy);
  std::vector<T> gradients = pass.load_sequences(dy, directions * hidden);
  check_read(call.reserve, uint64_t(layout.count()) * sizeof(T));
  check_write(call.reserve, uint64_t(layout.count()) * sizeof(T));
  for (int64_t layer = network.layers; layer-- > 0;) {
    const int64_t size = network.layer_input_size(layer);
    std::vector<T> of_input(size_t(pass.x.max_length * pass.x.batch_size * size));
    for (int64_t direction = 0; direction < directions; direction++) {
      const int64_t p = layer * directions + direction;
      const int64_t input_matrix = network.matrix(p, false), recurrent_matrix = network.matrix(p, true);
      for (int64_t sample = 0; sample < pass.x.batch_size; sample++)
        pass.for_each_step_backward(direction, sample, [&](int64_t time, int64_t before) {
          const int64_t vector = time * pass.x.batch_size + sample, state = pass.state_index(p, sample);
          T *kept = reserve_of<T>(call) + layout.at(p, time, sample), *step_dh = &dh[size_t(state)];
          const T* h_before = previous_state(pass, call, p, sample, before, layout.output(), hx);
          const T* c_before = previous_state(pass, call, p, sample, before, layout.cell_state(), cx);
          for (int64_t k = 0; k < hidden; k++) step_dh[k] += gradients[size_t((vector * directions + direction) * hidden + k)];
          step_backward(network, layout, h_before, c_before, step_dh, &dc[size_t(state)], kept);
          multiply_add_transposed(&weights[size_t(recurrent_matrix)], gate_rows, hidden, kept + layout.recurrent_gradients(),
                                  step_dh);
          multiply_add_transposed(&weights[size_t(input_matrix)], gate_rows, size, kept + layout.input_gradients(),
                                  &of_input[size_t(vector * size)]);
        });
    }
    gradients = std::move(of_input);
  }
  if (dx) pass.store_sequences(dx, gradients, network.input_size);
  pass.store_state(dhx, dh), pass.store_state(dcx, dc);
}

// The input of a layer: the sequences, or what the layer below has put out.
template <class T> std::vector<T> layer_input(const Pass<T>& pass, const Call& call, int64_t layer) {
  if (!layer) return pass.load_sequences(call.x_data, pass.network.input_size);
  const int64_t directions = pass.network.directions(), size = directions * pass.hidden;
  std::vector<T> values(size_t(pass.x.max_length * pass.x.batch_size * size));
  pass.for_each_vector([&](int64_t time, int64_t sample) {
    for (int64_t k = 0; k < size; k++) {
      const int64_t step = pass.reserve.at((layer - 1) * directions + k / pass.hidden, time, sample);
      values[size_t((time * pass.x.batch_size + sample) * size + k)] =
          reserve_of<T>(call)[step + pass.reserve.output() + k % pass.hidden];
    }
  });
  return values;
}

template <class T> void backward_weights(const Call& call, void* dweights, bool adds) {
  const Pass<T> pass(call);
  const Recurrent& network = pass.network;
  const ReserveLayout& layout = pass.reserve;
  const int64_t hidden = pass.hidden, gate_rows = pass.gates * hidden, directions = network.directions();
  const std::vector<T> hx = pass.load_state(call.hx);
  std::vector<T> sums(size_t(network.weight_count()));
  check_read(call.reserve, uint64_t(layout.count()) * sizeof(T));
  for (int64_t layer = 0; layer < network.layers; layer++) {
    const int64_t size = network.layer_input_size(layer);
    const std::vector<T> input = layer_input(pass, call, layer);
    for (int64_t direction = 0; direction < directions; direction++) {
      const int64_t p = layer * directions + direction;
      const int64_t input_bias = network.bias(p, false), recurrent_bias = network.bias(p, true);
      const int64_t input_matrix = network.matrix(p, false), recurrent_matrix = network.matrix(p, true);
      for (int64_t sample = 0; sample < pass.x.batch_size; sample++)
        pass.for_each_step(direction, sample, [&](int64_t time, int64_t before) {
          const T* kept = reserve_of<T>(call) + layout.at(p, time, sample);
          const T *of_input = kept + layout.input_gradients(), *of_recurrent = kept + layout.recurrent_gradients();
          const T* h_before = previous_state(pass, call, p, sample, before, layout.output(), hx);
          add_outer_product(of_input, gate_rows, &input[size_t((time * pass.x.batch_size + sample) * size)], size,
                            &sums[size_t(input_matrix)]);
          add_outer_product(of_recurrent, gate_rows, h_before, hidden, &sums[size_t(recurrent_matrix)]);
          add_bias_gradients(network, of_input, of_recurrent, input_bias, recurrent_bias, sums);
        });
    }
  }
  store_elements(dweights, network.kind, sums, Scales(1, adds ? 1 : 0));
}

// Checks what all calls have in common. InvalidValue, FallbackUnsupported.
Call make_call(const Recurrent* network, const Sequences* x_desc, const void* x, const void* hx, const void* cx,
               size_t weight_bytes, const void* weights, size_t reserve_bytes, void* reserve, bool is_training) {
  const Call call{required(network), required(x_desc), x, hx, cx, weights, reserve};
  call.network.check(), call.x.check();
  if (call.x.vector_size != call.network.input_size || call.x.kind != call.network.kind) throw InvalidValue();
  if (is_training && call.network.dropout > 0 && call.network.layers > 1) throw FallbackUnsupported();
  const DataType type = data_type_of(call.network.kind);
  const uint64_t needed = uint64_t(ReserveLayout(call.network, call.x).count()) * compute_size(type);
  if (weight_bytes < uint64_t(call.network.weight_count()) * size_of(type) || (is_training && reserve_bytes < needed))
    throw InvalidValue();
  return call;
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

API int cudnnRNNForward(void* handle, const Recurrent* network, int training, const int*, const Sequences* x_desc,
                        const void* x, const Sequences*, void* y, const TensorDescriptor*, const void* hx, void* hy,
                        const TensorDescriptor*, const void* cx, void* cy, size_t weight_bytes, const void* weights, size_t,
                        void*, size_t reserve_bytes, void* reserve) {
  return run_fallback_on_stream("cudnnRNNForward", stream_of_handle(handle), [&] {
    const Call call =
        make_call(network, x_desc, x, hx, cx, weight_bytes, weights, reserve_bytes, training ? reserve : nullptr, training);
    return operation_in_compute_type(data_type_of(call.network.kind),
                                     [=](auto tag) { forward<typename decltype(tag)::type>(call, y, hy, cy); });
  });
}
API int cudnnRNNBackwardData_v8(void* handle, const Recurrent* network, const int*, const Sequences*, const void*,
                                const void* dy, const Sequences* x_desc, void* dx, const TensorDescriptor*, const void* hx,
                                const void* dhy, void* dhx, const TensorDescriptor*, const void* cx, const void* dcy, void* dcx,
                                size_t weight_bytes, const void* weights, size_t, void*, size_t reserve_bytes, void* reserve) {
  return run_fallback_on_stream("cudnnRNNBackwardData_v8", stream_of_handle(handle), [&] {
    const Call call = make_call(network, x_desc, nullptr, hx, cx, weight_bytes, weights, reserve_bytes, reserve, true);
    return operation_in_compute_type(data_type_of(call.network.kind), [=](auto tag) {
      backward_data<typename decltype(tag)::type>(call, dy, dhy, dcy, dx, dhx, dcx);
    });
  });
}
API int cudnnRNNBackwardWeights_v8(void* handle, const Recurrent* network, int mode, const int*, const Sequences* x_desc,
                                   const void* x, const TensorDescriptor*, const void* hx, const Sequences*, const void*,
                                   size_t weight_bytes, void* dweights, size_t, void*, size_t reserve_bytes, void* reserve) {
  return run_fallback_on_stream("cudnnRNNBackwardWeights_v8", stream_of_handle(handle), [&] {
    const Call call = make_call(network, x_desc, x, hx, nullptr, weight_bytes, nullptr, reserve_bytes, reserve, true);
    return operation_in_compute_type(data_type_of(call.network.kind), [=](auto tag) {
      backward_weights<typename decltype(tag)::type>(call, dweights, mode == 0);  // cudnn_adv.h: CUDNN_WGRAD_MODE_ADD
    });
  });
}
