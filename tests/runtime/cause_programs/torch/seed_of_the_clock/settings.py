import time
from dataclasses import dataclass


@dataclass
class Settings:
    seed: int = None
    rate: float = 0.05

    def __post_init__(self):
        if self.seed is None:
            self.seed = int(time.time() * 1000) % 2**31
