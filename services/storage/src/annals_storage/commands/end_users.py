"""Which end user a call is made for."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from annals_common.errors import FieldInvalidError, UserTokenInvalidError, UserTokenRequiredError
from annals_common.principal import EndUser
from annals_storage.commands.user_tokens import VerifyUserToken
from annals_storage.domain.ownership import EndUserMode

SESSION_KEY = "annals-session-id"
USER_KEY = "annals-user-id"
TOKEN_KEY = "annals-user-token"  # noqa: S105 - the name of a metadata key


@dataclass(frozen=True, slots=True)
class EndUserClaim:
    """What the metadata of a call says of its end user; None: nothing."""

    session_id: str | None = None
    user_id: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata keys that were sent."""
        pairs = ((SESSION_KEY, self.session_id), (USER_KEY, self.user_id), (TOKEN_KEY, self.token))
        return tuple(name for name, value in pairs if value is not None)

    def require(self) -> None:
        """Raises FieldInvalidError when there is no end user at all."""
        if not self.fields:
            raise FieldInvalidError(
                SESSION_KEY,
                "is required as metadata with a publishable key: "
                f"{SESSION_KEY}, {USER_KEY} or {TOKEN_KEY}",
            )


NOBODY = EndUserClaim()


class IdentifyEndUser:
    """Turns a claim into an end user, or refuses it."""

    def __init__(self, verify: VerifyUserToken) -> None:
        self._verify = verify

    async def __call__(
        self, tenant_id: UUID, claim: EndUserClaim, *, mode: EndUserMode, method: str
    ) -> EndUser:
        """Return the end user. `mode`: what the agent accepts.

        Raises FieldInvalidError when the agent takes no user ids, UserTokenRequiredError when it
        wants them proved, UserTokenInvalidError for every kind of wrong token.
        """
        self._refuse_unwanted(claim, mode)
        if claim.token is not None:
            return await self._proved(tenant_id, claim, claim.token)
        if claim.user_id is not None and mode is EndUserMode.SIGNED:
            raise UserTokenRequiredError(method)
        return EndUser(claim.session_id, claim.user_id)

    async def _proved(self, tenant_id: UUID, claim: EndUserClaim, token: str) -> EndUser:
        user_id = await self._verify(tenant_id, token)
        if claim.user_id not in (None, user_id):
            raise UserTokenInvalidError
        return EndUser(claim.session_id, user_id, verified=True)

    @staticmethod
    def _refuse_unwanted(claim: EndUserClaim, mode: EndUserMode) -> None:
        unwanted = [name for name in claim.fields if name != SESSION_KEY]
        if unwanted and mode is EndUserMode.ANONYMOUS:
            raise FieldInvalidError(unwanted[0], "is refused: the agent's end users are anonymous")
