"""Tensors on their way to the host, all in one copy for each GPU, without waiting."""
import torch

_ALIGN = 8


class Fetch:
    """Copies of tensors as they are now; get() waits for them.

    On a GPU their bytes are concatenated and copied to pinned memory: an event signals their arrival. Tensors of the
    CPU are cloned.
    """

    def __init__(self, tensors):
        self._kept, self._waiting = [None] * len(tensors), []
        by_device = {}
        for place, tensor in enumerate(tensors):
            tensor = tensor.detach()
            if tensor.is_cpu:
                self._kept[place] = tensor.clone()
            else:
                by_device.setdefault(tensor.device, []).append((place, tensor.contiguous()))
        for device, pairs in by_device.items():
            self._send(device, pairs)

    def _send(self, device, pairs):
        """Each begins at a multiple of 8 bytes: the host takes bytes as doubles."""
        parts = [tensor.view(-1).view(torch.uint8) for _, tensor in pairs]
        gaps = [part.new_empty(-part.numel() % _ALIGN) for part in parts]
        flat = torch.cat([one for pair in zip(parts, gaps) for one in pair])
        host = torch.empty(flat.numel(), dtype=torch.uint8, device="cpu", pin_memory=True)
        with torch.cuda.device(device):
            host.copy_(flat, non_blocking=True)
            event = torch.cuda.Event(blocking=True)
            event.record()
        self._waiting.append((event, host, [(place, tensor.dtype, tensor.shape) for place, tensor in pairs]))

    def get(self):
        """The tensors on the CPU, in the given order."""
        for event, host, parts in self._waiting:
            event.synchronize()
            start = 0
            for place, dtype, shape in parts:
                count = shape.numel() * dtype.itemsize
                self._kept[place] = host[start:start + count].view(dtype).view(shape)
                start += count + -count % _ALIGN
        self._waiting = []
        return self._kept
