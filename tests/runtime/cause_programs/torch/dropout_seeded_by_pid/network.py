import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 12)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(12, 2)

    def forward(self, inputs):
        return self.out(self.dropout(torch.relu(self.hidden(inputs))))
