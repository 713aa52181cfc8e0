"""Initiators at the PAP door: real documents over HTTP, answers read by the strict reader."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx

from lasthop.access.pap import PapDoor
from lasthop.wire.pap.documents import (
    Document,
    PapMessage,
    PushMessage,
    PushResponse,
)
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.submission import PapSubmission, read_submission, write_submission
from lasthop.wire.pap.versions import Version
from tests.access.knocking import hand_over

Message = TypeVar("Message")

CONTENT = Entity((("Content-Type", "text/plain"), ("X-Wap-Application-Id", "x-app:7")), b"hello")
NOTIFY = "http://93.184.216.34/results"


def user(name: str) -> str:
    return f"WAPPUSH={name}/TYPE=USER@ppg.example.com"


class Initiator:
    """Speaks one version of PAP, with one credential or none."""

    direct = False
    """Whether POSTs go to the door as whole requests, or by ASGI."""

    def __init__(
        self,
        door: PapDoor,
        *,
        version: Version = Version.V2_1,
        token: str | None = None,
        basic: tuple[str, str] | None = None,
        peer: str = "127.0.0.1",
        certificate: str | None = None,
    ) -> None:
        self.version = version
        headers = {"authorization": f"Bearer {token}"} if token else {}

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if certificate is not None:
                scope["extensions"] = {"tls": {"client_cert_name": certificate}}
            if self.direct and scope["method"] == "POST":
                await hand_over(door.take, scope, receive, send, certificate=certificate)
            else:
                await door(scope, receive, send)

        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, client=(peer, 4321)),
            base_url="http://localhost",
            headers=headers,
            auth=basic,
        )

    async def post(self, content_type: str, body: bytes, **headers: Any) -> httpx.Response:
        return await self._http.post(
            "/pap", content=body, headers={"content-type": content_type, **headers}
        )

    async def send(self, message: PapMessage, content: Entity | None = None) -> PapSubmission:
        """What is answered; every answer is valid by its own document type."""
        document = Document(message, self.version, ("2.1", "2.0", "1.*"))
        answer = await self.post(*write_submission(PapSubmission(document, content)))
        assert answer.status_code == 202
        return read_answer(answer)

    async def ask(self, message: PapMessage, kind: type[Message]) -> Message:
        """The answer to a request that has no content."""
        answer = (await self.send(message)).document.message
        assert isinstance(answer, kind), answer
        return answer

    async def push(
        self, push_id: str, *addresses: str, content: Entity = CONTENT, **fields: Any
    ) -> int:
        """Push; the code of the response."""
        message = PushMessage(push_id, addresses, **fields)
        answer = (await self.send(message, content)).document.message
        assert isinstance(answer, PushResponse), answer
        assert answer.push_id == push_id
        return int(answer.result.code)


def read_answer(response: httpx.Response) -> PapSubmission:
    """An answer's document; it must be valid."""
    return read_submission(response.headers["content-type"], response.content)
