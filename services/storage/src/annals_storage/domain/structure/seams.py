"""Places where a text may be cut, the better the lower their rank."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Seams:
    """Seams of a text. Units between them are worth keeping whole.

    `positions` ascend; `ranks` belong to them. `code`: stretches [start, end) of source code, in
    order. `of_records`: the whole text is data, not prose.
    """

    positions: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    code: list[tuple[int, int]] = field(default_factory=list)
    of_records: bool = False

    def add(self, position: int, rank: int) -> None:
        """Add a seam behind all others."""
        self.positions.append(position)
        self.ranks.append(rank)

    def within(self, lowest: int, highest: int) -> Iterator[int]:
        """Yield seams in (lowest, highest], best first: the last of each rank."""
        first, end = bisect_right(self.positions, lowest), bisect_right(self.positions, highest)
        last_of = dict(zip(self.ranks[first:end], self.positions[first:end], strict=True))
        for rank in sorted(last_of):
            yield last_of[rank]

    def is_code(self, position: int) -> bool:
        """Whether the characters at both sides of a position are of the same piece of code."""
        index = bisect_left(self.code, (position, 0)) - 1
        return index >= 0 and position < self.code[index][1]

    def ends_unit(self, cut: int) -> bool:
        """Whether a cut separates records, or lines of code, and no half of one."""
        return self._rank(cut) is not None and (self.of_records or self.is_code(cut))

    def repeatable(self, lowest: int, cut: int) -> int | None:
        """Return the first seam in [lowest, cut) no worse than the seam `cut`, if there is one."""
        worst = self._rank(cut)
        if worst is None:
            return None
        seams = range(bisect_left(self.positions, lowest), bisect_left(self.positions, cut))
        return next((self.positions[seam] for seam in seams if self.ranks[seam] <= worst), None)

    def _rank(self, position: int) -> int | None:
        index = bisect_left(self.positions, position)
        found: Sequence[int] = self.positions[index : index + 1]
        return self.ranks[index] if found and found[0] == position else None
