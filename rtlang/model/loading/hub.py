"""Downloads checkpoints named `owner/name` or `owner/name@revision` from a model hub.

Uses the `huggingface_hub` client with its cache, environment variables (HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE) and progress
bars. `hub_directory` downloads configuration, tokenizer and chat template, by which the loader judges the model; `download_weights`
then downloads the safetensors files that are loaded and no others, of the same commit; never pickles or code. A GGUF file is a whole model:
`hub_file` downloads it, or all files of one that is split. If no hub is reachable, the cache is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.checkpoint_files import INDEX, config_obstacle, weight_files, weight_names
from rtlang.model.loading.gguf.model_files import first_files, shards_of
from rtlang.model.loading.model_names import HubName
from rtlang.model.loading.published import first_line

_SUFFIXES = (".json", ".jinja", ".model", ".tiktoken")
_NAMES = ("merges.txt", "vocab.txt")
_NOT_NAMES = (".index.json",)  # of pickles or of other layouts; `INDEX` is downloaded nevertheless


def hub_directory(name: HubName) -> Path:
    """Download the missing ones of the small files of a checkpoint, and return its local directory.

    Raises:
        ModelLoadError: the repository holds no model in the layout of transformers, the hub refuses the download, or no hub is reachable
            and the cache is incomplete.
    """
    from huggingface_hub import hf_hub_download, snapshot_download

    with _reported(name):
        names, failure = _names_of(name)
        if failure is not None:
            return _cached(name, failure)
        if "config.json" not in names:
            raise ModelLoadError(
                _text(name),
                config_obstacle(
                    names,
                    lambda each: Path(hf_hub_download(name.repository, each, revision=name.revision)).read_text(
                        encoding="utf-8"
                    ),
                ),
            )
        wanted = [each for each in names if _is_small(each)]
        return Path(snapshot_download(name.repository, revision=name.revision, allow_patterns=wanted))


def hub_file(name: HubName) -> Path:
    """Download the missing files of a GGUF model on a hub, and return the path of the one that is named.

    Raises:
        ModelLoadError: the repository does not have the file, and as `hub_directory`.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    assert name.file is not None
    with _reported(name):
        paths = {}
        for each in shards_of(name.file):
            try:
                paths[each] = Path(hf_hub_download(name.repository, each, revision=name.revision))
            except LocalEntryNotFoundError:  # there is no hub
                raise
            except EntryNotFoundError:
                names, _ = _names_of(name)
                there = ", ".join(first_files(names)[:8]) or "none"
                raise ModelLoadError(
                    _text(name), f"the repository has no file {each}; its GGUF files: {there}"
                ) from None
        return paths[name.file]


def download_weights(name: HubName, directory: Path) -> None:
    """Download the missing weights of the checkpoint of which `hub_directory` returned the directory.

    Raises:
        ModelLoadError: the weights are in another format, and as `hub_directory`.
    """
    from huggingface_hub import snapshot_download

    try:
        weight_files(directory)
        return
    except ModelLoadError:
        pass  # not all of them are here
    exact = HubName(name.repository, directory.name)  # the commit of the other files
    with _reported(name):
        names, failure = _names_of(exact)
        if failure is not None:
            raise failure
        try:
            wanted = weight_names(names, lambda each: (directory / each).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelLoadError(_text(name), str(error)) from None
        snapshot_download(exact.repository, revision=exact.revision, allow_patterns=wanted)


def _is_small(name: str) -> bool:
    """Whether a file of a repository is loaded, other than weights."""
    if "/" in name or name.endswith(_NOT_NAMES):
        return name == INDEX
    return name.endswith(_SUFFIXES) or name in _NAMES


def _names_of(name: HubName) -> tuple[list[str], Exception | None]:
    """Names of the files of a repository, or the exception of the client."""
    from huggingface_hub import constants, model_info

    try:
        # With a timeout, since a hub may accept the connection and never answer.
        info = model_info(name.repository, revision=name.revision, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception as error:  # the type depends on the HTTP library
        return [], error
    return [each.rfilename for each in info.siblings or ()], None


def _cached(name: HubName, failure: Exception) -> Path:
    """The directory in the cache; raises `failure`, the answer of the hub, if it is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        # The client compares the cache with the list of files if it has one: only what we always download may be asked for.
        directory = Path(
            snapshot_download(
                name.repository, revision=name.revision, allow_patterns=["config.json"], local_files_only=True
            )
        )
    except (LocalEntryNotFoundError, ValueError):
        raise failure from None
    if not (directory / "config.json").is_file():
        raise failure
    return directory


@contextmanager
def _reported(name: HubName) -> Iterator[None]:
    """Turn exceptions of the client into a ModelLoadError that says what to do."""
    from huggingface_hub import errors

    try:
        yield
    except ModelLoadError:
        raise
    except errors.GatedRepoError:
        reason = (
            "the model hub refused the download: access to this model has to be granted on its page; then set HF_TOKEN"
        )
    except errors.RevisionNotFoundError:
        reason = (
            f"the model hub has no revision {name.revision!r} of {name.repository!r}: expected a branch, tag or commit"
        )
    except errors.RepositoryNotFoundError:
        reason = f"the model hub refused the download: it has no model {name.repository!r}, or a private one that needs HF_TOKEN"
    except errors.HfHubHTTPError as error:
        reason = f"the model hub refused the download: {first_line(error)}"
    except (
        Exception
    ) as error:  # connections of any HTTP library, or a name, an address or a cache folder that the client rejects
        reason = (
            f"no model hub is reachable ({_cause(error)}), and the hub cache does not contain the whole model; download it on a machine "
            "with access and pass its directory"
        )
    else:
        return
    raise ModelLoadError(_text(name), f"no such directory, and {reason}") from None


def _cause(error: Any) -> str:
    return "no answer" if "Timeout" in type(error).__name__ else first_line(error)


def _text(name: HubName) -> str:
    file = "" if name.file is None else f":{name.file}"
    return f"{name.repository}{file}" if name.revision is None else f"{name.repository}{file}@{name.revision}"
