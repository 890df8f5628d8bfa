// Recurrent networks of cuDNN: the descriptors, and the layout of weights, sequences and reserve space.
#pragma once
#include "dnn.h"

namespace vgpu {

// cudnn_adv.h: cudnnRNNMode_t
enum class Cell : int { Relu = 0, Tanh = 1, Lstm = 2, Gru = 3 };

struct Dropout {  // cudnnDropoutDescriptor_t
  float probability = 0;
  void* states = nullptr;
  unsigned long long seed = 0;
};

// cudnnRNNDescriptor_t. A pseudo-layer is one direction of a layer.
struct Recurrent {
  Cell cell = Cell::Tanh;
  int bias_mode = 0, kind = -1;  // cudnnRNNBiasMode_t, cudnnDataType_t of the weights
  int64_t input_size = 0, hidden_size = 0, projection_size = 0, layers = 0;
  bool is_bidirectional = false, skips_input = false;
  Dropout* dropout_desc = nullptr;
  float dropout = 0;
  // Attributes that change no result here; they are stored because programs read them back.
  int algorithm = 0, math_precision = 0, math_type = 0;
  unsigned flags = 0;

  void check() const;  // FallbackUnsupported, InvalidValue
  int64_t directions() const { return is_bidirectional ? 2 : 1; }
  int64_t pseudo_layers() const { return layers * directions(); }
  int64_t gates() const { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }
  bool has_input_bias() const { return bias_mode == 1 || bias_mode == 2; }
  bool has_recurrent_bias() const { return bias_mode == 2 || bias_mode == 3; }
  int64_t layer_input_size(int64_t layer) const { return layer ? directions() * hidden_size : input_size; }

  // Offsets in the weight space, in elements. All matrices come before all biases. A matrix has hidden_size rows.
  int64_t matrix(int64_t pseudo_layer, bool is_recurrent) const;  // of the first gate; the others follow
  int64_t bias(int64_t pseudo_layer, bool is_recurrent) const;
  int64_t weight_count() const { return bias(pseudo_layers(), false); }
};

// cudnnRNNDataDescriptor_t: sequences of vectors.
struct Sequences {
  int kind = -1, layout = 0;  // cudnnRNNDataLayout_t
  int64_t max_length = 0, batch_size = 0, vector_size = 0;
  std::vector<int> lengths;

  void check() const;  // InvalidValue
  bool is_packed() const { return layout == 1; }
  int64_t rows() const;                            // vectors in memory
  int64_t row(int64_t time, int64_t sample) const;  // where a vector lies, counted in vectors
};

// What the forward pass keeps of one step for the gradients, and what the gradient of the data keeps for that of the weights.
// All of it lies in the reserve space, in the type of computing.
struct ReserveLayout {
  int64_t gates, hidden, samples, steps;  // gates, hidden: elements of one step's gates and of its state

  ReserveLayout(const Recurrent& network, const Sequences& x)
      : gates(network.gates() * network.hidden_size),
        hidden(network.hidden_size),
        samples(x.batch_size),
        steps(x.max_length),
        pseudo_layers_(network.pseudo_layers()) {}
  int64_t step_size() const { return 3 * gates + 2 * hidden; }
  int64_t count() const { return pseudo_layers_ * steps * samples * step_size(); }
  int64_t at(int64_t pseudo_layer, int64_t time, int64_t sample) const {
    return ((pseudo_layer * steps + time) * samples + sample) * step_size();
  }
  // Offsets in a step.
  int64_t activations() const { return 0; }
  int64_t cell_state() const { return gates; }  // of an LSTM; of a GRU the recurrent part of its new state
  int64_t output() const { return gates + hidden; }
  int64_t input_gradients() const { return gates + 2 * hidden; }
  int64_t recurrent_gradients() const { return 2 * gates + 2 * hidden; }

 private:
  int64_t pseudo_layers_;
};

}  // namespace vgpu
