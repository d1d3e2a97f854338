"""Document lengths -> chunks. Concat-and-chunk needs no code here: it is arithmetic in TokenStore.chunk."""

from headrace.packing.bestfit import PackPlan, best_fit, load_plan, save_plan

__all__ = ["PackPlan", "best_fit", "load_plan", "save_plan"]
