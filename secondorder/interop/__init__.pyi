"""The public names of :mod:`secondorder.interop`."""

from ._alpaca_eval import read_alpaca_eval as read_alpaca_eval
from ._fastchat import read_fastchat as read_fastchat
from ._helm import read_helm as read_helm
from ._inspect import read_inspect as read_inspect
from ._lm_eval import read_lm_eval as read_lm_eval
from ._log import Log as Log
from ._openai_evals import read_openai_evals as read_openai_evals
from ._promptfoo import read_promptfoo as read_promptfoo

__all__ = [
    "Log",
    "read_alpaca_eval",
    "read_fastchat",
    "read_helm",
    "read_inspect",
    "read_lm_eval",
    "read_openai_evals",
    "read_promptfoo",
]
