"""What config.json would say of a model in Marian's own files, from the settings they carry."""

from __future__ import annotations

from cygnet.errors import UnsupportedModel

END = 0  # Marian's vocabularies begin with </s> and <unk>


def config_of_marian(weights):
    """Settings under Marian's own names, with the control tokens that it has by convention.

    Decoding starts from nothing: an embedding of zeros, which stands behind the vocabulary as one more row.
    """
    vocabularies = weights.metadata.get("dim-vocabs")
    if not isinstance(vocabularies, list) or len(vocabularies) != 2 or not all(isinstance(size, int) and size > 1 for size in vocabularies):
        raise UnsupportedModel(f"settings of the Marian model: dim-vocabs = {vocabularies!r}, two numbers are expected")
    return {**weights.metadata, "model_type": "marian-nmt", "eos_token_id": END, "decoder_start_token_id": vocabularies[1]}
