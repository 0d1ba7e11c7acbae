"""Files beside a shape, read only from the shape's own folder, and images as bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAX_PIXELS = 1 << 26


def read_beside(path: Path, name: str) -> bytes | None:
    """The bytes of a file that `path` refers to by a relative name, or None.

    Only files inside the folder of `path` are read: no absolute name, no way up, no address, no link leading out.
    """
    name = name.strip().replace("\\", "/")
    if not name or ":" in name or "\0" in name or name.startswith("/") or ".." in name.split("/"):
        return None
    folder = path.parent.resolve()
    try:
        wanted = (folder / name).resolve()
        if not wanted.is_relative_to(folder) or not wanted.is_file():
            return None
        return wanted.read_bytes()
    except (OSError, ValueError, RuntimeError):  # no name of a file here, or links that run in a circle
        return None


def decode_image(data: bytes) -> NDArray[np.uint8] | None:
    """A picture as (height, width, 3 or 4) uint8, or None where it cannot be read or has more than 2^26 pixels."""
    import io
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "BMP", "TIFF", "WEBP", "TGA")) as image:
                if image.width * image.height > MAX_PIXELS:
                    return None
                has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
                return np.array(image.convert("RGBA" if has_alpha else "RGB"), dtype=np.uint8)
    except Exception:  # the decoders raise many kinds; a broken picture must not cost the shape
        return None


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """A picture as the bytes of a PNG file."""
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(stream, format="PNG")
    return stream.getvalue()
