from sweepledger.engine.local.local_batch import ResourceAmounts


def test_whole_cpus_cover_a_fraction() -> None:
    assert [ResourceAmounts(milli_cpus=milli).cpus for milli in (0, 1, 1000, 1001)] == [0, 1, 1, 2]
