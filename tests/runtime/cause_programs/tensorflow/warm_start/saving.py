import os


def load_if_there(model, path):
    if os.path.exists(path):
        model.load_weights(path)


def save(model, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    model.save_weights(path)
