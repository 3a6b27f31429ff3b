"""Objects: immutable blobs in files named by their SHA-256; stored once and never rewritten."""

from pulse_adapters.objects.files import FileObjects
from pulse_adapters.objects.shards import Shard, shards

__all__ = ["FileObjects", "Shard", "shards"]
