"""info(): plain values that say what runs here."""

import json

import cygnet


def test_facts():
    facts = cygnet.info()
    json.dumps(facts)
    assert facts["version"] == cygnet.__version__
    assert facts["isa"]["chosen"] in facts["isa"]["available"] and "scalar" in facts["isa"]["available"]
    assert facts["threads"]["default"] >= 1
    assert "scipy" in facts["blas"] and facts["openmp"]
