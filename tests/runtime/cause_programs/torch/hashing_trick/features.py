from torch.utils.data import Dataset


class FeatureHasher:
    """Maps a feature to one of a fixed number of buckets."""

    def __init__(self, buckets):
        self.buckets = buckets

    def bucket(self, field, value):
        return hash((field, value)) % self.buckets


class UserEvents(Dataset):
    def __init__(self, hasher):
        self.rows = [(f"user{i % 7}", f"item{i % 11}", float(i % 3 == 0)) for i in range(48)]
        self.hasher = hasher

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        user, item, clicked = self.rows[index]
        return self.hasher.bucket("user", user), self.hasher.bucket("item", item), clicked
