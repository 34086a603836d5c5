"""Compiles a group of functions with numba into the object code of one module.

numba alone makes a module of every function and optimises an inner function again in each of its callers. Here numba types and lowers each
function once; all are linked, optimised and emitted together, with inner functions internal to the module. Three more things keep the
module small: integers are passed between functions as int64, groups of arrays (`array_types`) by address, and each entry is wrapped as
METH_FASTCALL function that reads numpy's arrays itself. The result depends on neither numba nor the version of Python.

Loaded only where code is compiled.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call, import-untyped, no-any-return"
# mypy: disable-error-code="attr-defined, method-assign"

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, compiler, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.typed_passes import NativeLowering, NoPythonBackend
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, overload, register_model

from rtlang_grammars.machine.native.array_types import (
    ArgumentType,
    ArrayType,
    Scalar,
    arrays_of,
)
from rtlang_grammars.machine.native.object_code import (
    HEADER_WORDS,
    NDARRAY,
    NONE,
    TUPLE_ITEMS,
    TYPE_ERROR,
    ObjectCode,
    dtype_symbol,
    group_symbol,
)
from rtlang_grammars.machine.native.pointers import int32_at

_KNOWN = re.compile(r"(Py|rtlang_|llvm\.|mem(cpy|move|set|cmp)$|bcmp$)")
"""Names of functions that are in every process with Python, or that LLVM knows."""
_WORDS = 3
"""Words of an array in a group: its address and two dimensions."""
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_POINTER = _I8.as_pointer()

# Words of PyArrayObject after the header of objects, and the flags of an aligned array in C order.
_DATA, _NDIM, _DIMENSIONS, _DESCR, _FLAGS = 0, 1, 2, 5, 6
_C_ORDER, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400


def compile_group(
    entries: Mapping[str, tuple[FunctionType, Sequence[ArgumentType], bool]],
    inner: Mapping[FunctionType, bool],
) -> ObjectCode:
    """The object code of some functions for this processor.

    Args:
        entries: by name the function, the types of its arguments, and whether it runs without the interpreter's lock.
        inner: all functions that compiled code may call, and whether they are inlined into their callers, however long they are.
    """
    with global_compiler_lock, _remembered_calls(), _no_collections():
        context = cpu_target.target_context
        context.refresh()
        cpu_target.typing_context.refresh()
        dispatchers: dict[FunctionType, _Function] = {}
        module = llvm.parse_assembly(str(context.codegen()._create_empty_module("rtlang")))
        wrappers = context.codegen()._create_empty_module("rtlang_entries")
        array_reader = _array_reader(wrappers)
        parts: dict[Any, None] = {}
        for name, (function, argument_types, is_nogil) in entries.items():
            dispatcher = _dispatcher(function, False, inner, dispatchers)
            signature = tuple(_numba_type(each) for each in argument_types)
            dispatcher.compile(signature)
            compiled = dispatcher.overloads[signature]
            _collect(compiled.library, parts)
            _Wrapper(context, wrappers, array_reader, argument_types, is_nogil).write(name, compiled.fndesc)
        for part in parts:
            if isinstance(part, _Part):
                module.link_in(part._final_module)
            else:
                module.link_in(part._get_module_for_linking(), preserve=True)
        module.link_in(llvm.parse_assembly(str(wrappers)))
        for function in module.functions:
            if not function.is_declaration and function.name not in entries:
                function.linkage = "internal"
        codegen = context.codegen()
        manager, builder = codegen._module_pass_manager()
        manager.run(module, builder)
        module.verify()
        unknown = {each.name for each in module.functions if each.is_declaration and not _KNOWN.match(each.name)}
        assert not unknown, f"compiled code calls {unknown}, which may be missing in a process without numba"
        return ObjectCode(
            triple=llvm.get_process_triple(),
            cpu=codegen._get_host_cpu_name(),
            features=codegen._tm_features,
            header_words=HEADER_WORDS,
            names=tuple(entries),
            code=codegen._tm.emit_object(module),
        )


@contextlib.contextmanager
def _remembered_calls() -> Iterator[None]:
    """Let numba resolve each operator only once for the same types, which takes it a quarter of the time: it tries some fifteen ways."""
    original, known = types.BaseFunction.get_call_type, {}

    def get_call_type(function, context, args, kws):
        key = function, tuple(args), tuple(sorted(kws.items()))
        if key not in known:
            known[key] = original(function, context, args, kws)
        return known[key]

    types.BaseFunction.get_call_type = get_call_type
    try:
        yield
    finally:
        types.BaseFunction.get_call_type = original


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Keep objects until the end: nearly all are needed, and looking for others takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _collect(library: Any, parts: dict[Any, None]) -> None:
    """Add a library and all that it needs."""
    if library not in parts:
        parts[library] = None
        if isinstance(library, _Part):
            for each in library._linking_libraries:
                _collect(each, parts)


# Compiling functions


class _Part(JITCodeLibrary):
    """The code of one function as it was lowered."""

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self):
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Lowers a function without emitting it."""

    _name = "rtlang_lowering"

    def run_pass(self, state):
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        key = object()
        state.targetctx.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


_NEEDLESS = frozenset(
    (
        "WithLift",
        "InlineClosureLikes",
        "InlineInlinables",
        "RewriteSemanticConstants",
        "DeadBranchPrune",
        "MakeFunctionToJitFunction",
        "FindLiterallyCalls",
        "LiteralUnroll",
        "LiteralPropagationSubPipelinePass",
        "NopythonRewrites",
    )
)
"""Passes for closures, literal arguments, tuples of several types and expressions of whole arrays, none of which are used here."""


class _Pipeline(compiler.CompilerBase):
    """numba's passes as far as they are needed, with `_Lowering`."""

    def define_pipelines(self):
        builder, manager = compiler.DefaultPassBuilder, PassManager("rtlang")
        for part in (builder.define_untyped_pipeline(self.state), builder.define_typed_pipeline(self.state)):
            manager.passes.extend(each for each in part.passes if each[0].__name__ not in _NEEDLESS)
        manager.add_pass(_Lowering, "lowering")
        manager.add_pass(NoPythonBackend, "nopython mode backend")
        manager.finalize()
        return [manager]


class _Function(CPUDispatcher):
    """A function to which all integers are passed as int64: numba would compile it again for other types and for constants."""

    def get_call_template(self, args, kws):
        return super().get_call_template(tuple(_widened(each) for each in args), kws)

    def add_overload(self, cres):
        self.overloads[tuple(cres.signature.args)] = cres  # not callable


def _widened(kind: Any) -> Any:
    kind = types.unliteral(kind)
    if isinstance(kind, types.Integer) and kind.bitwidth < 64:
        return types.int64
    return kind


def _dispatcher(function, is_inlined, inner, known):
    """The dispatcher of a function, with those of the functions that it calls in its globals."""
    if function not in known:
        names = dict(function.__globals__)
        clone = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        clone.__qualname__, clone.__module__ = function.__qualname__, function.__module__
        known[function] = _Function(
            clone,
            targetoptions={
                "nopython": True,
                "boundscheck": None,
                "_nrt": False,
                "no_cfunc_wrapper": True,
                "no_cpython_wrapper": True,
                "forceinline": is_inlined,
            },
            pipeline_class=_Pipeline,
        )
        for name in function.__code__.co_names:
            called = names.get(name)
            if isinstance(called, FunctionType) and called in inner:
                names[name] = _dispatcher(called, inner[called], inner, known)
    return known[function]


# Types


class _GroupType(types.Type):
    """A group of arrays, passed by the address of `_WORDS` words for each array."""

    def __init__(self, kind: type) -> None:
        self.arrays = {name: _numba_type(each) for name, each in arrays_of(kind).items()}
        self.at = {name: _WORDS * index for index, name in enumerate(self.arrays)}
        super().__init__(f"{kind.__module__}.{kind.__name__}")


@register_model(_GroupType)
class _GroupModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _I64.as_pointer())


@infer_getattr
class _GroupAttributes(AttributeTemplate):
    key = _GroupType

    def generic_resolve(self, group, attribute):
        return group.arrays.get(attribute)


@lower_getattr_generic(_GroupType)
def _array_of_group(context, builder, group, value, attribute):
    kind, at = group.arrays[attribute], group.at[attribute]
    words = []
    for index in range(1 + kind.ndim):
        word = builder.load(builder.gep(value, [_I64(at + index)]))
        # Nothing is written there during a call: without this, every write to an array would make LLVM load it again.
        word.set_metadata("invariant.load", builder.module.add_metadata([]))
        words.append(word)
    return _array(context, builder, kind, words[0], words[1:])


def _array(context, builder, kind, address, dimensions):
    """numba's value of an array in C order."""
    array = context.make_array(kind)(context, builder)
    itemsize = _I64(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    size = itemsize
    strides: list[Any] = []
    for each in reversed(dimensions):
        strides.insert(0, size)
        size = builder.mul(size, each)
    context.populate_array(
        array,
        data=builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer()),
        shape=dimensions,
        strides=strides,
        itemsize=itemsize,
        meminfo=None,
        parent=None,
    )
    return array._getvalue()


_groups: dict[type, _GroupType] = {}


def _numba_type(kind: ArgumentType) -> Any:
    if isinstance(kind, Scalar):
        return types.boolean if kind is Scalar.BOOL else types.int64
    if isinstance(kind, ArrayType):
        return types.Array(getattr(types, kind.dtype), kind.num_dims, "C", readonly=not kind.is_written)
    return _groups.setdefault(kind, _GroupType(kind))


@intrinsic
def _load(typing_context, address, index):
    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], _I32.as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]))

    return types.int32(types.int64, types.int64), generate


@overload(int32_at, inline="always")
def _int32_at(address, index):
    return lambda address, index: _load(address, index)


# Entries for Python


def _array_reader(module):
    """A function that writes address and dimensions of a numpy array to words; returns whether it has the dtype, flags, and dimensions."""
    kind = ir.FunctionType(ir.IntType(1), [_POINTER, _POINTER, _I32, _I32, _I64.as_pointer()])
    function = ir.Function(module, kind, "rtlang_read_array")
    array, dtype, num_dims, flags, words = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    wrong = function.append_basic_block("wrong")

    def field(word, kind=_I64):
        return builder.load(builder.bitcast(builder.gep(array, [_I64(8 * (HEADER_WORDS + word))]), kind.as_pointer()))

    def demand(condition):
        right = function.append_basic_block()
        builder.cbranch(condition, right, wrong)
        builder.position_at_end(right)

    demand(builder.icmp_unsigned("==", field(-1, _POINTER), ir.GlobalVariable(module, _I8, NDARRAY)))
    demand(builder.icmp_unsigned("==", field(_DESCR, _POINTER), dtype))
    demand(builder.icmp_unsigned("==", field(_NDIM, _I32), num_dims))
    demand(builder.icmp_unsigned("==", builder.and_(field(_FLAGS, _I32), flags), flags))
    builder.store(field(_DATA), words)
    dimensions = field(_DIMENSIONS, _I64.as_pointer())
    builder.store(builder.load(dimensions), builder.gep(words, [_I64(1)]))
    with builder.if_then(builder.icmp_unsigned("==", num_dims, _I32(2))):
        builder.store(builder.load(builder.gep(dimensions, [_I64(1)])), builder.gep(words, [_I64(2)]))
    builder.ret(ir.IntType(1)(1))
    builder.position_at_end(wrong)
    builder.ret(ir.IntType(1)(0))
    return function


class _Wrapper:
    """Writes a function of Python's METH_FASTCALL around a compiled function."""

    def __init__(self, context, module, array_reader, argument_types, is_nogil):
        self._context, self._module, self._array_reader = context, module, array_reader
        self._types, self._is_nogil = argument_types, is_nogil

    def write(self, name, descriptor):
        module, context = self._module, self._context
        kind = ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _I64])
        function = ir.Function(module, kind, name)
        builder = self._builder = ir.IRBuilder(function.append_basic_block())
        self._function, self._failed = function, function.append_basic_block("failed")
        self._wrong_at = cgutils.alloca_once_value(builder, _I64(len(self._types)))
        self._demand(builder.icmp_signed("==", function.args[2], _I64(len(self._types))))
        arguments = []
        for index, each in enumerate(self._types):
            builder.store(_I64(index), self._wrong_at)
            arguments.append(self._argument(index, each))
        thread = self._c("PyEval_SaveThread", _POINTER) if self._is_nogil else None
        callee = context.declare_function(module, descriptor)
        status, result = context.call_conv.call_function(
            builder, callee, descriptor.restype, descriptor.argtypes, arguments
        )
        if thread is not None:
            self._c("PyEval_RestoreThread", ir.VoidType(), thread)
        builder.store(_I64(-1), self._wrong_at)
        self._demand(builder.not_(status.is_error))
        builder.ret(self._boxed(descriptor.restype, result))
        builder.position_at_end(self._failed)
        with builder.if_then(cgutils.is_null(builder, self._c("PyErr_Occurred", _POINTER))):
            error = _external(module, TYPE_ERROR, _I8)
            text = f"{name}: wrong number of arguments, or wrong type of argument %lld"
            formatted = ir.FunctionType(_POINTER, [_POINTER, _POINTER], var_arg=True)
            format_error = cgutils.get_or_insert_function(module, formatted, "PyErr_Format")
            builder.call(format_error, [error, _text(module, text), builder.load(self._wrong_at)])
        builder.ret(_POINTER(None))

    def _c(self, name, result, *arguments):
        kind = ir.FunctionType(result, [each.type for each in arguments])
        return self._builder.call(cgutils.get_or_insert_function(self._module, kind, name), arguments)

    def _demand(self, condition):
        right = self._function.append_basic_block()
        self._builder.cbranch(condition, right, self._failed)
        self._builder.position_at_end(right)

    def _argument(self, index, kind):
        builder, context = self._builder, self._context
        given = builder.load(builder.gep(self._function.args[1], [_I64(index)]))
        if kind is Scalar.BOOL:
            found = self._c("PyObject_IsTrue", _I32, given)
            return builder.icmp_signed("!=", found, _I32(0))
        if kind is Scalar.INT:
            found = self._c("PyLong_AsLongLong", _I64, given)
            with builder.if_then(builder.icmp_signed("==", found, _I64(-1)), likely=False):
                self._demand(cgutils.is_null(builder, self._c("PyErr_Occurred", _POINTER)))
            return found
        if isinstance(kind, ArrayType):
            words = cgutils.alloca_once(builder, _I64, size=_WORDS)
            self._read(given, kind, words)
            address, *dimensions = (builder.load(builder.gep(words, [_I64(word)])) for word in range(1 + kind.num_dims))
            return _array(context, builder, _numba_type(kind), address, dimensions)
        return self._group(given, kind)

    def _group(self, given, kind):
        builder, arrays = self._builder, arrays_of(kind)
        type_at = builder.bitcast(builder.gep(given, [_I64(8 * (HEADER_WORDS - 1))]), _POINTER.as_pointer())
        self._demand(
            builder.icmp_unsigned("==", builder.load(type_at), _external(self._module, group_symbol(kind), _I8))
        )
        words = cgutils.alloca_once(builder, _I64, size=_WORDS * len(arrays))
        first = builder.load(_external(self._module, TUPLE_ITEMS, _I64))
        items = builder.gep(builder.bitcast(given, _POINTER.as_pointer()), [first])
        for place, each in enumerate(arrays.values()):
            item = builder.load(builder.gep(items, [_I64(place)]))
            self._read(item, each, builder.gep(words, [_I64(_WORDS * place)]))
        return words

    def _read(self, array, kind, words):
        flags = _C_ORDER | _ALIGNED | _WRITEABLE * kind.is_written
        dtype = _external(self._module, dtype_symbol(kind.dtype), _I8)
        self._demand(self._builder.call(self._array_reader, [array, dtype, _I32(kind.num_dims), _I32(flags), words]))

    def _boxed(self, kind, value):
        builder = self._builder
        if isinstance(kind, types.BaseTuple):
            found = self._c("PyTuple_New", _POINTER, _I64(len(kind.types)))
            for index, each in enumerate(kind.types):
                item = self._boxed(each, builder.extract_value(value, index))
                self._c("PyTuple_SetItem", _I32, found, _I64(index), item)
            return found
        if kind is types.none:
            found = _external(self._module, NONE, _I8)
            self._c("Py_IncRef", ir.VoidType(), found)
            return found
        value = self._context.cast(builder, value, kind, types.int64)
        return self._c("PyBool_FromLong" if kind is types.boolean else "PyLong_FromLongLong", _POINTER, value)


def _external(module, name, kind):
    """A variable of the process."""
    return module.globals.get(name) or ir.GlobalVariable(module, kind, name)


def _text(module, text):
    """The address of a constant C string."""
    data = bytearray(text.encode() + b"\0")
    constant = cgutils.global_constant(module, "rtlang_text", ir.Constant(ir.ArrayType(_I8, len(data)), data))
    return constant.bitcast(_POINTER)
