"""Compression of requests and responses: zstd with a dictionary shared by all rows of a ledger.

Calls of one audit differ in little, so a shared dictionary stores a call in a fraction of its own size. The
dictionaries stand in the ledger itself and every row names its own (``codec``), so a dictionary learned later disturbs
no row written before. Hashes are over the uncompressed bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import zstandard

__all__ = ["REQUEST", "RESPONSE", "RESPONSE_SKELETON", "Codec", "train"]

PLAIN = 0
REQUEST = 1
RESPONSE = 2
LEARNED = 3

DICTIONARY_BYTES = 65536

RESPONSE_SKELETON = (
    b'{"id":"chatcmpl-","object":"chat.completion","created":17,"model":"","provider":"","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"","refusal":null,"annotations":[],"audio":null,"function_call":null,'
    b'"tool_calls":[],"reasoning":null,"reasoning_content":null},"logprobs":null,"finish_reason":"length",'
    b'"stop_reason":null,"token_ids":null}],"service_tier":"default","system_fingerprint":"fp_","usage":'
    b'{"prompt_tokens":1,"total_tokens":2,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0,'
    b'"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,'
    b'"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"prompt_logprobs":null,'
    b'"kv_transfer_params":null}{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant",'
    b'"content":"A"}}],"created":17,"model":"","system_fingerprint":"b","object":"chat.completion","usage":'
    b'{"completion_tokens":1,"prompt_tokens":2,"total_tokens":3},"id":"chatcmpl-","timings":{}}'
)
"""Shape of the answers of common servers: a dictionary for the first responses, before any has been seen."""


class Codec:
    """Compressors and decompressors of one ledger; belongs to one thread.

    Parameters
    ----------
    dictionaries : mapping of int to bytes
        Dictionary bytes by codec number.
    """

    def __init__(self, dictionaries: dict[int, bytes]) -> None:
        self._dictionaries = {number: zstandard.ZstdCompressionDict(data) for number, data in dictionaries.items()}
        self._compressors: dict[int, zstandard.ZstdCompressor] = {}
        self._decompressors: dict[int, zstandard.ZstdDecompressor] = {}

    @classmethod
    def load(cls, connection: sqlite3.Connection) -> Codec:
        """Read the dictionaries that stand in a ledger."""
        return cls(dict(connection.execute("SELECT codec, bytes FROM dictionary")))

    @property
    def response(self) -> int:
        """Codec of the newest dictionary for responses."""
        return max(RESPONSE, *self._dictionaries)

    def __contains__(self, number: int) -> bool:
        return number in self._dictionaries

    def add(self, number: int, data: bytes) -> None:
        """Make a new dictionary known."""
        self._dictionaries[number] = zstandard.ZstdCompressionDict(data)

    def compress(self, number: int, data: bytes) -> bytes:
        """Compress with dictionary `number`."""
        compressor = self._compressors.get(number)
        if compressor is None:
            dictionary = self._dictionaries[number]
            dictionary.precompute_compress(level=3)
            compressor = self._compressors[number] = zstandard.ZstdCompressor(level=3, dict_data=dictionary)
        return compressor.compress(data)

    def decompress(self, number: int, blob: bytes) -> bytes:
        """Bytes of a row compressed with dictionary `number`."""
        decompressor = self._decompressors.get(number)
        if decompressor is None:
            decompressor = zstandard.ZstdDecompressor(dict_data=self._dictionaries[number])
            self._decompressors[number] = decompressor
        return decompressor.decompress(blob)


def train(samples: Sequence[bytes]) -> bytes:
    """Dictionary for data like `samples`; where they are too few to train on, the samples themselves."""
    try:
        return zstandard.train_dictionary(DICTIONARY_BYTES, list(samples)).as_bytes()
    except zstandard.ZstdError:
        return b"\n".join(samples)[:DICTIONARY_BYTES]
