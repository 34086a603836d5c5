"""Regexes of dates and times. Python's and pydantic's types accept every match, including leap years."""

from __future__ import annotations

_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
DATE = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
"""A date from year 0001 to 9999, such as 2024-02-29."""

TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
"""A time of day with seconds, such as 09:30:00."""
