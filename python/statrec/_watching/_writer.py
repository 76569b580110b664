"""A thread that writes steps to the file while the next ones run."""
import queue
import threading
import time


class Writer:
    """Does jobs one after the other; at most `room` of them wait, then put() does.

    The first job that fails ends it: its error is raised by the next call, and later jobs are dropped.
    """

    def __init__(self, room=2):
        self._jobs, self._failed, self._thread = queue.Queue(room), [], None
        self.waited = 0.0  # seconds in put()

    def put(self, job):
        """job() will be called."""
        self.check()
        if self._thread is None:
            self._thread = threading.Thread(target=_work, args=(self._jobs, self._failed), daemon=True,
                                            name="statrec")
            self._thread.start()
        start = time.perf_counter()
        self._jobs.put(job)
        self.waited += time.perf_counter() - start

    def check(self):
        """Raises what a job has raised."""
        if self._failed:
            raise self._failed[0]

    def drain(self):
        """Waits until every job is done."""
        if threading.current_thread() is not self._thread:
            self._jobs.join()
        self.check()

    def stop(self):
        """Finishes the remaining work, and ends the thread."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._jobs.put(None)
        if threading.current_thread() is not thread:
            thread.join()


def _work(jobs, failed):
    """A separate function: the thread must not hold the run."""
    while True:
        job = jobs.get()
        try:
            if job is None:
                return
            if not failed:
                job()
        except BaseException as error:
            failed.append(error.with_traceback(None))
        finally:
            job = None
            jobs.task_done()
