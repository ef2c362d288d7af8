"""Requests that the app refuses, each with the status of its response."""

from __future__ import annotations

from typing import ClassVar

from photostereo.core.errors import PhotostereoError


class RequestError(PhotostereoError):
    """The page asks for something that makes no sense, or that is not possible now."""

    kind = "request"
    status: ClassVar[int] = 400  #: HTTP status of the response


class NotFoundError(RequestError):
    """There is no such capture, file, picture or result."""

    status = 404


class TooLargeError(RequestError):
    """More bytes than the app accepts."""

    status = 413


def bad_request(message: str) -> RequestError:
    """Return the error for a request that the page itself would never send."""
    return RequestError(message, code="bad-request")
