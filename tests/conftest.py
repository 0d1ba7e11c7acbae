"""What holds for all tests."""

import os

import pytest

# Some virtual machines announce AMX without being able to run it, and there any product of bfloat16 matrices ends torch
# with an illegal instruction. oneDNN reads this when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

LONGEST = (
    "docs/test_doc_code.py",
    "runs/test_match_pair.py",
    "runs/test_end_to_end.py",
    "runs/test_partial.py",
    "viewer/test_match_html.py",
    "viewer/test_live.py",
    "training/test_prepare.py",
    "training/test_loop.py",
    "registration/test_fit.py",
    "network/test_intrinsic_conv.py",
    "experiments/test_faust_run.py",
    "experiments/test_small_comparisons.py",
    "experiments/test_table_run.py",
)
"""Files whose tests take half a minute or more, the longest first."""


def pytest_collection_modifyitems(items):
    """Begin with the longest files: a process that is given one of them at the end would keep the others waiting."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get("/".join(item.path.parts[-2:]), len(order)))


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory):
    """A cache for all tests without one of their own, in all processes: not that of whoever runs them."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder in that of the session
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "acnn-cache"))
        yield
