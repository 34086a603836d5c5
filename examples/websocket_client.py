"""A client of a server: the same programs, run at the other end of one WebSocket.

    rtlang serve &
    python examples/websocket_client.py [ws://127.0.0.1:8420]

The whole program crosses the network once, whatever number of calls it makes; text comes back as it is made. Several programs share
the socket.
"""

from __future__ import annotations

import sys
import threading

import rtlang as rt


@rt.program
def story(s: rt.State, about: str) -> object:
    """A short story, streamed."""
    s += rt.user("Write a short story about ", about, ".")
    s += rt.assistant(rt.gen("story", max_tokens=160, temperature=0.7, seed=7))
    return s["story"]


def tell(runtime: rt.Target, about: str, lock: threading.Lock) -> None:
    """Stream one story; print it when it is whole, so that stories told at once do not mix."""
    with story.stream(about=about, runtime=runtime) as events:
        pieces = [event.text for event in events if isinstance(event, rt.TextEvent)]
    with lock:
        print(f"{about} ({len(pieces)} pieces): {''.join(pieces)}\n")


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:8420"
    lock = threading.Lock()
    with rt.connect(url) as runtime:
        threads = [
            threading.Thread(target=tell, args=(runtime, about, lock))
            for about in ("a shy fox", "a brave robot", "a dragon named Brix")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
