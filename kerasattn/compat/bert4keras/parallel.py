"""bert4keras' way to apply a function in many processes or threads."""

import multiprocessing
import multiprocessing.dummy
import queue

import numpy as np


def parallel_apply_generator(
    func, iterable, workers, max_queue_size, dummy=False, random_seeds=True
):
    """Yields (number, func(item)) for the items of an iterable, in the order that they are done.

    Args:
        func: function of an item. Processes are forked, so that it need not be a module's.
        iterable: of items, read as they are needed.
        workers: int >= 1, processes.
        max_queue_size: int >= 1, items that may wait.
        dummy: bool, threads in place of processes.
        random_seeds: list of seeds for numpy, one a process; True for new ones, False for none.

    Raises:
        whatever func raises, here.
    """
    if workers < 1 or max_queue_size < 1:
        raise ValueError(
            f"workers and max_queue_size must be at least 1, got {workers} and {max_queue_size}."
        )
    context = multiprocessing.dummy if dummy else multiprocessing.get_context("fork")
    waiting, done = context.Queue(max_queue_size), context.Queue()
    seeds = [None] * workers if random_seeds is True else list(random_seeds or ())

    def work(worker):
        if worker < len(seeds) and not dummy:  # threads share numpy's state
            np.random.seed(seeds[worker])  # noqa: NPY002, functions draw from it
        while (task := waiting.get()) is not None:
            number, item = task
            try:
                done.put((number, func(item), None))
            except Exception as error:
                done.put((number, None, error))

    crew = [context.Process(target=work, args=(worker,)) for worker in range(workers)]
    for process in crew:
        process.daemon = True
        process.start()

    def result():
        nonlocal open_tasks
        number, value, error = done.get()
        open_tasks -= 1
        if error is not None:
            raise error
        return number, value

    open_tasks = 0
    try:
        for task in enumerate(iterable):
            while True:
                try:
                    waiting.put_nowait(task)
                    break
                except queue.Full:
                    yield result()
            open_tasks += 1
        while open_tasks:
            yield result()
    finally:
        for process in crew:
            if dummy:
                waiting.put(None)
            else:
                process.terminate()


def parallel_apply(
    func,
    iterable,
    workers,
    max_queue_size,
    callback=None,
    dummy=False,
    random_seeds=True,
    unordered=True,
):
    """func of all items, a list; or nothing, and callback is called with each result.

    Args:
        callback: function of a result, or None.
        unordered: bool, whether the list may be in the order that results are done.
        func, iterable, workers, max_queue_size, dummy, random_seeds: of
            `parallel_apply_generator`.

    Example:
    >>> from kerasattn.compat.bert4keras.snippets import parallel_apply
    >>> parallel_apply(lambda x: x * x, range(4), 2, 8, dummy=True, unordered=False)
    [0, 1, 4, 9]
    """
    results = parallel_apply_generator(func, iterable, workers, max_queue_size, dummy, random_seeds)
    if callback is not None:
        for _, value in results:
            callback(value)
        return None
    found = list(results)
    if not unordered:
        found.sort(key=lambda pair: pair[0])
    return [value for _, value in found]
