"""Trained state is saved, loaded with weights_only=True, and copied; so are views of tensors.

form: saved and restored
expect: same
"""

import copy
import io

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
average = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
rows = torch.randn(8, 6)

for _ in range(3):
    loss = model(rows[:, :6]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    saved = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rows": rows[2:]}, saved)
    saved.seek(0)
    found = torch.load(saved, weights_only=True)
    assert b"_tfdet" not in saved.getvalue()  # begins the names of attributes that the tracer adds to tensors
    model.load_state_dict(found["model"])
    kept = copy.deepcopy([rows.t(), copy.copy(rows[1])])
    with torch.no_grad():
        for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs, 0.5)
