"""What all tests share: teams that are closed, and deadlines that end what hangs."""

import pytest
import rankine


@pytest.fixture
def team():
    """team(ranks, **options): closed at the end."""
    made = []

    def make(ranks=4, **options):
        made.append(rankine.Team(ranks, **{"timeout": 20, **options}))
        return made[-1]

    yield make
    for one in made:
        one.close()
