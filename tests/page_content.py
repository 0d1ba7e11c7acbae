"""What a page holds, read back, and how much of a picture of it changed."""

import base64
import json
import re

import numpy as np


def content(text: str) -> dict:
    """The data that a page's scripts get."""
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


def unpacked(packed: dict) -> np.ndarray:
    """The numbers of a packed array."""
    return np.frombuffer(base64.b64decode(packed["data"]), {"u1": "u1", "u2": "<u2", "u4": "<u4"}[packed["type"]])


def changed(before: np.ndarray, after: np.ndarray) -> float:
    """Share of the pixels that differ visibly."""
    return float((np.abs(before - after).max(axis=2) > 24).mean())


def addresses(text: str) -> set[str]:
    """Every web address in a page, and whatever could fetch something without one."""
    return set(re.findall(r"https?://[^\s\"'`<>)]+", text)) | set(re.findall(r"\bsrc=|@import|url\(", text))
