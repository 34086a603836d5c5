"""Names of models: `owner/name`, `owner/name@revision` or `owner/name:file.gguf` on a hub, and what a name that leads nowhere means."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loading.checkpoint_files import config_obstacle, names_in, other_format

_PART = r"[\w-][\w.-]*"
_HUB_NAME = re.compile(rf"({_PART}/{_PART})(?:@([\w.][\w./-]*))?", re.ASCII)
_HUB_FILE = re.compile(
    rf"(?P<repository>{_PART}/{_PART})(?:@(?P<before>[\w][\w.-]*))?(?P<mark>[:/])(?P<file>(?:{_PART}/)*{_PART}\.gguf)"
    r"(?:@(?P<after>[\w.][\w./-]*))?",
    re.ASCII | re.IGNORECASE,
)
_FILE = re.compile(r"\.(gguf|safetensors|bin|pth?|ckpt|json|zip|tar|tgz|gz|onnx|llamafile)$", re.IGNORECASE)
_ARCHIVE = re.compile(r"\.(zip|tar|tgz|gz|bz2|xz|zst|7z)$", re.IGNORECASE)
_SCHEME = re.compile(r"(\w[\w+.-]*):(//)?(.+)")
_HOSTED = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?/(.+)", re.ASCII)
_WITH_TAG = re.compile(rf"({_PART}(?:/{_PART})*):({_PART})", re.ASCII)
_ON_PAGE = re.compile(rf"(?:models/)?({_PART}/{_PART})(?:/(?:tree|blob|resolve|raw|commit)/([\w.-]+).*)?/?", re.ASCII)
_HUB_FORM = "a model on a hub is owner/name or owner/name@revision"
_GGUF_FORM = "pass the path of a GGUF file, or owner/name:FILE.gguf on a hub"


@dataclass(frozen=True, slots=True)
class HubName:
    """A model on a hub.

    Attributes:
        revision: a branch, a tag or a commit; None for the default branch.
        file: the GGUF file that is the model, or the first of its files; None for a repository that is one model.
    """

    repository: str
    revision: str | None
    file: str | None = None

    @classmethod
    def parse(cls, model: str) -> HubName | None:
        """The name that `model` is; None if it is a path: something is there, or it ends as a file's name does.

        A GGUF file on a hub may be written as a path in its repository, unless the first folder exists here.
        """
        found = _HUB_FILE.fullmatch(model)
        if found is not None and not (found["before"] and found["after"]):
            is_here = found["mark"] == "/" and Path(model.split("/")[0]).exists()
            if is_here or Path(model).exists():
                return None
            return cls(found["repository"], found["before"] or found["after"], found["file"])
        match = _HUB_NAME.fullmatch(model)
        if match is None or _FILE.search(model) or Path(model).exists():
            return None
        return cls(match[1], match[2])


def path_obstacle(model: str) -> str:
    """Why `model`, which is neither a directory nor a hub name, cannot be loaded, and what to pass instead.

    Raises:
        OSError, RuntimeError: it cannot be a path: too long, or "~" of an unknown user.
    """
    path = Path(model).expanduser()
    if path.is_file():
        return _file_obstacle(path)
    return f"no such directory{_meaning(model, path)}"


def _file_obstacle(path: Path) -> str:
    directory, name = path.parent, path.name
    if name.lower().endswith(".llamafile"):
        return "it is a program with a GGUF file inside; pass the GGUF file"
    if _ARCHIVE.search(name):
        return "it is an archive; unpack it and pass the directory"
    names = names_in(directory)
    if "config.json" in names:
        return f"it is a file; pass its directory, {directory}"
    reason = other_format(names, lambda each: (directory / each).read_text(encoding="utf-8"))
    return f"it is a file, expected the model's directory; {directory}: {reason or 'config.json is missing'}"


def _meaning(model: str, path: Path) -> str:
    """The explanation after "no such directory"; empty if nothing is known."""
    if model != model.strip():
        return f"; without the blanks around it: {model.strip()!r}"
    family = EMBEDDED_MODEL.partition(":")[0]
    if model.startswith(f"{family}:"):
        return f"; the model that is part of the package is {EMBEDDED_MODEL}"
    if "$" in model or "%" in model:
        return "; variables in a path are not replaced"
    parent, _, revision = model.rpartition("@")
    if parent and Path(parent).expanduser().is_dir():
        return f"; {parent!r} is one, and a directory has no revision ({revision!r})"
    tagged = _WITH_TAG.fullmatch(model)
    hosted = _HOSTED.fullmatch(tagged[1] if tagged else model)
    if hosted is not None and _ON_PAGE.fullmatch(hosted[1]) and not Path(model.split("/")[0]).exists():
        return f"; {_of_page(hosted[1])}{_gguf_tag(tagged)}"
    if tagged is not None and tagged[1].lower() not in ("hf", "huggingface", "file"):
        as_revision = f"; a revision is written {tagged[1]}@{tagged[2]}" if tagged[1].count("/") == 1 else ""
        return f"; it looks like a name of Ollama, whose models are GGUF files; {_GGUF_FORM}{as_revision}"
    scheme = _SCHEME.fullmatch(model)
    if scheme is not None and (scheme[2] or "/" in scheme[3]) and len(scheme[1]) > 1:
        return _of_url(scheme[1].lower(), scheme[3])
    if model.lower().endswith(".gguf"):
        return " or file; a GGUF file on a hub is owner/name:FILE.gguf"
    if _FILE.search(model):
        return " or file; pass the directory that holds config.json and the weights"
    near = difflib.get_close_matches(path.name, _folders(path.parent), n=1)
    if near:
        return f"; did you mean {path.parent / near[0]}?"
    if re.fullmatch(rf"{_PART}(@[\w./-]+)?", model, re.ASCII):
        return f"; {_HUB_FORM}"
    is_absolute = model.startswith(("/", ".", "~")) or Path(model.split("/")[0]).exists()
    on_page = None if is_absolute else _ON_PAGE.match(model)
    if on_page is not None:
        return f"; {_HUB_FORM}: {_named(on_page)!r}"
    return ""


def _of_url(scheme: str, rest: str) -> str:
    """The meaning of a text `scheme:rest` or `scheme://rest`."""
    if scheme == "file":
        return f"; pass the path, /{rest.lstrip('/')}"
    if scheme in ("http", "https"):
        return f"; {_of_page(rest.partition('/')[2])}"
    if scheme in ("hf", "huggingface"):
        named = _HUB_NAME.fullmatch(rest)
        return f"; pass {rest!r}" if named else f"; {_of_page(rest)}"
    return f"; {scheme}: is not read: download the model and pass its directory"


def _of_page(path: str) -> str:
    """The name to pass for the path of a page or a file on a hub."""
    match = _ON_PAGE.fullmatch(path.partition("?")[0].partition("#")[0])
    return f"pass the name on the hub, {_named(match)!r}" if match else f"it is a URL; {_HUB_FORM}"


def _named(match: re.Match[str]) -> str:
    revision = match[2]
    return match[1] if revision in (None, "main") else f"{match[1]}@{revision}"


def _gguf_tag(tagged: re.Match[str] | None) -> str:
    return "" if tagged is None else f"; its tag {tagged[2]!r} selects a GGUF file: pass owner/name:FILE.gguf"


def _folders(parent: Path) -> list[str]:
    """Names of folders in an existing folder that hold a model."""
    try:
        return [each.name for each in parent.iterdir() if (each / "config.json").is_file()]
    except OSError:
        return []


def directory_obstacle(directory: Path) -> str:
    """Why a directory without config.json is no model; names its content."""
    try:
        nested = [path.relative_to(directory).as_posix() for path in directory.glob("*/config.json")]
        nested += [path.relative_to(directory).as_posix() for path in directory.glob("snapshots/*/config.json")]
    except OSError:
        nested = []
    names = [*names_in(directory), *nested]
    return config_obstacle(names, lambda name: (directory / name).read_text(encoding="utf-8"))
