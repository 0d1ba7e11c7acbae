"""Errors that are reported to users without a traceback: invalid input, and training that cannot continue."""


class InputError(ValueError):
    """Input that cannot be used.

    The message is written for the user: which file or argument, what is wrong with it, where, and what to do. The
    command line prints it without a traceback and exits with code 2.
    """


class TrainingError(RuntimeError):
    """Training that cannot continue on valid input: its loss diverges, or it does not learn.

    The message names the step, what is kept on disk, and what to change. The command line prints it without a
    traceback and exits with code 1.
    """
