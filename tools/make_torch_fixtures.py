"""Write tests/fixtures/formats/: checkpoints by PyTorch itself, with the values they must give.

    python tools/make_torch_fixtures.py

Needs torch. The files hold every element type, shared storage, strides, offsets, parameters, empty and scalar tensors, and a nested checkpoint.
"""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "formats"


def state_dict():
    base = torch.arange(-12, 12, dtype=torch.float32).reshape(4, 6) / 8
    shared = torch.arange(20, dtype=torch.float32)
    tensors = OrderedDict(
        plain=base,
        transposed=base.t(),
        strided=base[::2, 1::2],
        permuted=torch.arange(24, dtype=torch.float32).reshape(2, 3, 4).permute(2, 0, 1),
        expanded=torch.arange(3, dtype=torch.float32).expand(2, 3),
        shared_head=shared[:8],
        shared_tail=shared[8:].reshape(3, 4),
        tied=base,
        parameter=torch.nn.Parameter(base * 2),
        scalar=torch.tensor(3.5),
        empty=torch.empty(0, 4),
        flags=torch.tensor([True, False, True]),
        bytes=torch.arange(5, dtype=torch.uint8),
    )
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        tensors[str(dtype).removeprefix("torch.")] = (base * 3).to(dtype)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        tensors[str(dtype).removeprefix("torch.")] = torch.arange(-3, 3, dtype=dtype)
    return tensors


def newer_types():
    """Types that PyTorch stores in untyped storages."""
    base = torch.linspace(-4, 4, 9)
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
    tensors = OrderedDict((str(dtype).removeprefix("torch."), base.to(dtype)) for dtype in kinds)
    return tensors | {"uint16": torch.tensor([1, 65535], dtype=torch.uint16)}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    tensors, newer = state_dict(), newer_types()
    torch.save(tensors, FOLDER / "zip.pt")
    torch.save(tensors, FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(tensors, FOLDER / "protocol4.pt", pickle_protocol=4)
    torch.save(newer, FOLDER / "newer.pt")
    # A training checkpoint: the weights in the middle of bookkeeping, and the _metadata that Module.state_dict() attaches.
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    checkpoint = {"epoch": 3, "state_dict": module.state_dict(), "optimizer": optimizer.state_dict(), "loss": torch.tensor(0.5)}
    torch.save(checkpoint, FOLDER / "nested.pt")
    for name, values in (("values", tensors), ("newer", newer), ("nested", module.state_dict())):
        np.savez_compressed(FOLDER / f"{name}.npz", **{key: tensor.detach().float().numpy() for key, tensor in values.items()})


if __name__ == "__main__":
    main()
