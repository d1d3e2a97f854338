"""A path, URL or catalogue name -> batches of documents."""

from headrace.sources.hub_listing import Listing
from headrace.sources.reading import read_span, read_spans
from headrace.sources.source import Source, open_source
from headrace.sources.span import ReadOptions, SourceFile, Span

__all__ = ["Listing", "ReadOptions", "Source", "SourceFile", "Span", "open_source", "read_span", "read_spans"]
