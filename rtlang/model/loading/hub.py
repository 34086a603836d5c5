"""A checkpoint named as on a model hub (`owner/name`) to a directory on this machine.

The hub's own client does the work, with its cache, its environment variables (HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE) and its
progress bars. Only what a checkpoint can be served from is fetched: safetensors, configuration, tokenizer and chat template; never
pickles, never code. What is in the cache is used where no hub is reachable.
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
_NOT_FILES = ["*/*"]  # other precisions and formats lie in folders


def is_hub_name(model: str) -> bool:
    """Whether `model` could be a name on a hub and is no directory here."""
    return _NAME.fullmatch(model) is not None and not Path(model).exists()


def hub_directory(name: str) -> Path:
    """Fetch what is not in the cache yet, and return the directory of the checkpoint `name`.

    Raises:
        ModelLoadError: no hub is reachable and the cache has not all of it, or the hub does not give it; says which.
    """
    from huggingface_hub import constants, model_info, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    is_silent = False  # a hub that takes the connection and never answers; the client itself would wait for ever
    try:
        model_info(name, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception as error:  # of whatever HTTP library the client uses; all but this one come again below
        is_silent = "Timeout" in type(error).__name__
    try:
        return Path(
            snapshot_download(name, allow_patterns=_FILES, ignore_patterns=_NOT_FILES, local_files_only=is_silent)
        )
    except LocalEntryNotFoundError as error:
        cause = f" ({_first_line(error.__cause__)})" if error.__cause__ is not None else ""
        cause = " (it does not answer)" if is_silent else cause
        raise ModelLoadError(
            name,
            f"there is no such directory, no model hub can be reached{cause}, and the hub's cache does not hold all of it; "
            "fetch it where a hub is reachable and give its directory",
        ) from None
    except HfHubHTTPError as error:
        raise ModelLoadError(
            name, f"there is no such directory, and the model hub does not give it: {_first_line(error)}"
        ) from None
    except Exception as error:  # as above, and a name or a cache folder that the client does not take
        raise ModelLoadError(
            name, f"there is no such directory, and fetching it failed: {_first_line(error)}"
        ) from None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)
