"""Which tensors are read: dense ones with their own memory, on a device.

Others (jagged and strided nested tensors, DTensor, tensors of FakeTensorMode, of vmap, of the device meta, sparse
ones) have no memory, or no rows in it. Their addresses must not be read, and they are not summed.
"""
import torch

CAPTURED = "it runs in a CUDA graph, whose replays run no hooks"
_PLAIN = torch.Tensor.__torch_dispatch__  # of subclasses that have memory, too
# Whether a transform of torch.func (vmap, grad) made a tensor: it has no separate data.
_functorch = getattr(torch._C, "_functorch", None)
wrapped = getattr(_functorch, "is_functorch_wrapped_tensor", lambda tensor: False)
_batched = getattr(_functorch, "is_legacy_batchedtensor", lambda tensor: False)  # of is_grads_batched=True


def strange(tensor):
    """The kind of a tensor that is not read, for a text after its name; "" if it is read."""
    if type(tensor) is not torch.Tensor and type(tensor).__torch_dispatch__ is not _PLAIN:
        return f"is a {type(tensor).__name__}, whose memory is not read"
    if wrapped(tensor) or _batched(tensor):
        return "belongs to torch.func and vmap, which hide its rows"
    if tensor.is_nested:
        return "is a nested tensor, which has no rows of one shape"
    if tensor.layout is not torch.strided:
        return f"is of {tensor.layout}, and only dense tensors are read"
    if tensor.is_meta or tensor._is_zerotensor():
        return f"has no memory (device {tensor.device})"
    return ""


def captured(value):
    """Whether a CUDA graph that a tensor belongs to is being captured: all of its replays would repeat a launch made
    now, with the present addresses."""
    return getattr(value, "is_cuda", False) and torch.cuda.is_current_stream_capturing()
