// Graphs of operations, as programs make them node by node, or by the capture of streams.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "api.h"
#include "handles.h"

namespace vgpu {

using Step = std::function<int(void* stream)>;  // asks a stream for what a node does
struct Node;
using Nodes = std::vector<Node*>;
struct Node {
  Step step;
  Nodes after;  // its dependencies, which were added before it
};
struct Graph {
  Nodes nodes;

  Node* add(Step step, Nodes after) {
    nodes.push_back(Handles<Node>::all().add(std::make_unique<Node>(Node{std::move(step), std::move(after)})));
    return nodes.back();
  }
  bool holds(Node* const* some, size_t count) const {
    auto known = [this](const Node* node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); };
    return !count || (some && std::all_of(some, some + count, known));
  }
  ~Graph() {
    for (Node* node : nodes) Handles<Node>::all().take(node);
  }
};

// A launch with a copy of its arguments, checked as at a launch.
CudaResult make_step(Step& step, Kernel& kernel, const Configuration& how, const Arguments& given);

}  // namespace vgpu
