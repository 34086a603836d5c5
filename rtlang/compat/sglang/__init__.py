"""SGLang's frontend language on this engine: programs written for it run with only the import changed.

    import rtlang.compat.sglang as sgl

`docs/coming-from-sglang.md` lists the differences. Code for these programs is in this package only.
"""

from rtlang.compat.sglang.backends import Anthropic as Anthropic
from rtlang.compat.sglang.backends import LiteLLM as LiteLLM
from rtlang.compat.sglang.backends import OpenAI as OpenAI
from rtlang.compat.sglang.backends import RuntimeEndpoint as RuntimeEndpoint
from rtlang.compat.sglang.backends import Shortfin as Shortfin
from rtlang.compat.sglang.backends import VertexAI as VertexAI
from rtlang.compat.sglang.backends import flush_cache as flush_cache
from rtlang.compat.sglang.backends import get_server_info as get_server_info
from rtlang.compat.sglang.backends import global_config as global_config
from rtlang.compat.sglang.backends import set_default_backend as set_default_backend
from rtlang.compat.sglang.choices import ChoicesDecision as ChoicesDecision
from rtlang.compat.sglang.choices import ChoicesSamplingMethod as ChoicesSamplingMethod
from rtlang.compat.sglang.choices import greedy_token_selection as greedy_token_selection
from rtlang.compat.sglang.choices import token_length_normalized as token_length_normalized
from rtlang.compat.sglang.choices import unconditional_likelihood_normalized as unconditional_likelihood_normalized
from rtlang.compat.sglang.expressions import assistant as assistant
from rtlang.compat.sglang.expressions import assistant_begin as assistant_begin
from rtlang.compat.sglang.expressions import assistant_end as assistant_end
from rtlang.compat.sglang.expressions import gen as gen
from rtlang.compat.sglang.expressions import gen_int as gen_int
from rtlang.compat.sglang.expressions import gen_string as gen_string
from rtlang.compat.sglang.expressions import image as image
from rtlang.compat.sglang.expressions import select as select
from rtlang.compat.sglang.expressions import separate_reasoning as separate_reasoning
from rtlang.compat.sglang.expressions import system as system
from rtlang.compat.sglang.expressions import system_begin as system_begin
from rtlang.compat.sglang.expressions import system_end as system_end
from rtlang.compat.sglang.expressions import user as user
from rtlang.compat.sglang.expressions import user_begin as user_begin
from rtlang.compat.sglang.expressions import user_end as user_end
from rtlang.compat.sglang.expressions import video as video
from rtlang.compat.sglang.options import REGEX_BOOL as REGEX_BOOL
from rtlang.compat.sglang.options import REGEX_FLOAT as REGEX_FLOAT
from rtlang.compat.sglang.options import REGEX_INT as REGEX_INT
from rtlang.compat.sglang.options import REGEX_STR as REGEX_STR
from rtlang.compat.sglang.program import SglFunction as SglFunction
from rtlang.compat.sglang.program import function as function
from rtlang.compat.sglang.runtimes import Engine as Engine
from rtlang.compat.sglang.runtimes import Runtime as Runtime
from rtlang.compat.sglang.runtimes import ServerArgs as ServerArgs
from rtlang.compat.sglang.state import ProgramState as ProgramState
from rtlang.compat.sglang.state import ProgramStateGroup as ProgramStateGroup
from rtlang.compat.sglang.text_reader import MissingVariableError as MissingVariableError
from rtlang.contract.version import VERSION

__version__ = VERSION
"""Of this package, which is no version of SGLang."""
