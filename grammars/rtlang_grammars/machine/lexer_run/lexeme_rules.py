"""The rules by which a lexeme ends. Compiled walks and steps in Python (`LexedPlaces`) run this one source.

A match counts one symbol late: a state knows the terminal that ends before each class of symbols, so look-ahead sees what really follows. A
lexeme goes on as long as any terminal can; then its last match counts, and the bytes after that are read again.
"""

from __future__ import annotations

from rtlang_grammars.machine.lexer_run.lexer_layout import IS_SURE, MAX_BACK, STEP_BITS, WINNER_BITS
from rtlang_grammars.machine.native.native_code import compiled

_TARGET_MASK, _WINNER_MASK = (1 << STEP_BITS) - 1, (1 << WINNER_BITS) - 1


@compiled(inner=True, inline=True)
def read_symbol(lexer, state, symbol, num_read, match, match_at):  # type: ignore[no-untyped-def] # pragma: no cover
    """Read a byte or the end of the text (256) after `num_read` bytes.

    match, match_at: the last match in this lexeme, -1, and the number of bytes read where it ended.
    Returns the next state, -1 where no terminal goes on, and the last match then.
    """
    step = lexer.steps[state, lexer.classes[symbol]]
    if step > _TARGET_MASK:  # a terminal ends
        winner = ((step >> STEP_BITS) & _WINNER_MASK) - 1
        ended = num_read - (step >> (STEP_BITS + WINNER_BITS))
        if match < 0 or ended > match_at or (ended == match_at and winner < match) or lexer.order[0]:
            match, match_at = winner, ended
    reached = (step & _TARGET_MASK) - 1
    # A sure match replaces an earlier one; beyond MAX_BACK bytes none is remembered.
    if reached >= 0 and match >= 0 and (num_read + 1 - match_at > MAX_BACK or lexer.states[reached, IS_SURE] > 0):
        match = -1
    return reached, match, match_at
