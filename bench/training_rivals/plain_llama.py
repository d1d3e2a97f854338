"""A Llama in the manner of nanoGPT's model.py: one file, one projection for q, k and v, all logits at once."""

import json
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).contiguous().view(rows, length, width))


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, width, heads, ffn, eps):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)
        self.attention = Attention(width, heads)
        self.gate, self.up = nn.Linear(width, ffn, bias=False), nn.Linear(width, ffn, bias=False)
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class PlainLlama(nn.Module):
    """The tables are one parameter, and positions a buffer made once."""

    def __init__(self, config):
        super().__init__()
        width, heads, eps = config["hidden_size"], config["num_attention_heads"], config["rms_norm_eps"]
        self.table = nn.Embedding(config["vocab_size"], width)
        self.blocks = nn.ModuleList(
            Block(width, heads, config["intermediate_size"], eps) for _ in range(config["num_hidden_layers"])
        )
        self.norm = nn.RMSNorm(width, eps)
        self.head = nn.Linear(width, config["vocab_size"], bias=False)
        self.head.weight = self.table.weight
        cos, sin = positions(config["max_position_embeddings"], width // heads, rope_base(config))
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens, targets):
        length = tokens.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
        return logits, loss


def rope_base(config):
    return (config.get("rope_parameters") or config)["rope_theta"]


def positions(length, width, base):
    angles = torch.outer(torch.arange(length).float(), base ** (torch.arange(0, width, 2).float() / -width))
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def load(folder):
    config = json.loads((Path(folder) / "config.json").read_text())
    weights = load_file(Path(folder) / "model.safetensors")
    model = PlainLlama(config)
    model.load_state_dict(dict(renamed(weights, config["num_hidden_layers"])))
    return model


def renamed(weights, layers):
    table = weights["model.embed_tokens.weight"]
    yield from (("table.weight", table), ("head.weight", table), ("norm.weight", weights["model.norm.weight"]))
    for i in range(layers):
        theirs, ours = f"model.layers.{i}", f"blocks.{i}"
        qkv = [weights[f"{theirs}.self_attn.{name}_proj.weight"] for name in "qkv"]
        yield f"{ours}.attention.qkv.weight", torch.cat(qkv)
        yield f"{ours}.attention.out.weight", weights[f"{theirs}.self_attn.o_proj.weight"]
        yield f"{ours}.norm_1.weight", weights[f"{theirs}.input_layernorm.weight"]
        yield f"{ours}.norm_2.weight", weights[f"{theirs}.post_attention_layernorm.weight"]
        for name in ("gate", "up", "down"):
            yield f"{ours}.{name}.weight", weights[f"{theirs}.mlp.{name}_proj.weight"]
