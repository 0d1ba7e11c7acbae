"""What can go wrong for a user, as opposed to for a programmer."""


class InputError(ValueError):
    """Input that cannot be used as it is.

    The message is written for the person who typed the command: which file or argument, what is wrong with it, where,
    and what to do. The command line prints it without a traceback and exits with code 2.
    """


class TrainingError(RuntimeError):
    """A training that cannot go on, on input that is good: its loss diverges, or it does not learn.

    The message states at which step, what is left on disk, and what to change. The command line prints it without a
    traceback and exits with code 1.
    """
