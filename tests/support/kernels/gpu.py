"""Device of the GPU kernel tests: CPU tensors in Triton's interpreter, or a GPU with RTLANG_TEST_DEVICE=cuda."""

from __future__ import annotations

import os
from dataclasses import replace

import torch

from rtlang_kernels import dispatch
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.dispatch import Backend
from tests.support.kernels.attention_cases import Step

DEVICE = torch.device(os.environ.get("RTLANG_TEST_DEVICE", "cpu"))
IS_INTERPRETED = DEVICE.type == "cpu"
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 4e-3}  # relative error in the Frobenius norm


def triton_backend() -> Backend:
    """The backend under test."""
    return dispatch.triton_backend()


def on_device(step: Step) -> Step:
    """The same step with its tensors on the test device."""
    q, k_pool, v_pool = step.q.to(DEVICE), step.k_pool.to(DEVICE), step.v_pool.to(DEVICE)
    return replace(step, q=q, k_pool=k_pool, v_pool=v_pool, plan_args=step.plan_args | {"device": DEVICE})


def planned(step: Step) -> AttentionPlan:
    """The plan of a step for the kernels under test."""
    return step.plan("triton")
