"""Who is asking: a signed bearer token becomes a principal."""

from __future__ import annotations

import uuid
from typing import Any

import jwt

from pipeline.errors import ConfigurationError, Unauthenticated
from pipeline.services.identity import TenantDirectory
from pipeline.settings import Settings, require
from pipeline.types import Principal

# Pinned here, never taken from the token.
_ALGORITHM = "HS256"
# RFC 7518, section 3.2: a key at least as long as the hash.
_LEAST_SECRET_BYTES = 32
_MOST_TOKEN_CHARS = 8_192
_MOST_NAME_CHARS = 200


class TokenReader:
    """Checks tokens against the accepted secrets: the present one, then the previous one during a rotation."""

    def __init__(self, secrets: tuple[str, ...], tenants: TenantDirectory) -> None:
        self._secrets = secrets
        self._tenants = tenants

    def principal(self, authorization: str | None) -> Principal:
        """The principal of an ``Authorization`` header. Raises Unauthenticated, and TransientError."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("a bearer token is needed")
        if len(token) > _MOST_TOKEN_CHARS:
            raise _refused()
        principal = _principal(self._claims(token))
        if not self._tenants.knows(principal.tenant_id):
            raise _refused()
        return principal

    def _claims(self, token: str) -> dict[str, Any]:
        for secret in self._secrets:
            try:
                return jwt.decode(
                    token,
                    secret,
                    algorithms=[_ALGORITHM],
                    options={"require": ["exp", "sub", "tenant"], "verify_aud": False},
                )
            except jwt.InvalidSignatureError:
                continue
            except (jwt.InvalidTokenError, ValueError, OverflowError) as problem:
                raise _refused() from problem
        raise _refused()


def token_reader(settings: Settings, tenants: TenantDirectory) -> TokenReader:
    """Raises ConfigurationError when no secret is set or one is too short."""
    present = require(settings.jwt_secret, "DOCMILL_JWT_SECRET", f"at least {_LEAST_SECRET_BYTES} random characters")
    previous = settings.jwt_secret_previous.get_secret_value() if settings.jwt_secret_previous is not None else ""
    for variable, secret in (("DOCMILL_JWT_SECRET", present), ("DOCMILL_JWT_SECRET_PREVIOUS", previous)):
        if secret and len(secret.encode()) < _LEAST_SECRET_BYTES:
            raise ConfigurationError(f"{variable} is too short; it expects at least {_LEAST_SECRET_BYTES} characters")
    return TokenReader(tuple(secret for secret in (present, previous) if secret), tenants)


def _principal(claims: dict[str, Any]) -> Principal:
    """Claims as a principal; a token that is signed but not of our form is refused all the same."""
    try:
        tenant_id = uuid.UUID(_name(claims["tenant"]))
    except ValueError as problem:
        raise _refused() from problem
    narrowed = claims.get("subjects")
    return Principal(
        tenant_id=tenant_id,
        user=_name(claims["sub"]),
        narrowed_to=None if narrowed is None else _names(narrowed),
        scopes=frozenset(_scopes(claims.get("scope"))),
    )


def _name(value: object) -> str:
    if isinstance(value, str) and 0 < len(value) <= _MOST_NAME_CHARS and value.isprintable():
        return value
    raise _refused()


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_name(each) for each in value)
    raise _refused()


def _scopes(value: object) -> tuple[str, ...]:
    """RFC 8693: one string, separated by spaces; a list is taken as well."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.split())
    return _names(value)


def _refused() -> Unauthenticated:
    return Unauthenticated("the token is not valid or has expired")
