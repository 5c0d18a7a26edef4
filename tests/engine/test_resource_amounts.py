from sweepledger.engine.local.local_batch import ResourceAmounts


def test_a_pod_fits_only_if_all_its_requests_fit() -> None:
    machine = ResourceAmounts(milli_cpus=2000, memory=100, gpus=1)

    assert ResourceAmounts(2000, 100, 1).fits(machine)
    assert not ResourceAmounts(2001, 1, 0).fits(machine)
    assert not ResourceAmounts(1, 101, 0).fits(machine)
    assert not ResourceAmounts(1, 1, 2).fits(machine)


def test_whole_cpus_cover_a_fraction() -> None:
    assert [ResourceAmounts(milli_cpus=milli).cpus for milli in (0, 1, 1000, 1001)] == [0, 1, 1, 2]
