"""The server that the client programs use. Each program runs in an environment of its own."""

from __future__ import annotations

import os

SERVER = os.environ["RTLANG_CLIENTS_URL"]
URL = f"{SERVER}/v1"
KEY = os.environ["RTLANG_CLIENTS_KEY"]
MODEL = "rtlang:tiny"
ALIAS = os.environ["RTLANG_CLIENTS_ALIAS"]  # for clients that know models by their names
QUESTION = "Who is at the door? Give a name and an age."
MESSAGES = [{"role": "user", "content": QUESTION}]
SCRIPTED = f"{os.environ['RTLANG_CLIENTS_SCRIPTED']}/v1"
"""The server of the script dialogue.yaml, with the same key and the same names of its model."""
