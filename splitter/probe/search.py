"""Where the largest value that a compiler takes lies, for many limits at once.

Decides which values are asked next: doubling until one is refused, then halving the gap. A limit is
taken to be one step: what is over a refused value is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splitter.probe.ask import Asker
from splitter.probe.questions import Question
from splitter.probe.trials import STEPS

FARTHEST = 16
"""Times the file's limit: farther out nothing is tried."""

ROUNDS = 40


@dataclass
class Search:
    """One limit: `low` is taken (0: nothing yet), `high` refused (None: nothing yet)."""

    question: Question
    start: int
    low: int = 0
    high: int | None = None

    @property
    def step(self) -> int:
        return STEPS.get(self.question.fact, 1)

    def next(self) -> Question | None:
        """The next value to ask; None when the border is known or out of reach."""
        if self.high is None:
            value = self.low * 2
            return self._at(value) if value <= self.start * FARTHEST else None
        if self.high - self.low <= self.step:
            return None
        middle = (self.low + self.high) // 2 // self.step * self.step
        return self._at(max(middle, self.low + self.step))

    def learn(self, value: int, *, taken: bool) -> None:
        if taken:
            self.low = max(self.low, value)
        else:
            self.high = value if self.high is None else min(self.high, value)

    def _at(self, value: int) -> Question:
        return Question(self.question.code, self.question.fact, value, self.question.when)


def search(asker: Asker, searches: Sequence[Search]) -> None:
    """Ask until every border is known; what cannot be built ends a search where it is."""
    open_ = list(searches)
    for _ in range(ROUNDS):
        asked = [(one, question) for one in open_ if (question := one.next()) is not None]
        if not asked:
            return
        asker.ask(question for _, question in asked)
        open_ = []
        for one, question in asked:
            answer = asker.answers.get(question)
            if answer is not None and not answer.failed:
                one.learn(question.value, taken=answer.taken)
                open_.append(one)
