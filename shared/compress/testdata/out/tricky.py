from __future__ import annotations
import os


@dataclass(frozen=True)
class Store(Base):
    """Doc with { a brace."""
    x: int = 0

    async def get(
        self, k: str, *, d: dict[str, int] | None = None,
    ) -> Optional[int]:
        ...  # [... 7 lines omitted: 13-19]

    @property
    def size(self) -> int:
        ...  # [... 6 lines omitted: 23-28]


def one_liner(a): return a + 1
