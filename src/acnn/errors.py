"""What can go wrong for a user, as opposed to for a programmer."""


class InputError(ValueError):
    """Input that cannot be used as it is.

    The message is written for the person who typed the command: which file or argument, what is wrong with it, where,
    and what to do. The command line prints it without a traceback and exits with code 2.
    """
