"""A viewer of the served pages without a browser: speaks Streamlit's protocol, so that many cost little."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


class Viewer:
    """One session: what the page shows of buttons and progress, and presses of its buttons."""

    def __init__(self, socket: ClientWebSocketResponse, page: str, parameters: dict[str, str]) -> None:
        self._socket, self._page, self._query = socket, page, urlencode(parameters)
        self.buttons: dict[str, str] = {}
        self.progress = ""

    @classmethod
    async def open(cls, client: ClientSession, address: str, page: str, **parameters: str) -> Viewer:
        """Open a page, as an address with these parameters does."""
        socket = await client.ws_connect(f"{address}/_stcore/stream", protocols=["streamlit"], max_msg_size=0)
        viewer = cls(socket, page, parameters)
        await viewer._send(None)
        return viewer

    async def close(self) -> None:
        """Close the window."""
        await self._socket.close()

    async def press(self, label: str) -> None:
        """Press a button as it was drawn last, whether or not it is there still."""
        await self._send(self.buttons[label])

    async def until(self, progress: str) -> None:
        """Wait until a whole drawing of the page shows this progress."""
        finished = False
        while not (finished and self.progress == progress):
            message = await self._socket.receive(timeout=60)
            assert message.type is WSMsgType.BINARY, message
            finished = self._take(ForwardMsg.FromString(message.data))

    async def _send(self, button: str | None) -> None:
        message = BackMsg()
        message.rerun_script.query_string, message.rerun_script.page_name = self._query, self._page
        if button is not None:
            message.rerun_script.widget_states.widgets.add(id=button, trigger_value=True)
        await self._socket.send_bytes(message.SerializeToString())

    def _take(self, message: ForwardMsg) -> bool:
        """Note what a message draws; whether it ends a drawing."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.buttons, self.progress = {}, ""
        if kind == "delta":
            element = message.delta.new_element
            if element.HasField("button"):
                self.buttons[element.button.label] = element.button.id
            if element.HasField("progress"):
                self.progress = element.progress.text
        return kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
