"""The task that the agents carry out: 50 turns that build a small Python package, with its tests, a failure, a rename and documents.

The turns are written down as what a developer does: commands, new files, edits and reading. `carry_out` does them without an agent, so the
files that must be there in the end are those of the same turns by other means. Every agent makes its own tool calls of them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

PROMPT = "Build the tally package in this repository: count words, lines and characters of text, with tests and a command line."
LAST_WORDS = "The tally package is built, tested and documented."
SHELL_TIMEOUT_S = 60
LEFT_OUT = {".git", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Shell:
    """A command in bash, in the repository. `fails`: its exit status is not 0, and the work goes on."""

    command: str
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """A new file, or a new content of a file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Whole lines in a file, without their last line break, which stand there once, and what replaces them."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Read:
    """A look at a file."""

    path: str


Turn: TypeAlias = Shell | Write | Edit | Read

_TEST = "python3 -B -m unittest -q"
_HEAD = '"""{0}"""\n\nfrom __future__ import annotations\n'
_WORDS = '''"""Counts words."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z]+")


def num_words(text: str) -> int:
    """The number of words; an apostrophe does not end one."""
    return len(_WORD.findall(text))
'''
_CLI = '''"""The command line: python3 -m tally FILE..."""

from __future__ import annotations

import sys
from pathlib import Path

from tally.words import num_words


def main(paths: list[str]) -> int:
    """Print a line for each file."""
    for path in paths:
        text = Path(path).read_text(encoding="utf-8")
        print(f"{num_words(text):8} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''
_TEST_WORDS = '''"""Words are counted in several scripts."""

import unittest

from tally.words import num_words


class Words(unittest.TestCase):
    def test_words(self) -> None:
        for text, count in (("", 0), ("one two", 2), ("Don't stop", 2), ("naïve café — 漢字", 3), ("a\\tb\\\\c", 3)):
            with self.subTest(text):
                self.assertEqual(num_words(text), count)
'''
_MAIN = '''"""Runs the command line."""

import sys

from tally.cli import main

sys.exit(main(sys.argv[1:]))
'''
_LINES = '''"""Counts lines and characters."""

from __future__ import annotations


def num_lines(text: str) -> int:
    """The number of lines; a last line without a line break counts."""
    return text.count("\\n")


def num_characters(text: str) -> int:
    """The number of characters, line breaks included."""
    return len(text)
'''
_TEST_LINES = '''"""Lines and characters."""

import unittest

from tally.lines import num_characters, num_lines


class Lines(unittest.TestCase):
    def test_lines(self) -> None:
        for text, count in (("", 0), ("a", 1), ("a\\n", 1), ("a\\n\\nb", 3)):
            with self.subTest(text):
                self.assertEqual(num_lines(text), count)

    def test_characters(self) -> None:
        self.assertEqual(num_characters("é😀\\n"), 3)
'''
_README = """# tally

Counts words.

## Use

    python3 -m tally FILE...
"""

TURNS: tuple[Turn, ...] = (
    Shell("git status --short && ls -A"),
    Write("README.md", _README),
    Write("pyproject.toml", '[project]\nname = "tally"\nversion = "0.1.0"\nrequires-python = ">=3.9"\n'),
    Write("tally/__init__.py", '"""Counts what is in a text."""\n'),
    Write("tally/words.py", _WORDS),
    Write("tests/__init__.py", ""),
    Write("tests/test_words.py", _TEST_WORDS),
    Shell(_TEST, fails=True),
    Read("tally/words.py"),
    Edit("tally/words.py", '_WORD = re.compile(r"[a-z]+")', '_WORD = re.compile(r"\\w+(?:[\'’]\\w+)*")'),
    Shell(_TEST),
    Shell("git add -A && git commit -qm 'Count words' && git log --oneline | wc -l"),
    Write("tally/cli.py", _CLI),
    Write("tally/__main__.py", _MAIN),
    Shell("printf 'one two\\nthree \"four\" $HOME\\n' > sample.txt && python3 -B -m tally sample.txt README.md"),
    Shell("python3 -B -m tally missing.txt", fails=True),
    Read("tally/cli.py"),
    Edit(
        "tally/cli.py",
        '        text = Path(path).read_text(encoding="utf-8")\n        print(f"{num_words(text):8} {path}")\n    return 0',
        "        try:\n"
        '            text = Path(path).read_text(encoding="utf-8")\n'
        "        except (OSError, UnicodeDecodeError) as error:\n"
        '            print(f"{path}: {error}", file=sys.stderr)\n'
        "            status = 1\n"
        "        else:\n"
        '            print(f"{num_words(text):8} {path}")\n'
        "    return status",
    ),
    Edit(
        "tally/cli.py", '    """Print a line for each file."""', '    """Print a line for each file."""\n    status = 0'
    ),
    Shell("python3 -B -m tally missing.txt sample.txt; test $? -eq 1 && echo 'status 1, as it should be'"),
    Shell("git add -A && git commit -qm 'Add a command line'"),
    Write("tally/lines.py", _LINES),
    Write("tests/test_lines.py", _TEST_LINES),
    Shell(_TEST, fails=True),
    Edit("tally/lines.py", '    return text.count("\\n")', "    return len(text.splitlines())"),
    Shell(_TEST),
    Shell("grep -rn 'num_words' --include='*.py' . | sort"),
    Shell("git mv tally/words.py tally/counting.py && git mv tests/test_words.py tests/test_counting.py"),
    Shell("grep -rln 'tally.words' --include='*.py' . | sort"),
    Edit(
        "tally/cli.py",
        "from tally.words import num_words",
        "from tally.counting import num_words\nfrom tally.lines import num_characters, num_lines",
    ),
    Read("tests/test_counting.py"),
    Edit("tests/test_counting.py", "from tally.words import num_words", "from tally.counting import num_words"),
    Shell(_TEST),
    Edit(
        "tally/cli.py",
        '            print(f"{num_words(text):8} {path}")',
        '            print(f"{num_lines(text):8}{num_words(text):8}{num_characters(text):8} {path}")',
    ),
    Shell("python3 -B -m tally sample.txt && wc -lwm sample.txt"),
    Shell("git add -A && git commit -qm 'Count lines and characters, rename words to counting'"),
    Edit(
        "README.md",
        "Counts words.",
        "Counts lines, words and characters of UTF-8 text: `naïve café — 漢字` has 3 words.",
    ),
    Edit(
        "README.md",
        "    python3 -m tally FILE...",
        "    python3 -m tally FILE...\n\nThe exit status is 1 if a file cannot be read; the others are counted.",
    ),
    Write("CHANGELOG.md", "# Changes\n\n## 0.1.0\n\n- Counts words, lines and characters.\n"),
    Shell("git rm -q --cached sample.txt && rm sample.txt && printf '__pycache__/\\n*.pyc\\n' > .gitignore"),
    Read("pyproject.toml"),
    Edit(
        "pyproject.toml",
        'requires-python = ">=3.9"',
        'requires-python = ">=3.9"\ndescription = "Counts what is in a text."\nreadme = "README.md"\n\n'
        '[project.scripts]\ntally = "tally.cli:main"',
    ),
    Shell("python3 -c \"import tomllib; print(tomllib.load(open('pyproject.toml', 'rb'))['project']['scripts'])\""),
    Write("tally/__init__.py", '"""Counts what is in a text."""\n\nVERSION = "0.1.0"\n'),
    Shell("grep -q \"$(sed -n 's/^VERSION = //p' tally/__init__.py)\" pyproject.toml && echo same version"),
    Edit(
        "CHANGELOG.md",
        "- Counts words, lines and characters.",
        "- Counts words, lines and characters.\n- `tally.VERSION`.",
    ),
    Shell(_TEST),
    Shell("git add -A && git commit -qm 'Document tally' && git status --short"),
    Shell("git log --format=%s | cat"),
    Shell("find . -name '*.py' -not -path './.git/*' | sort | xargs cat | cksum"),
)


def carry_out(turns: Sequence[Turn], folder: Path) -> None:
    """Do the turns in a repository, without an agent.

    Raises:
        RuntimeError: a command ends with another status than expected, or a text to replace is not there once.
    """
    for turn in turns:
        match turn:
            case Shell(command, fails):
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=SHELL_TIMEOUT_S,
                    check=False,
                )
                if bool(done.returncode) != fails:
                    raise RuntimeError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
            case Write(path, content):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(content, encoding="utf-8")
            case Edit(path, old, new):
                text = (folder / path).read_text(encoding="utf-8")
                if text.count(old) != 1:
                    raise RuntimeError(f"{path} has {text.count(old)} times {old!r}")
                (folder / path).write_text(text.replace(old, new), encoding="utf-8")
            case Read(path):
                (folder / path).read_text(encoding="utf-8")


def new_repository(folder: Path) -> None:
    """Make a repository with one empty commit."""
    folder.mkdir(parents=True)
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "A Developer"],
        ["config", "user.email", "developer@example.org"],
        ["commit", "-q", "--allow-empty", "-m", "Start"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True, timeout=SHELL_TIMEOUT_S)


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a repository by their paths, without what git and Python keep."""
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in LEFT_OUT]
        for name in names:
            path = Path(parent) / name
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def subjects_of(folder: Path) -> list[str]:
    """The subjects of the commits, newest first."""
    done = subprocess.run(
        ["git", "log", "--format=%s"], cwd=folder, capture_output=True, text=True, check=True, timeout=SHELL_TIMEOUT_S
    )
    return done.stdout.splitlines()
