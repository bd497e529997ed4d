"""Why a row has no numbers."""


class RowFailed(Exception):
    """The row could not be measured; the text says what is missing or what went wrong."""
