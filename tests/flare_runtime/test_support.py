from fakes import passage

from flare_runtime.support import supporting

A = passage("a", "Roll out payments with helm on deploy-two.")
B = passage("b", "The holiday policy gives 29 days.")


def test_a_sentence_stands_on_what_shares_its_terms() -> None:
    assert supporting("Roll out payments with helm.", [B, A]) == ("a",)
    assert supporting("Everyone gets 29 days of holiday by the policy.", [A, B]) == ()
    assert supporting("The policy gives 29 days.", [A, B]) == ("b",)


def test_the_better_support_comes_first() -> None:
    weaker = passage("w", "Roll out payments.")
    assert supporting("Roll out payments with helm.", [weaker, A]) == ("a", "w")


def test_a_sentence_without_terms_stands_on_nothing() -> None:
    assert supporting("…", [A]) == ()
    assert supporting("Roll out.", []) == ()
