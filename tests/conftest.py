"""What holds for all tests."""

import os

# Some virtual machines announce AMX without being able to run it, and there any product of bfloat16 matrices ends torch
# with an illegal instruction. oneDNN reads this when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
