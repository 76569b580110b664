"""statrec.watch on a GPU: several backward passes of a forward pass, in Triton's interpreter."""

import test_watch_twice as twice

from statrec._gpu import _cards
from statrec._watching import _believed


class OnCard:
    """Passes of tensors of the CPU take the way of those on a GPU."""

    threads = (1,)

    def setUp(self):
        super().setUp()
        self.sent, whole = [], _cards.Cards.send
        self.patch(_cards.Cards, "send", lambda *given: (self.sent.append(1), whole(*given))[1])
        self.addCleanup(lambda: self.assertTrue(self.sent))


class Twice(OnCard, twice.Twice):
    pass


class Penalty(OnCard, twice.Penalty):
    pass


class Nodes(OnCard, twice.Twice):
    """Sums of batch norms come from their nodes."""

    def setUp(self):
        super().setUp()
        self.patch(_believed, "believed", lambda y: True)


class NodesOfPenalty(OnCard, twice.Penalty):
    def setUp(self):
        super().setUp()
        self.patch(_believed, "believed", lambda y: True)


class Functional(OnCard, twice.Functional):
    pass


class NodesOfFunctional(OnCard, twice.Functional):
    def setUp(self):
        super().setUp()
        self.patch(_believed, "believed", lambda y: True)
