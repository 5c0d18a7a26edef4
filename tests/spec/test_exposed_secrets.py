import pytest

from sweepledger.spec.rules.environment import looks_secret


@pytest.mark.parametrize("name", ["TOKEN", "WANDB_API_KEY", "db_password", "AWS_SECRET", "MY_APIKEY"])
def test_a_name_of_a_secret_is_recognised(name: str) -> None:
    assert looks_secret(name, "abc")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "512"),
        ("HF_TOKEN", ""),
        ("HF_TOKEN", "/sweep/secrets/hub/token"),
        ("SWEEP_token", "cls"),
    ],
)
def test_other_names_and_empty_values_and_paths_and_hyperparameters_are_none(name: str, value: str) -> None:
    assert not looks_secret(name, value)
