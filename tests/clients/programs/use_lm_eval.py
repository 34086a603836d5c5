"""lm-eval with `local-completions`: prompts as token ids, log-likelihoods by echo, generations; a task from a local file."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path

from address import KEY, MODEL, URL

os.environ["OPENAI_API_KEY"] = KEY
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.openai_completions import LocalCompletionsAPI

model = LocalCompletionsAPI(
    base_url=f"{URL}/completions",
    model=MODEL,
    auth_token=KEY,
    max_length=512,
    batch_size=4,
)
assert model.tokenizer_backend == "remote"  # found by itself


def likelihood(context: str, continuation: str) -> tuple[float, bool]:
    request = Instance(
        request_type="loglikelihood", doc={}, arguments=(context, continuation), idx=0, metadata=("t", 0, 1)
    )
    return model.loglikelihood([request])[0]


(warm, _), (noise, _) = likelihood("The sun is", " warm"), likelihood("The sun is", " zqxj vvk")
assert math.isfinite(warm)
assert warm > noise
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "test.jsonl"
    rows = [
        {"question": "The sun is", "choices": ["warm", "zqxj vvk"], "answer": 0},
        {"question": "A cat is an", "choices": ["qqqzzz", "animal"], "answer": 1},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    shared = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(path)}}, "test_split": "test"}
    choice = ConfigurableTask(
        config={
            **shared,
            "task": "choices",
            "output_type": "multiple_choice",
            "doc_to_text": "{{question}}",
            "doc_to_choice": "choices",
            "doc_to_target": "answer",
        }
    )
    generation = ConfigurableTask(
        config={
            **shared,
            "task": "texts",
            "output_type": "generate_until",
            "doc_to_text": "{{question}}",
            "doc_to_target": "{{choices[answer]}}",
            "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
            "metric_list": [{"metric": "exact_match"}],
        }
    )
    found = simple_evaluate(model=model, tasks=[choice, generation], bootstrap_iters=0)
assert found["results"]["choices"]["acc,none"] == 1.0, found["results"]
assert "exact_match,none" in found["results"]["texts"]
