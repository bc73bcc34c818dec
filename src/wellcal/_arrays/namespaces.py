"""The one door to array libraries: namespaces, conversion, dtype policy.

Every other module asks here which library an array belongs to. NumPy, PyTorch, JAX and any library
that follows the Python array API standard are served; none of them but NumPy is imported here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache, wraps
from typing import Any, TypeAlias, TypeVar, cast

import array_api_compat as compat
import numpy as np

Array: TypeAlias = Any
"""An array of any supported library. Their types share no base class, hence the alias."""

NDArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
"""An array of NumPy, of any shape and dtype."""

Namespace: TypeAlias = Any
"""An array API namespace, as returned by :func:`namespace`."""

Function = TypeVar("Function", bound=Callable[..., Any])

TAKERS = {"__dask_graph__": "wellcal.dask"}
"""Rooms for what is not in memory, by the mark that a library puts on its classes (Dask's own protocol).

A room is loaded when such an object is met, and has a function `__wellcal_function__`.
"""

_TAKES_OVER = "__wellcal_function__"  # a method of classes that take over by themselves

_ABSENT = object()
_numpy_namespace: Namespace = compat.array_namespace(np.empty(0))
_seen_jax_hooks: list[Callable[[], None]] = []


def _tensor_type() -> Any:
    """Return the type of plain tensors, or None if PyTorch is not imported."""
    return getattr(sys.modules.get("torch"), "Tensor", None)


@cache
def _torch_namespace() -> Namespace:
    return compat.array_namespace(sys.modules["torch"].empty(0))


def is_array(x: object) -> bool:
    """True if `x` is an array of a supported library (a list or a scalar is not)."""
    if isinstance(x, np.ndarray) or type(x) is _tensor_type():
        return True
    # Annotations of array_api_compat leave type parameters open.
    try:
        known = bool(compat.is_array_api_obj(x))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except Exception:  # an object that fails while it is asked what it is
        return False
    return known and not isinstance(x, np.generic)


def attribute(x: object, name: str, default: Any = None) -> Any:
    """Return an attribute of a foreign object; `default` if it has none, or fails while it is asked.

    Examples
    --------
    >>> class Closed:
    ...     def __getattr__(self, name):
    ...         raise RuntimeError(name)
    >>> attribute(Closed(), "shape") is None, attribute(np.ones(2), "shape")
    (True, (2,))
    """
    try:
        return getattr(x, name, default)
    except Exception:
        return default


def has(x: object, name: str) -> bool:
    """True if a foreign object has an attribute, and does not fail when it is asked."""
    return attribute(x, name, _ABSENT) is not _ABSENT


def namespace(*arrays: object) -> Namespace:
    """Array API namespace that `arrays` share; NumPy where none of them is an array.

    Examples
    --------
    >>> import numpy as np
    >>> namespace([1.0, 2.0]) is namespace(np.ones(2))
    True
    """
    for a in arrays:
        if type(a) is not np.ndarray:
            break
    else:
        return _numpy_namespace  # by far the most frequent case, and the one that is asked for most often
    if arrays and all(type(a) is _tensor_type() for a in arrays):
        return _torch_namespace()  # asked for a hundred times in a step of training
    found = [a for a in arrays if is_array(a)]
    if not found:
        return _numpy_namespace
    if any(compat.is_jax_array(a) for a in found):
        run_jax_hooks()
    try:
        return compat.array_namespace(*found)
    except TypeError:
        libraries = sorted({type(a).__module__.split(".")[0] for a in found})
        raise TypeError(
            f"arrays of different libraries cannot be combined: found {', '.join(libraries)}; "
            "convert them to one library first"
        ) from None


def run_jax_hooks() -> None:
    """Run the hooks that wait for JAX to be in use, once."""
    while _seen_jax_hooks:
        _seen_jax_hooks.pop()()


def on_first_jax_array(hook: Callable[[], None]) -> None:
    """Run `hook` when the first JAX array is met, so that JAX is never imported for its sake."""
    _seen_jax_hooks.append(hook)


def is_numpy(xp: Namespace) -> bool:
    """True if `xp` is NumPy's namespace."""
    return xp is _numpy_namespace or bool(compat.is_numpy_namespace(xp))


def is_torch(xp: Namespace) -> bool:
    """True if `xp` is PyTorch's namespace."""
    return bool(compat.is_torch_namespace(xp))


def is_jax(xp: Namespace) -> bool:
    """True if `xp` is JAX's namespace."""
    return bool(compat.is_jax_namespace(xp))


def is_tensor(x: object) -> bool:
    """True if `x` is an array of PyTorch.

    Examples
    --------
    >>> import torch
    >>> is_tensor(np.ones(1)), is_tensor(torch.ones(1))
    (False, True)
    """
    return type(x) is not np.ndarray and (type(x) is _tensor_type() or bool(compat.is_torch_array(x)))


def device_of(x: Array) -> Any:
    """The device that `x` lives on."""
    # Annotations of array_api_compat leave type parameters open.
    return compat.device(x)  # pyright: ignore[reportUnknownMemberType]


def is_on_accelerator(x: object) -> bool:
    """True if `x` is a tensor of PyTorch on a device of its own, such as a graphics card.

    Examples
    --------
    >>> import torch
    >>> is_on_accelerator(np.ones(1)), is_on_accelerator(torch.ones(1)), is_on_accelerator(1.0)
    (False, False, False)
    """
    return is_tensor(x) and cast("Any", x).device.type != "cpu"


def is_traced(*arrays: object) -> bool:
    """True if any of `arrays` is abstract, as inside ``jax.jit``: its values are unknown."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(a, jax.core.Tracer) for a in arrays)


def host_copy(x: Array) -> Array:
    """Return the values of `x` as a NumPy array where that pays; `x` itself elsewhere.

    It pays for concrete arrays of JAX, which compiles every operation anew for each number of cases, and for
    tensors of PyTorch on the processor without derivatives, whose memory NumPy shares.

    Examples
    --------
    >>> import torch
    >>> host_copy(torch.zeros(2))
    array([0., 0.], dtype=float32)
    >>> host_copy(torch.zeros(2, requires_grad=True))
    tensor([0., 0.], requires_grad=True)
    """
    if type(x) is np.ndarray:
        return x
    if type(x) is _tensor_type():  # classes derived from tensors may observe what is done with them
        return to_numpy(x) if _is_readable(x) else x
    if compat.is_jax_array(x) and not is_traced(x):
        given: Array = x
        # NumPy lacks the numbers of 16 bits that machine learning uses.
        return np.asarray(given) if given.dtype.name in _READABLE and len(given.devices()) == 1 else given
    return x


def is_on_processor(x: Array) -> bool:
    """True if an array of JAX is concrete and on the processor."""
    return not is_traced(x) and all(map(is_processor, x.devices()))


def is_processor(device: Any) -> bool:
    """True if a device of JAX is the processor, whose memory NumPy shares."""
    return device.platform == "cpu"


_READABLE = ("float64", "float32", "int64", "int32", "bool")


def _is_readable(tensor: Any) -> bool:
    torch = sys.modules["torch"]
    return (
        tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and str(tensor.dtype).removeprefix("torch.") in _READABLE
        and not (tensor.requires_grad and torch.is_grad_enabled())
        and torch.autograd.forward_ad.unpack_dual(tensor).tangent is None
    )


def stop_gradient(x: Array) -> Array:
    """`x` as a constant: no derivative flows back through the result."""
    if compat.is_torch_array(x):
        return x.detach()
    if compat.is_jax_array(x):
        return sys.modules["jax"].lax.stop_gradient(x)
    return x


_IN_TORCH_FUNC = (
    "wellcal looks at the values of tensors, which torch.func (grad, vmap, jacrev and others) hides; "
    "differentiate with torch.autograd, such as torch.autograd.grad or torch.autograd.functional.hessian, "
    "and take a loop in place of vmap"
)


def to_numpy(x: object) -> NDArray:
    """Values of `x` as a NumPy array, off any device and out of any gradient tape.

    Examples
    --------
    >>> import torch
    >>> to_numpy(torch.tensor([1.0, 2.0], requires_grad=True))
    array([1., 2.], dtype=float32)
    """
    if compat.is_torch_array(x):
        tensor: Array = x
        plain = tensor.detach().cpu().resolve_conj().resolve_neg()
        plain = plain.float() if str(plain.dtype) == "torch.bfloat16" else plain  # NumPy has no such type
        try:
            return plain.numpy()
        except RuntimeError as error:
            if sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(plain):
                raise RuntimeError(_IN_TORCH_FUNC) from error
            raise
    if is_array(x) and not isinstance(x, np.ndarray) and not compat.is_jax_array(x) and has(x, "__dlpack__"):
        with suppress(BufferError):  # NumPy 2.0 exports no read-only memory
            return np.from_dlpack(cast("Any", x))
    return np.asarray(x)


def from_numpy(x: NDArray, like: Array) -> Array:
    """NumPy array `x` in the library and on the device of `like`."""
    xp = namespace(like)
    if is_numpy(xp):
        return x
    return asarray(x, xp=xp, device=device_of(like))


def asarray(x: object, *, xp: Namespace, device: Any = None, dtype: Any = None) -> Array:
    """`x` as an array of `xp`. JAX arrays under tracing pass through unharmed."""
    if is_numpy(xp):
        return np.asarray(x if isinstance(x, np.ndarray) or not is_array(x) else to_numpy(x), dtype=dtype)
    if is_array(x) and namespace(x) is xp:
        return x if dtype is None else xp.astype(x, dtype)
    if is_array(x) and not isinstance(x, np.ndarray):
        x = to_numpy(x)
    if is_jax(xp) and device is not None and not hasattr(device, "platform"):
        device = None  # a sharding or an abstract device: JAX places the constant itself
    if is_jax(xp) and isinstance(x, np.ndarray) and dtype is None:
        return sys.modules["jax"].device_put(x, device)  # compiles nothing
    if is_torch(xp) and isinstance(x, np.ndarray):
        given = cast("Array", x)
        if not given.flags.writeable or min(given.strides, default=0) < 0:
            x = given.copy()  # tensors share neither read-only memory nor memory that is walked backwards
    return xp.asarray(x, dtype=dtype, device=device)


def float64(xp: Namespace) -> Any:
    """Widest floating dtype of `xp`: float64, or float32 in JAX without ``jax_enable_x64``."""
    if is_jax(xp) and not sys.modules["jax"].config.jax_enable_x64:
        return xp.float32
    return xp.float64


def is_floating(x: Array) -> bool:
    """True if `x` holds real floating-point numbers."""
    if type(x) is np.ndarray:
        return x.dtype.kind == "f"
    return bool(namespace(x).isdtype(x.dtype, "real floating"))


def widen(x: Array) -> Array:
    """`x` in the widest floating dtype of its library: all arithmetic on pairs happens there."""
    if type(x) is np.ndarray and x.dtype == np.float64:
        return x
    xp = namespace(x)
    return xp.astype(x, float64(xp), copy=False)


def through_numpy(
    function: Callable[..., Any], *arrays: Array, shape: tuple[int, ...] | None = None
) -> Array:
    """Apply a NumPy `function` to `arrays` of any library, also under ``jit``.

    Its result has the shape to which arrays are broadcast, or `shape`. Nothing is differentiated: callers
    that need a derivative supply one by other means.
    """
    xp = namespace(*arrays)
    if is_numpy(xp):
        return function(*arrays)
    if is_jax(xp):
        shape = np.broadcast_shapes(*(a.shape for a in arrays)) if shape is None else shape
        return called_back(function, *arrays, shape=shape, dtype=xp.result_type(*arrays))
    result = np.asarray(function(*(to_numpy(a) for a in arrays)))
    like = next(a for a in arrays if is_array(a))
    return asarray(result, xp=xp, device=device_of(like), dtype=like.dtype)


def called_back(function: Callable[..., Any], *arrays: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """A NumPy `function` of arrays of JAX as constants: at once, or from where they are traced."""
    jax = sys.modules["jax"]
    constants = [stop_gradient(a) for a in arrays]

    @np.errstate(over="ignore")  # results in double precision may be infinite in single
    def on_numpy(*values: Any) -> NDArray:
        return np.asarray(function(*map(np.asarray, values))).astype(dtype, copy=False)

    try:
        return jax.numpy.asarray(on_numpy(*constants))
    except jax.errors.TracerArrayConversionError:
        found = jax.ShapeDtypeStruct(shape, dtype)
        # Of many data sets at once, function sees one after another: what it does with more axes is its own.
        return jax.pure_callback(on_numpy, found, *constants, vmap_method="sequential")


def concat_rows(arrays: Sequence[Array]) -> Array:
    """Concatenate along the first axis."""
    if len(arrays) == 1:
        return arrays[0]
    return namespace(*arrays).concat(list(arrays), axis=0)


def take_rows(x: Array, index: Any) -> Array:
    """Rows of `x` by slice, integer array or boolean mask (NumPy index arrays serve every library)."""
    if isinstance(index, slice) or is_numpy(namespace(x)):
        return x[index, ...]
    xp = namespace(x)
    if is_array(index) and namespace(index) is xp and not xp.isdtype(index.dtype, "bool"):
        return xp.take(x, index, axis=0)
    positions = to_numpy(index)
    if positions.dtype == bool:
        positions = np.flatnonzero(positions)
    return xp.take(x, asarray(positions, xp=xp, device=device_of(x)), axis=0)


def shown(x: Any) -> str:
    """A number for a representation; traced values have none."""
    return "traced" if is_traced(x) else f"{float(to_numpy(x)) if is_array(x) else float(x):.4g}"


# -- what is not in memory ---------------------------------------------------------------------


def taker_of(*given: object) -> Callable[..., Any] | None:
    """Return the function that computes with these objects instead of this package; None if there is none.

    An object takes over by a method ``__wellcal_function__(name, arguments, options)`` of its class, which
    gets the name of the public function and its arguments. Tuples are searched.

    Examples
    --------
    >>> class Elsewhere:
    ...     def __wellcal_function__(self, name, arguments, options):
    ...         return f"{name} of {len(arguments)} arguments"
    >>> taker_of(np.zeros(2), Elsewhere())("skce", (1, 2), {})
    'skce of 2 arguments'
    >>> taker_of(np.zeros(2), ([1.0], 2.0)) is None
    True
    """
    for one in given:
        kind = type(one)
        if kind is np.ndarray:
            continue
        if kind is tuple:
            found = taker_of(*cast("tuple[object, ...]", one))
            if found is not None:
                return found
            continue
        mark = _mark_of(kind)
        if mark == _TAKES_OVER:
            return cast("Any", one).__wellcal_function__
        if mark is not None and _is_elsewhere(one, mark):
            return importlib.import_module(TAKERS[mark]).__wellcal_function__
    return None


@lru_cache(maxsize=512)  # a small call takes notice of looking at each class anew
def _mark_of(kind: type) -> str | None:
    """By which attribute objects of a class may take over; None for those that do not."""
    return next((mark for mark in (_TAKES_OVER, *TAKERS) if has(kind, mark)), None)


def _is_elsewhere(one: object, mark: str) -> bool:
    """True if an object of a class with a mark holds a Dask collection.

    Arrays of xarray have the mark in any case, and it returns None if they hold none. Dask's own are not
    asked: that may build a whole graph.
    """
    return type(one).__module__.partition(".")[0] == "dask" or getattr(one, mark)() is not None


def handed_over(function: Function) -> Function:
    """Decorate a public function so that objects that take over compute in its place (:func:`taker_of`)."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        taker = taker_of(*arguments, *options.values())
        if taker is None:
            return function(*arguments, **options)
        return taker(function.__name__, arguments, options)

    return cast("Function", call)


def refuse_elsewhere(given: object, name: str, remedy: str = "") -> None:
    """Refuse an object that is not in memory."""
    if taker_of(given) is not None:
        advice = remedy or (
            "this needs cases in memory: sample some (sample_cases of wellcal.dask), or compute() what fits"
        )
        raise TypeError(f"{name} is in partitions, found {type(given).__name__}; {advice}")
