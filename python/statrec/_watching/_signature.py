"""How a module was called when it was probed: with its input, and the defaults of all else."""

import inspect

OTHERWISE = "it was called with more than its input, and what it computes then is not known"


class Signature:
    """{parameter: default} of the forward of a class, in order; the first one is the input."""

    def __init__(self, cls):
        parameters = list(inspect.signature(cls.forward).parameters.values())[1:]
        self.names = [one.name for one in parameters]
        self.defaults = {one.name: one.default for one in parameters[1:]}

    def otherwise(self, args, kwargs):
        """Whether a call has another argument than the input and these defaults."""
        if len(args) + len(kwargs) == 1:  # whatever a decorator calls it
            return False
        if len(args) > len(self.names):
            return True
        given = dict(zip(self.names[1:], args[1:]))
        given.update({name: value for name, value in kwargs.items() if name not in self.names[:1]})
        return any(
            name not in self.defaults or value is not self.defaults[name]
            for name, value in given.items()
        )
