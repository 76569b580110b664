"""statrec.nn and statrec.audit in two processes, and without the library."""

import unittest

import rank_cases
from support import needs_fork, wants


@needs_fork
@wants("torch")
class Ranks(unittest.TestCase):
    def test_without_the_library(self):
        rank_cases.passes(self, "without_the_library")

    def test_synchronized(self):
        rank_cases.passes(self, "synchronized_norms")

    def test_audit_of_one_rank(self):
        rank_cases.passes(self, "audit_of_one_rank")
