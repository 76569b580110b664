"""Forward hooks of modules that copies and pickles of the module do not have."""

import contextlib
import weakref
from collections import OrderedDict

_DICTS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
)


class Hook:
    """A hook that torch.jit.script cannot compile. Its copy, where the module had hooks of others,
    does nothing."""

    def __reduce__(self):
        return getattr, (
            contextlib.nullcontext(),
            "__exit__",
        )  # takes all arguments; without this package, too

    @property
    def __name__(self):
        raise AttributeError(
            "torch.jit.script cannot compile the hooks of statrec.watch: call close() or detach() "
            "of the run first"
        )


class _Dict(OrderedDict):
    """Hooks of a module by number. Its copies and pickles are OrderedDicts without ours."""

    def __init__(self):
        super().__init__()
        self.ours = set()

    def __reduce__(self):
        return (
            OrderedDict,
            (),
            None,
            None,
            iter([pair for pair in self.items() if pair[0] not in self.ours]),
        )


class Handle:
    """Handle of one of our hooks; before: it runs before the forward pass. options: of torch's
    function."""

    def __init__(self, module, hook, before=False, **options):
        self._module, own = weakref.ref(module), vars(module)
        for name in _DICTS:
            if (
                type(own.get(name)) is OrderedDict and not own[name]
            ):  # handles of other hooks refer to their dict
                own[name] = _Dict()
        register = module.register_forward_pre_hook if before else module.register_forward_hook
        self._handle = register(hook, **options)
        for name in _DICTS:
            if isinstance(own.get(name), _Dict) and self._handle.id in own[name]:
                own[name].ours.add(self._handle.id)

    def remove(self):
        """Removes the hook, and dicts of ours that are empty."""
        self._handle.remove()
        module = self._module()
        own = {} if module is None else vars(module)
        for name in _DICTS:
            if type(own.get(name)) is _Dict and not own[name]:
                own[name] = OrderedDict()
