"""Raw text -> batches without `prepare`: read, tokenized and cut into chunks by threads, in a computed order."""

from headrace.loading.live.data import LiveData
from headrace.loading.live.feed import LiveFeed
from headrace.loading.live.text import LiveText

__all__ = ["LiveData", "LiveFeed", "LiveText"]
