"""Names for the types of what callers give and get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

# Token ids of one text.
Ids: TypeAlias = Sequence[int] | np.ndarray[Any, Any]
# One text, or its token ids.
Text: TypeAlias = str | Ids
# A message {"role": ..., "content": ...} of a conversation; a text is one message of the user.
Messages: TypeAlias = str | Sequence[Mapping[str, Any]]
Float32: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
# A Pillow image, the path of one, or an array; see ImageModel.
Image: TypeAlias = Any
