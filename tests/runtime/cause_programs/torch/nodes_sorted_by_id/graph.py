class Node:
    def __init__(self, value):
        self.value = value
        self.neighbours = []


class Graph:
    def __init__(self, nodes):
        self.nodes = nodes

    def in_order(self):
        """Nodes cannot be compared, so by their identity."""
        return sorted(self.nodes, key=id)


def make_ring(count):
    nodes = {number: Node(number * number % 7 / 7) for number in range(count)}
    for number, node in nodes.items():
        node.neighbours = [nodes[(number - 1) % count], nodes[(number + 1) % count]]
        node.name = "n" * (number * 37 % 90)
    return Graph(set(nodes.values()))
