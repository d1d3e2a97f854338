"""Tokens, targets -> loss: the interface of every model, and the models."""

from headrace.models.base import LanguageModel
from headrace.models.llama import export_llama, export_safetensors, import_llama
from headrace.models.loss import Evaluation, chunked_cross_entropy
from headrace.models.registry import MODELS, build_model, describe_model, forward_options

__all__ = [
    "MODELS",
    "Evaluation",
    "LanguageModel",
    "build_model",
    "chunked_cross_entropy",
    "describe_model",
    "export_llama",
    "export_safetensors",
    "forward_options",
    "import_llama",
]
