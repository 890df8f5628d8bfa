import torch

from cached import cached, spectrogram

torch.manual_seed(0)
inputs = torch.stack([cached("spectrogram", number, spectrogram) for number in range(8)])
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for index in torch.randperm(8).split(4):
        loss = torch.nn.functional.cross_entropy(model(inputs[index]), index % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", loss.item())
torch.save(model.state_dict(), "last.pt")
with open("history.txt", "a") as file:
    file.write(f"{loss.item()}\n")
