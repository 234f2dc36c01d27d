from __future__ import annotations
import os


@dataclass(frozen=True)
class Store(Base):
    """Doc with { a brace."""
    x: int = 0

    async def get(
        self, k: str, *, d: dict[str, int] | None = None,
    ) -> Optional[int]:
        """doc"""
        s = f"{k!r}: {{literal}} # no comment"
        t = """
def fake(self):
    pass
"""
        return d[k]

    @property
    def size(self) -> int:
        total = 0
        for v in self.values:
            total += v

        # a comment between
        return total


def one_liner(a): return a + 1
