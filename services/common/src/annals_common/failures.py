"""What is kept of a failure: enough to look for its cause, nothing of what was stored."""

from __future__ import annotations

import traceback

from annals_common.errors import AnnalsError

MAX_ERROR_CHARS = 500


def without_content(error: Exception) -> str:
    """Return the kind of error and where it was raised; of our own errors what they say, too.

    What others say may quote the text they failed on. It is in the log, beside the key.
    """
    said = f": {error.message}" if isinstance(error, AnnalsError) else ""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{said}{place}"[:MAX_ERROR_CHARS]
