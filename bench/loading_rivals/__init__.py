"""Contenders of bench/loading.py, one file each, all with the same few names.

`batches(spec, workers)` gives int64 inputs and targets for ever, `convert(spec)` makes the contender's own files once,
`WORKERS` lists the worker counts to try, `GIVES` says what a batch is made of, `ORDER` how its rows lie in the data
(check.py), `PACKAGE` whose version is reported. A library is imported at the top of its file, so opening is timed
without imports.
"""
