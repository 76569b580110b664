"""usage: run.py [NAME...]: the tests here, or those whose name holds one of these words.

Prints failures, the files that take most processor time, and one line with the counts of passed and skipped tests,
by reason.
"""
import collections
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def flat(suite):
    """The tests of a suite of suites."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


class Timed(unittest.TextTestResult):
    """Adds up the seconds of a processor of each file, programs that its tests start included."""
    spent = collections.Counter()

    def startTest(self, test):
        super().startTest(test)
        self._began = sum(os.times()[:4])

    def stopTest(self, test):
        super().stopTest(test)
        self.spent[type(test).__module__] += sum(os.times()[:4]) - self._began


def main(words):
    """Exit status."""
    sys.path.insert(0, HERE)
    tests = [test for test in flat(unittest.defaultTestLoader.discover(HERE, top_level_dir=HERE))
             if not words or any(word in test.id() for word in words)]
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0,
                                     resultclass=Timed).run(unittest.TestSuite(tests))
    most = ", ".join(f"{name} {seconds:.0f}" for name, seconds in Timed.spent.most_common(10))
    print(f"seconds of a processor: {most}, {sum(Timed.spent.values()):.0f} in all")
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    reasons = collections.Counter(reason for _, reason in result.skipped)
    skipped = "".join(f"; {reason} ({count})" for reason, count in sorted(reasons.items()))
    print(f"python {sys.version.split()[0]}: {result.testsRun - failed - len(result.skipped)} "
          f"passed, {failed} failed, {len(result.skipped)} skipped{skipped}")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
