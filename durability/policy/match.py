"""RE2 expressions that match a whole value, for single values and Arrow columns.

RE2 takes linear time for every expression, so a policy can't stall the audit. `.` matches newlines too, since group ids and
client tags may contain any text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    import pyarrow as pa


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options


def _wrapped(expression: str) -> str:
    return f"(?s:{expression})"


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> re2._Regexp:
    return re2.compile(_wrapped(expression), _options())


def pattern_problem(expression: str) -> str | None:
    """What is wrong with an expression, in RE2's words; None when it is good.

    >>> pattern_problem("pay-.*")
    >>> pattern_problem("pay-(")
    'missing ): pay-('
    """
    if "\\Q" in expression:
        return r"\Q is not supported; escape characters one by one"
    try:
        re2.compile(expression, _options())  # alone first: `a)(b` would become valid inside a group
        _compiled(expression)
    except re2.error as error:
        detail = error.args[0] if error.args else str(error)
        words = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        hint = "; RE2 knows no look-around and no back-references" if "perl operator" in words else ""
        return words + hint
    return None


def matches(expression: str, value: str) -> bool:
    """True if `expression` matches the whole of `value`.

    >>> matches("pay", "payments"), matches("pay.*", "payments")
    (False, True)
    """
    return _compiled(expression).fullmatch(value) is not None


def match_column(expression: str, values: pa.Array) -> pa.Array:
    """`matches` for every value of a string array; null where the value is null.

    Arrow's own RE2 takes about 20 ms for 100,000 values.
    """
    import pyarrow.compute as pc

    return pc.match_substring_regex(values, rf"\A{_wrapped(expression)}\z")
