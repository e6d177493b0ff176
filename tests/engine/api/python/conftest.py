"""Shared fixture: teams that are closed after the test, with deadlines that end hanging calls."""

import pytest
import rankine


@pytest.fixture
def team():
    """team(ranks, **options): makes teams that are closed after the test."""
    made = []

    def make(ranks=4, **options):
        made.append(rankine.Team(ranks, **{"timeout": 20, **options}))
        return made[-1]

    yield make
    for one in made:
        one.close()
