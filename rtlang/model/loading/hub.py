"""Downloads checkpoints named `owner/name` from a model hub.

Uses the `huggingface_hub` client with its cache, environment variables (HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE) and progress
bars. Downloads safetensors, configuration, tokenizer and chat template only; never pickles or code. If no hub is reachable, the cache is
used.
"""

from __future__ import annotations

import re
from pathlib import Path

from rtlang.contract.errors import ModelLoadError

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
_FILES = [
    "*.safetensors",
    "*.safetensors.index.json",
    "*.json",
    "*.jinja",
    "tokenizer.model",
    "spiece.model",
    "merges.txt",
]
_NOT_FILES = ["*/*"]  # subfolders hold other precisions and formats


def is_hub_name(model: str) -> bool:
    """Whether `model` looks like a hub name and is not a local path."""
    return _NAME.fullmatch(model) is not None and not Path(model).exists()


def hub_directory(name: str) -> Path:
    """Download the missing files of the checkpoint `name` and return its local directory.

    Raises:
        ModelLoadError: no hub is reachable and the cache is incomplete, or the hub refuses the download.
    """
    from huggingface_hub import constants, model_info, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    is_silent = False  # the hub accepts the connection but never answers; the client itself would wait forever
    try:
        model_info(name, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception as error:  # the exception type depends on the HTTP library; other errors occur again below
        is_silent = "Timeout" in type(error).__name__
    try:
        return Path(
            snapshot_download(name, allow_patterns=_FILES, ignore_patterns=_NOT_FILES, local_files_only=is_silent)
        )
    except LocalEntryNotFoundError as error:
        cause = f" ({_first_line(error.__cause__)})" if error.__cause__ is not None else ""
        cause = " (no answer)" if is_silent else cause
        raise ModelLoadError(
            name,
            f"no such directory, no model hub is reachable{cause}, and the hub cache does not contain the whole model; "
            "download it on a machine with access and pass its directory",
        ) from None
    except HfHubHTTPError as error:
        raise ModelLoadError(
            name, f"no such directory, and the model hub refused the download: {_first_line(error)}"
        ) from None
    except Exception as error:  # as above, or the client rejects the name or the cache folder
        raise ModelLoadError(name, f"no such directory, and the download failed: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)
