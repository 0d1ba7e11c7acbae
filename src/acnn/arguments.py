"""Checks of the argument types of public functions, by their annotations and before any work."""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from acnn.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

_ARRAYS = ("ndarray", "memmap", "list", "tuple", "Tensor", "Trimesh", "PointCloud")
_REMEDIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Mesh", ("Surface",), "give the shape that the surface was built from"),
    ("Mesh", ("str",), "read it with acnn.load"),
    ("Mesh", ("Scene",), "take its mesh with its method to_mesh"),
    ("Mesh", ("UnstructuredGrid", "StructuredGrid", "ImageData"), "take its surface with its method extract_surface"),
    ("Mesh", _ARRAYS, "make one with acnn.from_arrays"),
    ("Surface", ("Mesh", "PointCloud"), "make one with acnn.surface_of"),
    ("Surface", _ARRAYS, "make a shape with acnn.from_arrays, and its surface with acnn.surface_of"),
    ("Run", ("str",), "open it with acnn.open_run"),
    ("Patches", ("PatchOperator",), "make them with acnn.nn.Patches"),
    ("Tensor", ("ndarray", "memmap"), "make one with torch.from_numpy"),
    ("RunConfig", ("str",), "make one with acnn.preset_config"),
    ("an array", ("Mesh", "Surface", "Trimesh"), "give its vertices and faces"),
    ("an array", ("PointCloud",), "give its vertices, and None for the faces"),
)
"""The type needed, the types given instead, and how to convert them."""


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise TypeError for arguments that are not of the annotated types.

    Integers are accepted as numbers, and NumPy's numbers as Python's. Objects of other libraries are converted where an
    annotated class has `from_library`, a function of an object that returns None for what it does not know. The
    elements of lists and arrays are not checked here, but by the function itself.

    Parameters
    ----------
    function : callable
        With annotations that can be resolved in its module.

    Returns
    -------
    callable
        The same function. Its TypeError names the function, the argument, what is needed and what was given.
    """
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:
        # The return type is skipped: it may be imported for type checkers only.
        annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
        return get_type_hints(types.SimpleNamespace(__annotations__=annotations), function.__globals__)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        name = function.__qualname__.removesuffix(".__init__")
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:  # too few or too many arguments; perhaps as one of them is a shape for its arrays
            if "missing" in str(error):
                _check(name, signature.bind_partial(*args, **kwargs).arguments, hints())
            return function(*args, **kwargs)  # raises Python's own message
        made = _check(name, given.arguments, hints())
        if not made:
            return function(*args, **kwargs)
        given.arguments.update(made)
        return function(*given.args, **given.kwargs)

    return checked


def check_fields(record: Any) -> None:
    """Check the fields of a dataclass against their annotations; for `__post_init__`.

    Parameters
    ----------
    record : dataclass instance

    Raises
    ------
    TypeError
        Where a field is not of the annotated type.
    """
    kind = type(record)
    _check(kind.__name__, vars(record), get_type_hints(kind))


def _check(where: str, values: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Raise TypeError for the first value of a wrong type; the values that were converted, by name."""
    converted = {}
    for name, value in values.items():
        hint = hints.get(name, Any)
        if _fits(value, hint):
            continue
        try:
            converted[name] = _from_library(value, hint)
        except InputError as error:
            raise InputError(f"{where}: {name}: {error}") from error
        if converted[name] is None:
            raise TypeError(_message(where, name, hint, value))
    return converted


def _from_library(value: Any, hint: Any) -> Any:
    """What an annotation asks for, made of an object of another library; None where that is not possible."""
    for kind in _choices(hint) if get_origin(hint) in (Union, types.UnionType) else [hint]:
        made = kind.from_library(value) if hasattr(kind, "from_library") else None
        if made is not None and _fits(made, hint):
            return made
    return None


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, inner) for inner in _choices(hint))
    if hint is np.ndarray:
        return isinstance(value, list | tuple | Real) or hasattr(value, "__array__")
    if origin is Literal:
        return isinstance(value, tuple({type(choice) for choice in get_args(hint)}))
    if hint is None or hint is type(None):
        return value is None
    if hint is float or hint is int:
        return isinstance(value, Real if hint is float else Integral) and not isinstance(value, bool | np.bool_)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    kind = hint if origin is None else origin
    if kind is tuple:
        return isinstance(value, tuple | list)
    return not isinstance(kind, type) or kind is np.ndarray or isinstance(value, kind)


def _message(where: str, name: str, hint: Any, value: Any) -> str:
    wanted = list(dict.fromkeys(_names(hint)))
    listed = wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    article = "" if listed[0].islower() or listed == "None" else "an " if listed[0] in "AEIO" else "a "  # of classes
    given = "str" if isinstance(value, PurePath) else type(value).__name__
    for needed, instead, remedy in _REMEDIES:
        if needed in wanted and given in instead:
            return f"{where}: {name} must be {article}{listed}, not {type(value).__name__}; {remedy}"
    return f"{where}: {name} must be {article}{listed}, not {type(value).__name__}"


def _choices(hint: Any) -> list[Any]:
    """The types in a union, with a plain array in place of the many that make up NumPy's ArrayLike."""
    choices = list(get_args(hint))
    arrays = set(get_args(ArrayLike))
    if not arrays or not arrays <= set(choices):
        return choices
    return [choice for choice in choices if choice not in arrays] + [np.ndarray]


def _names(hint: Any) -> Iterator[str]:
    """Names of the types that an annotation allows."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        for inner in _choices(hint):
            yield from _names(inner)
    elif origin is Literal:
        yield "one of " + ", ".join(map(repr, get_args(hint)))
    elif hint is None or hint is type(None):
        yield "None"
    elif (origin or hint) is os.PathLike:
        yield "a path"
    elif (origin or hint) is Callable:
        yield "a function"
    else:
        names = {float: "a number", int: "a whole number", bool: "a boolean", str: "a string", np.ndarray: "an array"}
        kind = origin or hint
        yield names.get(kind, kind.__name__ if isinstance(kind, type) else str(kind))
