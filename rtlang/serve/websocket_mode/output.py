"""The output of one connection of WebSocket mode, as `OutputFlow` sends it."""

from __future__ import annotations

from collections.abc import Sequence

from rtlang.contract.errors import ProtocolError, RtlangError, SlowConsumerError
from rtlang.contract.runs.principal import Principal
from rtlang.protocol.messages import CloseCode
from rtlang.serve.http.errors import described_error
from rtlang.serve.output_flow import OutputFlow
from rtlang.serve.websocket_mode.frames import error_frame


class ModeOutput:
    """Frames that wait to be sent, and how the connection closes. Used on the server's event loop."""

    sends_text = True

    def __init__(self, principal: Principal, flow: OutputFlow) -> None:
        self.principal = principal
        self.close_code: CloseCode | int | None = None
        self.close_reason = ""
        self._flow = flow
        self._frames: list[bytes] = []

    @property
    def is_ready(self) -> bool:
        """Whether the socket takes more frames now."""
        return self.close_code is None and self._flow.is_drained

    def send(self, frames: Sequence[bytes]) -> None:
        """Send frames; they are dropped once the connection closes."""
        if self.close_code is None and frames:
            self._frames += frames
            if not self._flow.check_backlog():
                self._flow.flush()

    async def drain(self) -> None:
        """Wait until the socket has accepted all output, or is lost."""
        await self._flow.drain()

    def take_output(self) -> list[bytes]:
        """Remove and return the messages to send, in order."""
        frames, self._frames = self._frames, []
        return frames

    def fail(self, code: int, reason: str) -> None:
        """Close the connection with an error frame and a close code."""
        error = SlowConsumerError(reason) if code == CloseCode.SLOW else ProtocolError(reason)
        self.close_with(error, code)

    def close_with(self, error: Exception, code: int, reason: str | None = None) -> None:
        """Close the connection with an error frame."""
        if self.close_code is None:
            status, body = described_error(error)
            self._frames.append(error_frame(status, body, None))
            message = error.message if isinstance(error, RtlangError) else str(error)
            self.close(code, reason or message)

    def close(self, code: int, reason: str) -> None:
        """Close the connection after the frames that wait."""
        if self.close_code is None:
            self.close_code, self.close_reason = code, reason
            self._flow.flush()
