"""Checkpoints of `statrec train` (docs/checkpoints.md): read as models, and written as weights."""

import os
from typing import Any, Dict, List, Union

import torch
from torch import Tensor, nn

from ._names import calls, stored
from ._options import Options
from ._table import build

Path = Union[str, "os.PathLike[str]"]
_FORMAT, _VERSION = "statrec-checkpoint", 1
_SIZES = ("channels", "classes", "vocabulary", "target_vocabulary")


def load(path: Path) -> nn.Module:
    """The model of a checkpoint, with its weights and running values, on the CPU and in evaluation
    mode.

        model = statrec.models.load("run-0000500.ckpt")

    model.options has the options of the training. Raises FileNotFoundError, and ValueError with one
    line for a file that is no checkpoint, is damaged, or has a model that is not in MODELS.
    """
    with _Checkpoint(path) as file:
        try:
            with torch.device("meta"):  # takes no memory before the sizes are checked
                options = Options.of_config(file.text("config"), file.sizes())
                model = build(file.text("model"), options)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise file.error(_line(error)) from None
        for group, name, tensor in stored(model):
            file.check(group, name, tensor)
        model.to_empty(device="cpu")
        with torch.no_grad():
            _fill(file, model)
    model.options = options  # type: ignore[assignment]
    return model.eval()


def _fill(file: "_Checkpoint", model: nn.Module) -> None:
    for group, name, tensor in stored(model):
        value = file.read(group, name)
        if 0 in tensor.stride() and tensor.numel() > 1:  # one number for all features
            tensor, value = tensor[:1], value[:1]
        tensor.copy_(value)
    for group, name, tensor in calls(model):  # an averaged checkpoint has none
        tensor.copy_(file.read(group, name) if file.has(group, name) else torch.tensor(0, device="cpu"))


def save(model: nn.Module, path: Path) -> None:
    """Writes weights and running values of a model of MODELS for `statrec train --weights`.

        statrec.models.save(model, "start.npz")

    The numbers of training calls, which warm-ups of methods count, are not part of such a file.
    Raises ValueError if the name does not end with .npz.
    """
    import numpy

    name = os.fspath(path)
    if not name.endswith(".npz"):
        raise ValueError(f"{name}: a name that ends with .npz is wanted")
    arrays: Dict[str, Any] = {}
    for group, key, tensor in stored(model):
        kind = torch.float64 if group == "running" else torch.float32
        value = tensor.detach().to("cpu", kind if tensor.dtype != torch.float64 else torch.float64)
        arrays[key] = numpy.ascontiguousarray(value.numpy())
    part = name + ".part"
    try:
        with open(part, "wb") as file:
            numpy.savez(file, **arrays)
        os.replace(part, name)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise


def dictionary(path: Path, side: str = "source") -> List[str]:
    """Words of a checkpoint by their ids; side: "source" or "target", which is the same list if the
    dictionary is joint. Raises ValueError as load, and for a checkpoint without words, such as a
    language model's."""
    if side not in ("source", "target"):
        raise ValueError(f"side is {side!r:.80}, not source or target")
    with _Checkpoint(path) as file:
        name = f"{side}_dictionary"
        if not file.has("text", name):
            name = "source_dictionary"
        text = file.read("text", name)
        if text.dtype != torch.uint8:
            raise file.error(f"text/{name} is no text")
    lines = bytes(text.tolist()).decode("utf-8", "replace").split("\n")
    words = [line.rpartition(" ")[0] for line in lines if line]
    return ["<s>", "<pad>", "</s>", "<unk>", *words]


class _Checkpoint:
    """An open checkpoint. Only arrays within the file are read."""

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = os.fspath(path)
        self._h5py = h5py
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"{self.path}: no such file")
        try:
            self._file = h5py.File(self.path, "r", locking=False)
            found = self.text("format")
        except OSError as error:
            raise self.error(f"no checkpoint: {_line(error)}") from None
        if found != _FORMAT:
            run = " but a run file; name one of its checkpoints" if found == "statrec-run" else ""
            self._file.close()
            raise self.error(f"no checkpoint of statrec train{run}")
        version = self._file.attrs.get("format_version", 0)
        if version != _VERSION:
            self._file.close()
            raise self.error(f"format_version {version}; this package reads {_VERSION}")

    def __enter__(self) -> "_Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def error(self, text: str) -> ValueError:
        """The fault of the file."""
        return ValueError(f"{self.path}: {text}")

    def text(self, name: str) -> str:
        """A text of the root, "" without one."""
        value = self._file.attrs.get(name, "")
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def sizes(self) -> Dict[str, int]:
        """Sizes of the data."""
        attributes = self._file.attrs
        return {name: int(attributes[name]) for name in _SIZES if name in attributes}

    def _link(self, path: str) -> Any:
        """The link of this name, not followed; None: there is none."""
        return self._file.get(path, getlink=True)

    def has(self, group: str, name: str) -> bool:
        """Whether a group of this file has a member."""
        link = self._link(group)
        own = isinstance(link, self._h5py.HardLink)
        return own and self._link(f"{group}/{name}") is not None

    def _array(self, group: str, name: str) -> Any:
        """A dataset whose values are in this file."""
        if not self.has(group, name):
            raise self.error(f"has no {group}/{name}")
        link = self._link(f"{group}/{name}")
        array = self._file[group][name] if isinstance(link, self._h5py.HardLink) else None
        if not isinstance(array, self._h5py.Dataset) or array.external or array.is_virtual:
            raise self.error(f"{group}/{name} is no array of this file")
        if array.id.get_storage_size() < array.dtype.itemsize * array.size:
            raise self.error(f"{group}/{name} is not complete")
        return array

    def check(self, group: str, name: str, tensor: Tensor) -> None:
        """Raises ValueError unless the array fits the tensor."""
        array = self._array(group, name)
        if array.dtype.kind != "f" or array.shape != tuple(tensor.shape):
            raise self.error(
                f"{group}/{name} has shape {array.shape} of {array.dtype}; the model of its "
                f"configuration has {tuple(tensor.shape)}"
            )

    def read(self, group: str, name: str) -> Tensor:
        """The values of an array."""
        array = self._array(group, name)
        try:
            return torch.as_tensor(array[()], device="cpu")
        except OSError as error:
            raise self.error(f"{group}/{name} is damaged: {_line(error)}") from None


def _line(error: Exception) -> str:
    """The first line of an error's text."""
    return (str(error).splitlines() or [type(error).__name__])[0]
