"""Object code of compiled functions: its file, and functions for Python made from it.

The code calls Python's C interface by name and reads the fields of numpy's arrays, which are part of numpy's stable interface. So it serves
every version of Python and numpy; it depends on the processor alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from rtlang_grammars.machine.native.array_types import ArgumentType, ArrayType, arrays_of

HEADER_WORDS = object.__basicsize__ // 8
"""Words before the first field of an object: two, more where Python has no interpreter lock."""
NDARRAY, TYPE_ERROR, NONE = "rtlang_ndarray", "rtlang_type_error", "rtlang_none"
"""Symbols of objects that object code refers to. numba gives some of Python's own symbols another meaning."""
TUPLE_ITEMS = "rtlang_tuple_items"
"""Symbol of the number of words in a tuple before its items."""
_MAGIC = b"rtlang-code-1\n"
_DIGEST_BYTES = 16
_METH_FASTCALL = 0x80


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """The code of some functions.

    Attributes:
        triple: the target, as LLVM names it.
        cpu: the processor that it was made for.
        features: the processor features that it may use, as LLVM writes them: "+avx2,-avx512f".
        header_words: HEADER_WORDS of the Python that it runs in.
        names: of the functions.
        code: an object file.
    """

    triple: str
    cpu: str
    features: str
    header_words: int
    names: tuple[str, ...]
    code: bytes

    def packed(self) -> bytes:
        """A file's content: a digest, a line of JSON, the object file."""
        fields = {name: value for name, value in asdict(self).items() if name != "code"}
        content = json.dumps(fields).encode() + b"\n" + self.code
        return _MAGIC + _digest(content) + content

    @classmethod
    def unpacked(cls, file: bytes) -> ObjectCode | None:
        """The inverse of `packed`; None if the file is damaged or of another version."""
        begin = len(_MAGIC) + _DIGEST_BYTES
        content = file[begin:]
        if not file.startswith(_MAGIC) or file[len(_MAGIC) : begin] != _digest(content):
            return None
        line, _, code = content.partition(b"\n")
        fields = json.loads(line)
        return cls(**{**fields, "names": tuple(fields["names"])}, code=code)

    def runs_here(self) -> bool:
        """Whether this process can run the code."""
        needed = {each[1:] for each in self.features.split(",") if each.startswith("+")}
        is_same = self.triple == llvm.get_process_triple() and self.header_words == HEADER_WORDS
        return is_same and needed <= _features_here()

    def functions(self, types: Iterable[ArgumentType]) -> dict[str, Callable[..., Any]]:
        """The functions, callable from Python.

        Args:
            types: of all arguments.
        """
        _define_symbols(types)
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(self.code))
        engine.finalize_object()
        return {name: _function(name, engine.get_function_address(name)) for name in self.names}


def dtype_symbol(dtype: str) -> str:
    """The symbol of numpy's description of a dtype."""
    return f"rtlang_dtype_{dtype}"


def group_symbol(group: type) -> str:
    """The symbol of the type of a group of arrays."""
    return f"rtlang_group_{group.__name__}"


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _features_here() -> set[str]:
    return {name for name, is_there in llvm.get_host_cpu_features().items() if is_there}


_kept: list[Any] = [ctypes.c_int64(tuple.__basicsize__ // 8)]
"""Objects whose addresses compiled code holds."""


def _define_symbols(types: Iterable[ArgumentType]) -> None:
    for name, value in ((NDARRAY, np.ndarray), (TYPE_ERROR, TypeError), (NONE, None)):
        llvm.add_symbol(name, id(value))
    llvm.add_symbol(TUPLE_ITEMS, ctypes.addressof(_kept[0]))
    arrays = []
    for each in types:
        if isinstance(each, ArrayType):
            arrays.append(each)
        elif isinstance(each, type):
            llvm.add_symbol(group_symbol(each), id(each))
            arrays += arrays_of(each).values()
    for name in {each.dtype for each in arrays}:
        llvm.add_symbol(dtype_symbol(name), id(np.dtype(name)))


def _engine() -> Any:
    """A new engine of LLVM, which lasts as long as the process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    _kept.append(llvm.create_mcjit_compiler(llvm.parse_assembly(""), target))
    return _kept[-1]


def _function(name: str, address: int) -> Callable[..., Any]:
    definition = _MethodDef(name.encode(), address, _METH_FASTCALL, None)
    _kept.append(definition)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    made: Callable[..., Any] = make(ctypes.addressof(definition), None, None)
    return made
