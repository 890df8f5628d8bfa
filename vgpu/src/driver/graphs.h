// CUDA graphs, which programs build node by node or by stream capture.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "api.h"
#include "handles.h"

namespace vgpu {

using Step = std::function<int(void* stream)>;  // enqueues the operation of a node on a stream
struct Node;
using Nodes = std::vector<Node*>;
struct Node {
  Step step;
  Nodes dependencies;  // earlier nodes of the graph
};
struct Graph {
  Nodes nodes;

  Node* add(Step step, Nodes dependencies) {
    nodes.push_back(Handles<Node>::all().add(std::make_unique<Node>(Node{std::move(step), std::move(dependencies)})));
    return nodes.back();
  }
  bool contains(Node* const* candidates, size_t count) const {
    auto is_in_graph = [this](const Node* node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); };
    return !count || (candidates && std::all_of(candidates, candidates + count, is_in_graph));
  }
  ~Graph() {
    for (Node* node : nodes) Handles<Node>::all().remove(node);
  }
};

// Adds a node, or replaces the step of one in an instantiated graph; CUDA's result.
int add_node(void** node, void* graph, Node* const* dependencies, size_t count, Step step);
int update_node(void* executable, const void* node, Step step);

// Makes the step of a kernel node, with a copy of its arguments; checks them as a launch does.
CudaResult make_step(Step& step, Kernel& kernel, const Configuration& configuration, const Arguments& arguments);

}  // namespace vgpu
