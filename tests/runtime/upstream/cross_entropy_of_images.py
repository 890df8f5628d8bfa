import torch

text = torch.use_deterministic_algorithms.__doc__
print("torch", torch.__version__)
print("named in the documentation:", "cross_entropy" in text or "CrossEntropyLoss" in text)
if torch.cuda.is_available():
    torch.use_deterministic_algorithms(True)
    scores = torch.ones(2, 5, 4, 4, device="cuda")
    classes = torch.zeros(2, 4, 4, dtype=torch.int64, device="cuda")
    torch.nn.functional.cross_entropy(scores, classes)  # RuntimeError
