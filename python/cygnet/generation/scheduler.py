"""Continuous batching: one thread a model runs every request, from any thread or event loop, in one ragged batch.

Each step feeds one token of every running continuation and, beside them, so many prompt tokens that it takes no longer than one chunk of them alone
(step_budget.py). Requests start in the order of their arrival, once the memory that they may need at worst is free; nothing that runs can
run out of it. As a sequence's logits do not depend on the batch, every request gets the tokens it would get alone.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from cygnet.errors import CacheFull, Cancelled, ModelClosed, OptionError, OutOfMemory
from cygnet.generation.batch import run_step
from cygnet.generation.beam_task import BeamTask
from cygnet.generation.constraints import Vocabulary, constrained
from cygnet.generation.engine_protocol import Engine, Source
from cygnet.generation.handle import Handle, Ticket
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.sampling_task import SamplingTask
from cygnet.generation.speculation import speculator_factory
from cygnet.generation.tasks import Request, Task, too_large

# The thread ends after this long without work, so that an unused model holds no thread and can be collected.
IDLE_SECONDS = 0.2

# A forward pass that was stopped for a request that meanwhile ended is repeated, but not for ever.
_MAX_REPEATS = 3


class _Job:
    """A task between submission and result."""

    __slots__ = ("begun", "source", "task", "ticket")

    def __init__(self, task: Task, ticket: Ticket):
        self.task = task
        self.ticket = ticket
        self.source: Source | None = None
        self.begun = False


class Scheduler:
    """Runs requests on an engine.

    Parameters
    ----------
    engine : Engine
    chunk_tokens : int
        A step takes no longer than reading so many prompt tokens while somebody waits for his next token.
    prompt_tokens : int
        Prompt or source tokens a step may read otherwise.
    reuse_prefixes : bool
        Whether computed prompts are kept for later requests that begin alike, as long as memory is not needed otherwise.
    draft : Engine or None
        A small model with the same vocabulary, for speculation="draft-model".
    vocabulary : function or None
        Makes the model's Vocabulary, for json_schema, regex and grammar; called once, when first needed.

    Raises
    ------
    OptionError
        For a draft model with another vocabulary.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        chunk_tokens: int = 128,
        prompt_tokens: int = 512,
        reuse_prefixes: bool = True,
        draft: Engine | None = None,
        vocabulary: Callable[[], Vocabulary] | None = None,
    ):
        if chunk_tokens < 1 or prompt_tokens < 1:
            raise OptionError(f"chunk_tokens={chunk_tokens} and prompt_tokens={prompt_tokens} must be at least 1")
        if draft is not None and draft.vocab_size != engine.vocab_size:
            raise OptionError(f"the draft model has {draft.vocab_size} tokens, the model {engine.vocab_size}: they must share a vocabulary")
        self.engine = engine
        self._chunk_tokens = chunk_tokens
        self._prompt_tokens = prompt_tokens
        self._cache = PrefixCache(engine, reuse_prefixes)
        self._speculate = speculator_factory(draft)
        self._vocabulary = None if vocabulary is None else cache(vocabulary)
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._in_forward = False
        _schedulers.add(self)

    def submit(self, request: Request) -> Handle:
        """Queues a request.

        Raises
        ------
        OptionError, ContextOverflow, CacheFull
            At once, for a request that can never run.
        """
        request.check(self.engine)
        request = replace(request, options=constrained(request.options, self._vocabulary))
        ticket = Ticket()
        if request.options.num_beams > 1:
            task = BeamTask(request, self.engine.max_context, emit=ticket.emit)
        else:
            task = SamplingTask(request, self.engine.max_context, emit=ticket.emit, speculate=self._speculate)
        return self._enqueue(task, ticket)

    def submit_task(self, task: Task) -> Handle:
        """Queues anything else that keeps to the Task protocol."""
        return self._enqueue(task, Ticket())

    def run(self, requests: Sequence[Request]) -> list[list]:
        """The results of several requests, in order; if one fails or the wait is interrupted, the others are cancelled."""
        handles = []
        try:
            for request in requests:
                handles.append(self.submit(request))
            return [handle.result() for handle in handles]
        except BaseException:
            for handle in handles:
                handle.cancel()
            raise

    def close(self) -> None:
        """Cancels everything and ends the thread; the scheduler takes no more requests."""
        with self._wake:
            self._closed = True
            thread = self._thread
            for job in (*self._waiting, *self._running):
                job.ticket.close()
            if self._in_forward:
                self.engine.cancel()
            self._wake.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._cache.clear()

    def _enqueue(self, task: Task, ticket: Ticket) -> Handle:
        with self._wake:
            if self._closed:
                raise ModelClosed("the model is closed: load it again")
            if threading.current_thread() is self._thread:
                raise OptionError("a function that is called while tokens are chosen cannot use the same model: it would wait for itself")
            self._waiting.append(_Job(task, ticket))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="cygnet-scheduler", daemon=True)
                self._thread.start()
            self._wake.notify()
        return Handle(ticket, self._cancel)

    def _cancel(self, ticket: Ticket) -> None:
        """Marks a request; stops the running forward pass if nobody else wants it."""
        ticket.cancelled = True
        # Finalizers come here too, perhaps in a thread that holds the lock, which is why it is reentrant.
        with self._wake:
            if self._in_forward and all(job.ticket.cancelled for job in self._running):
                self.engine.cancel()

    # Everything below runs in the scheduler's thread.

    # A caller's functions (stop_when, allowed_tokens, constraints) run here too; what they raise, be it SystemExit, belongs to their request.

    def _work(self) -> None:
        while self._await_work():
            try:
                self._end_cancelled()
                self._admit()
                self._advance()
            except BaseException as error:
                for job in self._jobs():
                    self._end(job, error)

    def _await_work(self) -> bool:
        """Waits until there is something to do; False ends the thread."""
        with self._wake:
            while not self._waiting and not self._running:
                if self._closed or not self._wake.wait(IDLE_SECONDS):
                    if self._waiting:
                        break
                    self._thread = None
                    return False
        return True

    def _jobs(self) -> list[_Job]:
        """All that run or wait, in order of arrival."""
        with self._wake:
            return [*self._running, *self._waiting]

    def _end_cancelled(self) -> None:
        for job in self._jobs():
            if job.ticket.cancelled:
                error = job.ticket.closed
                try:
                    if error is None:
                        job.task.cancel()
                except BaseException as raised:
                    error = raised
                self._end(job, error)

    def _end(self, job: _Job, error: BaseException | None = None) -> None:
        """Takes a job off the books, gives its memory back, and tells its caller."""
        try:
            job.task.close()
            if job.source is not None:
                job.source.release()
                job.source = None
            results = [] if error else job.task.results()
        except BaseException as raised:
            error = error or raised
        with self._wake:
            if job in self._running:
                self._running.remove(job)
            if job in self._waiting:
                self._waiting.remove(job)
        if error is None:
            job.ticket.finish(results)
        else:
            if isinstance(error, MemoryError) and not isinstance(error, OutOfMemory):
                error = OutOfMemory("no memory is left for this request: run fewer at once, or give a smaller max_new_tokens")
            job.ticket.fail(error)

    def _admit(self) -> None:
        """Starts waiting jobs, first come first served, as long as their memory is there."""
        if not self._waiting:
            return
        self._encode_sources()
        while self._waiting:
            job = self._waiting[0]
            if job.task.source_ids is not None and job.source is None:
                return
            try:
                if not job.begun:
                    job.begun = True
                    job.task.begin(self.engine, self._cache, job.source)
                if job.task.finished:
                    self._end(job)
                    continue
                if not self._make_room(job):
                    return
            except BaseException as error:
                self._end(job, error)
                continue
            with self._wake:
                self._waiting.popleft()
                self._running.append(job)

    def _encode_sources(self) -> None:
        """Encodes the next waiting sources as one batch; a source is read whole, but only one if it is long and somebody waits for his next token."""
        most = self._chunk_tokens if any(not job.task.reading for job in self._running) else self._prompt_tokens
        batch, tokens = [], 0
        for job in self._jobs():
            if job.task.source_ids is not None and job.source is None:
                tokens += len(job.task.source_ids)
                if batch and tokens > most:
                    break
                batch.append(job)
        if not batch:
            return
        try:
            sources = self.engine.encode([job.task.source_ids for job in batch])
        except Cancelled:
            return
        except Exception:
            # In order, up to the first that must wait: one behind it must not take the memory that it waits for.
            all(self._encode_alone(job) for job in batch)
            return
        for job, source in zip(batch, sources, strict=True):
            job.source = source

    def _encode_alone(self, job: _Job) -> bool:
        """Encodes one source, or ends its job; False if its memory has to be waited for."""
        try:
            [job.source] = self.engine.encode([job.task.source_ids])
        except Exception as error:
            if isinstance(error, CacheFull) and any(other.source is not None for other in self._jobs()):
                return False
            self._end(job, error)
        return True

    def _make_room(self, job: _Job) -> bool:
        """Whether the job's worst case fits beside that of all that run; forgets cached prefixes for it."""
        engine = self.engine
        wanted = job.task.blocks_wanted(engine) + sum(other.task.blocks_wanted(engine) for other in self._running)
        while wanted > engine.blocks_free:
            if not self._cache.evict():
                if self._running:
                    return False
                raise CacheFull(too_large(wanted, engine.blocks_free, engine.block_tokens))
        return True

    def _advance(self) -> None:
        """One step of all that run; a request that fails ends alone."""
        if not self._running:
            return
        jobs = list(self._running)
        for _ in range(_MAX_REPEATS):
            try:
                self._step(jobs)
                break
            except Cancelled:
                if all(job.ticket.cancelled for job in jobs):
                    return
            except OutOfMemory:
                # Somebody uses the engine beside the scheduler, or the machine has no more: kept prefixes make room for what runs.
                self._cache.clear()
            except Exception:
                self._step_alone(jobs)
                break
        else:
            self._step_alone(jobs)
        for job in jobs:
            if job.task.finished and not job.ticket.done:
                self._end(job)

    def _step(self, jobs: list[_Job]) -> None:
        owners = {id(job.task): job for job in jobs}

        def failed(task, error):
            self._end(owners[id(task)], error)

        with self._wake:
            self._in_forward = True
        try:
            run_step(self.engine, [job.task for job in jobs], self._prompt_tokens, self._chunk_tokens, failed)
        finally:
            with self._wake:
                self._in_forward = False

    def _step_alone(self, jobs: list[_Job]) -> None:
        """Finds the request that makes a forward pass fail, by running each one for itself."""
        for job in jobs:
            if job.ticket.done:
                continue
            try:
                self._step([job])
            except Exception as error:
                if not job.ticket.cancelled:
                    self._end(job, error)

    def _after_fork(self) -> None:
        """In a forked child: the thread is gone, its work stays the parent's, and the next request starts a new one."""
        jobs = (*self._waiting, *self._running)
        self._wake = threading.Condition()
        self._thread, self._in_forward = None, False
        self._waiting.clear()
        self._running.clear()
        for job in jobs:
            job.ticket.abandon_after_fork()
            job.task.close()
            if job.source is not None:
                job.source.release()


_schedulers: weakref.WeakSet[Scheduler] = weakref.WeakSet()


def _close_all() -> None:
    for scheduler in list(_schedulers):
        scheduler.close()


def _after_fork_in_child() -> None:
    for scheduler in list(_schedulers):
        scheduler._after_fork()


# A thread that is still in compiled code when the interpreter is taken down would crash it.
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
