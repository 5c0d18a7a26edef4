from sweepledger.distributions.choice import Choice
from sweepledger.structs.methods import METHODS
from sweepledger.structs.search_block import AdaptiveSearch, Resource, Rounds
from sweepledger.structs.space import Condition, Parameter, SearchSpace, parents_first

SPACE = SearchSpace((Parameter("rate", Choice((0.1, 0.2))),))


def test_rungs_grow_by_eta_and_end_at_the_maximum() -> None:
    assert Resource("epochs", 1, 27).rungs == (1, 3, 9, 27)
    assert Resource("epochs", 2, 3).rungs == (2, 3)
    assert Resource("epochs", 1, 3, eta=3).rungs == (1, 3)
    assert Resource("epochs", 3, 10).generations == (3, 6, 9, 10)


def test_hyperbands_brackets_are_those_of_the_paper() -> None:
    assert Resource("epochs", 1, 27).brackets(27) == ((0, 27), (1, 12), (2, 6), (3, 4))
    assert Resource("epochs", 1, 3).brackets(1) == ((0, 1), (1, 1))


def test_a_round_has_at_most_the_trials_of_all_brackets_or_of_the_cap() -> None:
    epochs = Resource("epochs", 1, 27)
    whole = AdaptiveSearch(METHODS["hyperband"], SPACE, 0, Rounds(27), resource=epochs)
    capped = AdaptiveSearch(METHODS["hyperband"], SPACE, 0, Rounds(27), resource=epochs, cap=40)

    assert (whole.largest_round, capped.largest_round) == (49, 40)
    assert AdaptiveSearch(METHODS["halving"], SPACE, 0, Rounds(9), resource=epochs).largest_round == 9
    assert AdaptiveSearch(METHODS["tpe"], SPACE, 0, Rounds(9)).largest_round == 9


def parameter(name: str, *parents: str) -> Parameter:
    return Parameter(name, Choice((1, 2)), tuple(Condition(parent, (1,)) for parent in parents))


def test_parents_come_before_their_children_in_the_order_of_the_spec() -> None:
    groups = [
        (parameter("c", "b"),),
        (parameter("d", "a", "c"),),
        (parameter("b", "a"), parameter("z")),
        (parameter("a"),),
        (parameter("e"),),
    ]

    ordered = parents_first(groups, lambda group: group)

    assert ["".join(member.name for member in group) for group in ordered] == ["a", "e", "bz", "c", "d"]
