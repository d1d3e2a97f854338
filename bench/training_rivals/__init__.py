"""Contenders of bench/training.py, one file each, all with the same few names.

`build(spec)` gives the model with the first weights, `loss(model, inputs, targets)` its mean loss, `train(model, spec)`
trains it as its authors do, `USES` says with what, `PACKAGES` whose versions are reported. The steps are counted and
timed from outside (meter.py).
"""
