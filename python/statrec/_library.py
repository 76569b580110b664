"""libstatrec: found, loaded and checked at first use; its failures as statrec.Error.

It is loaded RTLD_LOCAL: with RTLD_GLOBAL its HDF5 would serve the calls of any other HDF5 in the
process, such as h5py's, and break it. No two threads may be in one HDF5: every call into the
library is made holding `locked()`.
"""
from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
import weakref

from . import _abi

NAME = "libstatrec.so.1"


def _in_python(hint):
    """A hint that names an option of the command line names the argument: force=True."""
    return hint.replace("--force", "force=True")


class Error(Exception):
    """A call that failed, with libstatrec's message in one line.

    text: the line. hint: advice, or "". status: "usage", "memory", "io", "format",
    "exists", "state" or "library", as sr_status_name.
    """

    def __init__(self, text: str, status: str = "usage", hint: str = "") -> None:
        hint = _in_python(hint)
        super().__init__(f"{text} ({hint})" if hint else text)
        self.text, self.status, self.hint = text, status, hint

    def __reduce__(self):
        return type(self), (self.text, self.status, self.hint)


class NotThere(Error):
    """There is no libstatrec on this machine."""


class NameMissing(Error, KeyError):
    """A site or a statistic that a run does not have; mappings look for KeyError."""

    __str__ = Exception.__str__


# -- the lock ---------------------------------------------------------------------------------

# Reentrant: the garbage collector may give back a file while its thread is in here.
_lock = threading.RLock()


def locked():
    """The lock that serialises calls into the library: h5py's if it is imported.

    A distribution's h5py and libstatrec use one HDF5, so that both must wait for each other.
    """
    return getattr(sys.modules.get("h5py._objects"), "phil", None) or _lock


def _forget_lock():
    # Another thread may have held it when the process forked; in the child it is never released.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


# -- finding and loading ----------------------------------------------------------------------

_loaded = None


def library():
    """The library, a ctypes.CDLL with the types of all functions; loaded by the first call."""
    global _loaded
    with locked():
        if _loaded is None:
            _loaded = _load()
        return _loaded


def loads():
    """Whether the library reads run files: False if it is missing and h5py is installed."""
    try:
        library()
    except NotThere as why:
        if os.environ.get("STATREC_LIBRARY"):
            raise
        if "h5py" not in sys.modules and importlib.util.find_spec("h5py") is None:
            raise NotThere(why.text, why.status, f"{why.hint}; to read run files without it, pip "
                           "install h5py") from None
        return False
    return True


def _places():
    """Places to search, in this order: (description, name for dlopen)."""
    chosen = os.environ.get("STATREC_LIBRARY")
    if chosen:
        return [(f"$STATREC_LIBRARY = {chosen}", chosen)]
    here = os.path.dirname(os.path.abspath(__file__))
    beside, inside = os.path.join(here, NAME), os.path.join(here, "_tree", "lib", NAME)
    top = os.path.dirname(os.path.dirname(here))
    built = os.path.join(top, "build", "release", "lib", NAME)
    checkout = os.path.exists(os.path.join(top, "src", "record", "libstatrec.map"))
    return [(beside, beside), (inside, inside), *([(built, built)] if checkout else []),
            (f"{NAME} by the loader", NAME)]


def _load():
    seen = []
    for told, name in _places():
        if os.sep in name and not os.path.exists(name):
            seen.append(f"{told}: no such file")
            continue
        try:
            return _checked(ctypes.CDLL(name, mode=ctypes.RTLD_LOCAL), name)
        except OSError as reason:
            seen.append(f"{told}: {reason}")
    if not os.environ.get("STATREC_LIBRARY"):
        seen.insert(0, "$STATREC_LIBRARY: not set")
    raise NotThere(f"libstatrec does not load; looked at {'; '.join(seen)}", "library",
                   "set STATREC_LIBRARY to the file, or run ldconfig after `make install`")


def _checked(handle, name):
    """The same library with the types of its functions; Error when it is another version's."""
    path = path_of(handle) or name
    if not hasattr(handle, "sr_abi_version"):
        raise Error(f"{path}: no function sr_abi_version: this is no libstatrec, or an older one "
                    f"than this package needs (ABI {_abi.ABI})", "library")
    handle.sr_abi_version.restype = ctypes.c_int
    abi = handle.sr_abi_version()
    if abi != _abi.ABI:
        raise Error(f"{path}: its ABI is {abi}, this package is written for {_abi.ABI}", "library",
                    "install the package and the library of one version of statrec")
    _declare(handle, path)
    return handle


def _declare(handle, path):
    missing, quick = [], ctypes.PyDLL(path, handle=handle._handle)
    for name, (returns, takes) in _abi.PROTOTYPES.items():
        try:
            function = getattr(quick if name in _abi.QUICK else handle, name)
        except AttributeError:
            missing.append(name)
            continue
        setattr(handle, name, function)
        function.restype, function.argtypes = returns, takes
    if missing:
        raise Error(f"{path}: it lacks {', '.join(missing)}, which this package calls", "library",
                    "the library is older than the package, or another program's")


class _DlInfo(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def path_of(handle):
    """The file that a loaded library came from, or None."""
    try:
        find, symbol = ctypes.CDLL(None).dladdr, handle.sr_abi_version
    except AttributeError:
        return None
    info = _DlInfo()
    find.argtypes = [ctypes.c_void_p, ctypes.POINTER(_DlInfo)]
    found = find(ctypes.cast(symbol, ctypes.c_void_p), ctypes.byref(info))
    return os.path.realpath(os.fsdecode(info.file)) if found and info.file else None


# -- texts and failures -----------------------------------------------------------------------

def encoded(value, what):
    """A text for the library."""
    if not isinstance(value, str):
        raise Error(f"{what}: a text is wanted, got {type(value).__name__} {value!r:.80}")
    if "\0" in value:
        raise Error(f"{what}: {value!r:.80} holds a NUL character")
    return value.encode("utf-8", "surrogateescape")


def decoded(value):
    """A text of the library's; NULL is ""."""
    return value.decode("utf-8", "replace") if value else ""


def path_bytes(path):
    """A path for the library."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise Error(f"a path with a NUL character: {path!r:.80}")
    return name


def error_of(failure):
    """The Error of an _abi.Failure."""
    status = decoded(library().sr_status_name(failure.status))
    return Error(decoded(failure.text), status, decoded(failure.hint))


def copy_of(pointer, kind):
    """A copy of the struct at a pointer, or None; fields that it is too short for are zero."""
    if not pointer:
        return None
    result = kind()
    length = min(pointer.contents.size, ctypes.sizeof(kind))
    ctypes.memmove(ctypes.byref(result), pointer, length)
    return result


# -- handles ----------------------------------------------------------------------------------

_handles: weakref.WeakSet[Handle] = weakref.WeakSet()  # of recorders


def recorded_here(path):
    """Whether a recorder of this process writes the file that this path means."""
    names = {os.path.realpath(os.fsdecode(path) + ending) for ending in ("", ".part")}
    return any(handle.pointer and handle.own and os.path.realpath(handle.path + ".part") in names
               for handle in _handles)


def recorded_twice(path):
    """The Error of a second recorder."""
    return Error(f"{os.fsdecode(path)}: this process records into it already", "exists",
                 "end that run by its close(), or use another name")


class Handle:
    """A handle of the library, given back once: by release(), or when the owner is
    garbage-collected.

    give_back(handle) is called then, also at the interpreter's exit. In a forked child nothing is
    given back: open files belong to the parent.
    """

    def __init__(self, owner, pointer, path, give_back):
        self.pointer, self.path, self.pid = pointer, path, os.getpid()
        weakref.finalize(owner, self._forgotten, give_back)

    def records(self):
        """The same handle, marked as a recorder's."""
        _handles.add(self)
        return self

    @property
    def own(self):
        """False in a child that was forked since."""
        return self.pid == os.getpid()

    def release(self):
        """The pointer, from now on the caller's to give back; None when it was before."""
        pointer, self.pointer = self.pointer, None
        return pointer

    def _forgotten(self, give_back):
        if self.own and self.pointer:
            with locked():
                give_back(self)
