"""What holds for all tests."""

import os

import pytest

# Some virtual machines announce AMX without being able to run it, and there any product of bfloat16 matrices ends torch
# with an illegal instruction. oneDNN reads this when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

FIRST = (
    "docs/test_doc_code.py",
    # While the first process compiles for the file above, the second one runs these, for which little is compiled.
    "docs/test_doc_site.py",
    "viewer/test_match_html.py",
    "viewer/test_report_page.py",
    "cli/test_info.py",
    "runs/test_end_to_end.py",
    "docs/test_examples.py",
    "runs/test_match_pair.py",
    "runs/test_partial.py",
    "training/test_prepare.py",
    "training/test_loop.py",
    "viewer/test_live.py",
    "experiments/test_small_comparisons.py",
    "runs/test_app.py",
    "runs/test_unlabelled.py",
    "network/test_intrinsic_conv.py",
    "experiments/test_table_run.py",
)
"""Files that are run before the others, most of them because they take longest: ten seconds or more."""


def pytest_collection_modifyitems(items):
    """Begin with the longest files: a process that is given one of them at the end would keep the others waiting."""
    order = {name: place for place, name in enumerate(FIRST)}
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
