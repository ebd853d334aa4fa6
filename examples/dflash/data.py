"""A synthetic token stream that a drafter can learn.

A document walks through a fixed permutation of a few "words": the next token is the successor of
the last one, except for one in ``NOISE`` that is drawn anew. The first tokens of a document are its
prompt and carry no loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NOISE = 12
WORDS = 64
SHORTEST, LONGEST = 48, 320
PROMPT = 8


@dataclass(frozen=True)
class Document:
    """Token ids ``[n]`` and, as 0 or 1 ``[n]``, which of them carry loss."""

    tokens: Tensor
    loss_mask: Tensor


class DocumentStream:
    """Documents of ``vocabulary`` tokens; the last id is the MASK token and never occurs.

    The same ``seed`` gives the same documents for the same batch, whoever asks for it.
    """

    def __init__(self, vocabulary: int, seed: int = 0) -> None:
        chooser = torch.Generator().manual_seed(seed)
        self._words = torch.randperm(vocabulary - 1, generator=chooser)[:WORDS].tolist()
        self._seed = seed

    def batch(self, index: int, slots: int) -> list[Document]:
        """Return documents of at least ``slots`` tokens together."""
        chooser = torch.Generator().manual_seed(self._seed * 1_000_003 + index)
        documents: list[Document] = []
        total = 0
        while total < slots:
            length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=chooser))
            documents.append(self._document(length, chooser))
            total += length
        return documents

    def _document(self, length: int, chooser: torch.Generator) -> Document:
        draws = torch.randint(0, WORDS, (length,), generator=chooser).tolist()
        fresh = (torch.randint(0, NOISE, (length,), generator=chooser) == 0).tolist()
        place, places = draws[0], []
        for draw, anew in zip(draws, fresh, strict=True):
            place = draw if anew else (place + 1) % WORDS
            places.append(self._words[place])
        mask = torch.ones(length, dtype=torch.bool)
        mask[: min(PROMPT, length - 1)] = False
        return Document(torch.tensor(places), mask)
