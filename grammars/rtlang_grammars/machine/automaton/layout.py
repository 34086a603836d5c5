"""Layout of the machine's tables and configurations in arrays. Shared by the compiled code and the code that builds tables.

**States** are rows of `S`, int32 [num_states, 8]. A *value* says where a state goes on a byte: it is the TARGET of the state's single byte
if that byte matches, else the entry of the 256-entry row that the state points to (so chains of literal bytes need no rows, and many states
share one). A value is a next state (>= 0), `NONE`, `UNKNOWN` (the row is not built yet) or `FIRST_ACTION - o` for the action at X[o].

**Frames** are nodes of a graph-structured stack (Tomita; as in GLL parsing: one node per called start and position, several edges back), so
that ambiguity has polynomial cost and left recursion terminates. An edge holds the return state, the register of the caller and its node.

**A configuration** is one int64 array: a header, the heads (state, register, node), and the frames reachable from them, breadth first. The
frames within k levels of the heads are therefore a prefix of the array, which is the key of a mask that read k levels. Configurations are
immutable; forks share them.

**Registers** hold a count, or the set of declared names that an object has seen: in 60 bits, or in a block of words after the node if
there are more names or properties are counted.
"""

from __future__ import annotations

# Columns of S.
ROW, BYTE, TARGET, PARAM, ACC, BLOCK, SLICE, WIDTH = range(8)
STATE_WORDS = 8

# Values.
NONE, UNKNOWN, FIRST_ACTION = -1, -2, -3

# Rows with which every table begins.
DEAD_ROW, UNKNOWN_ROW = 0, 1

# ACC of a state: the frame cannot end here; it can end and no following byte continues it; it can end or continue.
OPEN, ENDS, ENDS_OR_GOES_ON = 0, 1, 2

# WIDTH of a state inside a string with a pattern, between characters: whether any plain text is allowed forever.
UNASKED, IS_FREE, IS_BOUND = 0, 1, 2

# Kinds of actions, with their words in X.
CALL = 0  # start, register: the return state is PARAM of the state (negative: none, the frame ends with the called one)
CALL_NEXT = 1  # start, register: the return state is the next state
CALL_TO = 2  # start, register, return state
ALTERNATIVES = 3  # count, values
COUNT = 4  # target, max, cap: allowed if register < max; adds one, up to cap
AT_LEAST = 5  # target, min: allowed if register >= min; resets the register
KEY_BRANCH = 6  # object, target, first leaf, end leaf: if a name of these leaves is still allowed
KEY_END = 7  # object, leaf: the name is complete
KEY_OTHER = 8  # object, target: an undeclared name is complete
CLOSE = 9  # object, target: if the object may end; resets the register
COMMA = 10  # object, target: if one more property is allowed
AT_MOST = 12  # target, max: allowed if register <= max
NEW_OBJECT = 11  # object, target: begin with no names seen, in a block of words
SPELL = 13  # byte: the frame ends, and its return state reads this byte instead of the current one
COUNT_UP = 15  # target below min, target from min on, min, max, cap: as COUNT; the register decides about the target
KEY_PHASE = 14  # object, target while a required name is missing, target otherwise

# Words of an object's description in X.
(
    OBJ_NAMES,  # declared names
    OBJ_WORDS,  # words of 30 bits; 0: packed in the register
    OBJ_IS_OPEN,  # whether undeclared names are allowed
    OBJ_MIN,  # properties
    OBJ_MAX,  # properties; -1: no bound
    OBJ_CAP,  # the count saturates here
    OBJ_REQUIRED,  # offset in X of words of 30 bits; after them as many words with the names that count as seen from the start
    OBJ_LEAVES,  # offset of (name, state after the name) pairs in X
    OBJ_NUM_LEAVES,
    OBJ_ORDER,  # IN_ANY_ORDER, IN_ORDER or OTHERS_LAST
    OBJ_ORDERED,  # the names below this number have an order; IN_ANY_ORDER: 0
) = range(11)
IN_ANY_ORDER, IN_ORDER, OTHERS_LAST = range(3)
"""OBJ_ORDER: any order; the ordered names in the order of their numbers; the same, and all other names only after them."""
BITS = 30
MAX_PACKED_NAMES = 60

# Header of a configuration.
LENGTH = 0  # total words
TOUCHED = 1  # written by walks: the deepest level of frames that they read; before a walk, RISK of `repeated_names`
NUM_LEVELS = 2
BOUNDS = 3  # where each level ends; level 0 holds the heads
MAX_LEVELS = 20
NUM_HEADS = BOUNDS + MAX_LEVELS
HEADS = NUM_HEADS + 1  # state, register, node each

# Words of a node: its start and the next node created in the same step (only while stepping), then its first edge.
NODE_START, NODE_REGISTER, NODE_NEXT, NODE_EDGE = 0, 1, 2, 3
# Words of an edge.
EDGE_RETURN, EDGE_REGISTER, EDGE_PARENT, EDGE_NEXT = 0, 1, 2, 3
NODE_WORDS, EDGE_WORDS = 7, 4
ROOT = 0

# Result codes of compiled functions.
OK, REJECTED, MANY, NEED_ROW, NO_SPACE, NEED_FREEDOM = 1, 0, -1, -2, -3, -4

# Words of the array `out`: results, then the heads of hash chains for three lists.
OUT_WORDS, BUCKETS = 8, 256
