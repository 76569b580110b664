"""Which rows of a forward pass count."""
import torch


class Mask:
    """Rows that count: valid [N], [N, L] or as many dimensions as rows have; True is valid. A copy: the backward
    pass reads it, when the host may have written the next one in its place."""

    def __init__(self, valid):
        valid = valid if torch.is_tensor(valid) else torch.as_tensor(valid, device="cpu")
        self.valid = valid.detach().to(torch.bool, copy=True)
        self._index = {}

    def fitted(self, rows_shape):
        """valid for rows of this shape; None: it does not cover them. ValueError: no fit."""
        valid, shape = self.valid, tuple(rows_shape)
        if valid.shape == shape:
            return valid
        if len(shape) == 1 and valid.numel() == shape[0]:
            return valid.reshape(-1)
        if valid.dim() < len(shape) and shape[:valid.dim()] == valid.shape:
            return valid.reshape(*valid.shape, *[1] * (len(shape) - valid.dim())).expand(shape)
        if valid.dim() > len(shape) and valid.shape[:len(shape)] == shape:
            return None
        raise ValueError(f"the mask {list(valid.shape)} fits no rows {list(shape)}")

    def index(self, rows_shape, device):
        """Flat numbers of the valid rows, on the device, or None."""
        key = (tuple(rows_shape), device)
        if key not in self._index:
            valid = self.fitted(key[0])
            self._index[key] = (None if valid is None
                                else valid.to(device).reshape(-1).nonzero().squeeze(1))
        return self._index[key]
