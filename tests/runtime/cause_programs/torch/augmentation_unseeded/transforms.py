import numpy as np


class Compose:
    def __init__(self, parts):
        self.parts = parts

    def __call__(self, image):
        for part in self.parts:
            image = part(image)
        return image


class Flip:
    """Flips every second image."""

    def __init__(self):
        self.count = 0

    def __call__(self, image):
        self.count += 1
        return image[:, :, ::-1].copy() if self.count % 2 else image


class Jitter:
    def __init__(self, scale):
        self.scale = scale
        self.generator = np.random.default_rng()

    def __call__(self, image):
        return (image + self.generator.normal(0, self.scale, image.shape)).astype(np.float32)
