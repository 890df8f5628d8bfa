from torch import nn


class TiedNetwork(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))

    def forward(self, inputs):
        for block in [*self.blocks, *self.blocks]:
            inputs = block(inputs).tanh() + inputs
        return inputs

    def unique_layers(self):
        return {block for block in [*self.blocks, *self.blocks]}
